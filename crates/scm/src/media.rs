//! Controller and banks: completion times of a command's accesses.
//!
//! The controller issues accesses one at a time, in the order in which commands arrive, and each
//! bank serves its accesses in that order. The controller and the banks are therefore represented
//! by the times until which they are busy, and writes to the same address are executed in order.

use serde::{Deserialize, Serialize};
use writecliff_base::{Nanos, saved};

use crate::config::{ControllerConfig, MediaConfig};

/// Traffic of the memory since the drive was new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaCounters {
    /// Bytes read, in whole access units.
    pub read_bytes: u64,
    /// Bytes written, in whole access units.
    pub write_bytes: u64,
    /// Units that were read before a write because the host wrote only a portion of the unit.
    pub partial_units: u64,
}

/// Completion times of a command's accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// Completion time of the first portion, which lies in one bank.
    pub first: Nanos,
    pub(crate) last: Nanos,
}

impl Served {
    const NOTHING: Self = Self { first: Nanos::MAX, last: Nanos::ZERO };
}

pub(crate) struct Media {
    config: MediaConfig,
    command_time: Nanos,
    access_time: Nanos,
    controller_free: Nanos,
    bank_free: Vec<Nanos>,
    pub(crate) counters: MediaCounters,
}

saved! { Media { counters } check rest }

impl Media {
    pub(crate) fn new(media: &MediaConfig, controller: &ControllerConfig) -> Self {
        assert!(media.banks > 0 && media.unit.0 > 0, "memory without banks");
        assert!(media.interleave.0.is_multiple_of(media.unit.0), "a unit is in one bank");
        Self {
            config: media.clone(),
            command_time: controller.command_time,
            access_time: controller.access_time,
            controller_free: Nanos::ZERO,
            bank_free: vec![Nanos::ZERO; media.banks as usize],
            counters: MediaCounters::default(),
        }
    }

    /// Marks a restored drive's controller and banks as idle: a saved drive has no accesses.
    fn rest(&mut self) -> bool {
        self.controller_free = Nanos::ZERO;
        self.bank_free.fill(Nanos::ZERO);
        true
    }

    /// Returns the time until which the controller or any bank is busy.
    pub(crate) fn busy_until(&self) -> Nanos {
        self.bank_free.iter().copied().fold(self.controller_free, Nanos::max)
    }

    /// Executes a command without data, which takes controller time, and returns its end.
    pub(crate) fn pass(&mut self, now: Nanos) -> Nanos {
        self.controller_free = self.controller_free.max(now) + self.command_time;
        self.controller_free
    }

    pub(crate) fn read(&mut self, now: Nanos, offset: u64, length: u64) -> Served {
        let (unit, time) = (self.config.unit.0, self.config.read_time);
        let (first, end) = (offset / unit, (offset + length).div_ceil(unit));
        self.counters.read_bytes += (end - first) * unit;
        self.pass(now);
        let mut served = Served::NOTHING;
        self.serve(first, end, time, &mut served);
        served
    }

    /// Counts a write that takes no time; returns the bounds of its units and of its whole units.
    pub(crate) fn count_write(&mut self, offset: u64, length: u64) -> [u64; 4] {
        let unit = self.config.unit.0;
        let (first, end) = (offset / unit, (offset + length).div_ceil(unit));
        let whole = offset.div_ceil(unit).min(end);
        let whole_end = ((offset + length) / unit).max(whole);
        debug_assert!(first <= whole && whole <= whole_end && whole_end <= end);
        debug_assert!(whole - first + end - whole_end <= 2, "only the ends are partial");
        let partial = (whole - first) + (end - whole_end);
        self.counters.write_bytes += (end - first) * unit;
        self.counters.read_bytes += partial * unit;
        self.counters.partial_units += partial;
        [first, whole, whole_end, end]
    }

    /// Writes a range and returns the completion times. Partly written units are read first.
    pub(crate) fn write(&mut self, now: Nanos, offset: u64, length: u64) -> Served {
        let [first, whole, whole_end, end] = self.count_write(offset, length);
        self.pass(now);
        let time = self.config.write_time;
        let changed = self.config.read_time + time;
        let mut served = Served::NOTHING;
        self.serve(first, whole, changed, &mut served);
        self.serve(whole, whole_end, time, &mut served);
        self.serve(whole_end, end, changed, &mut served);
        served
    }

    /// Issues the accesses to these units; each access occupies its bank for `time`.
    fn serve(&mut self, first: u64, end: u64, time: Nanos, served: &mut Served) {
        let per_bank = self.config.interleave.0 / self.config.unit.0;
        let mut from = first;
        while from < end {
            let part = from / per_bank;
            let to = end.min((part + 1) * per_bank);
            let bank = (part % self.bank_free.len() as u64) as usize;
            debug_assert!(from < to && to - from <= per_bank, "a part is in one bank");
            let done = self.issue(bank, to - from, time);
            served.first = served.first.min(done);
            served.last = served.last.max(done);
            from = to;
        }
    }

    /// Issues `count` accesses (at least one) to a bank; returns the time when the last completes.
    fn issue(&mut self, bank: usize, count: u64, time: Nanos) -> Nanos {
        let first = self.controller_free + self.access_time;
        let last = self.controller_free + Nanos(self.access_time.0 * count);
        self.controller_free = last;
        // Each access starts once it has been issued and the previous access has completed, so the
        // last one waits for the bank, for the issue of the first access, or for its own issue.
        let busy = self.bank_free[bank].max(first) + Nanos(time.0 * count);
        let done = busy.max(last + time);
        debug_assert!(done >= self.bank_free[bank], "a bank serves accesses in order");
        debug_assert!(count > 0, "an access of no units");
        self.bank_free[bank] = done;
        done
    }
}
