//! The firmware core that places data: one write at a time, for as long as its slots and the slots
//! that collection moves for it take.
//!
//! A drive with many dies is often not bound by its flash when it collects, but by the processor
//! that looks up, moves and maps slot after slot. With `place_time` and `collect_time` of zero there
//! is no such bound, and none of this is in the way.

use std::collections::VecDeque;

use writecliff_base::Nanos;
use writecliff_base::codec::CodecError;

use super::Ssd;
use crate::command::{Completion, InFlight};
use crate::config::ControllerConfig;
use crate::event::{Event, Lane};
use crate::words::{WordReader, WordWriter};

/// Writes whose data have arrived, in the order in which they will be placed.
#[derive(Debug)]
pub(super) struct PlacingCore {
    per_host_slot: Nanos,
    per_moved_slot: Nanos,
    waiting: VecDeque<u16>,
    busy: bool,
    /// The command that is being placed completes when that is done.
    completes: bool,
}

impl PlacingCore {
    /// None if placing is free.
    pub(super) fn new(config: &ControllerConfig) -> Option<Self> {
        let free = config.place_time == Nanos::ZERO && config.collect_time == Nanos::ZERO;
        (!free).then(|| Self {
            per_host_slot: config.place_time,
            per_moved_slot: config.collect_time,
            waiting: VecDeque::new(),
            busy: false,
            completes: false,
        })
    }

    fn time_for(&self, host_slots: u32, moved_slots: u64) -> Nanos {
        let host = self.per_host_slot.0 * u64::from(host_slots);
        Nanos(host + self.per_moved_slot.0 * moved_slots)
    }

    pub(super) fn save(&self, out: &mut WordWriter) {
        assert!(self.waiting.is_empty() && !self.completes, "a write without a host command");
        out.put(self.busy);
    }

    pub(super) fn restore(&mut self, input: &mut WordReader<'_>) -> Result<(), CodecError> {
        self.busy = input.flag()?;
        Ok(())
    }
}

impl Ssd {
    /// The data of a write are here: place them, now or after those before.
    pub(super) fn place(&mut self, number: u16) -> Option<Completion> {
        let Some(core) = &mut self.placing else {
            self.writes_in_transfer -= 1;
            let InFlight { command, first, slots, .. } = *self.commands.get(number);
            return self.write(number, command, first, slots).then(|| self.complete(number));
        };
        core.waiting.push_back(number);
        if !core.busy {
            self.place_next();
        }
        None
    }

    fn place_next(&mut self) {
        let Some(core) = &mut self.placing else { return };
        let Some(number) = core.waiting.pop_front() else { return };
        let InFlight { command, first, slots, .. } = *self.commands.get(number);
        let moved_before = self.ftl.counters().moved_slots();
        self.writes_in_transfer -= 1;
        let completes = self.write(number, command, first, slots);
        let moved = self.ftl.counters().moved_slots() - moved_before;
        let core = self.placing.as_mut().expect("a core that places");
        (core.busy, core.completes) = (true, completes);
        let end = self.backend.now + core.time_for(slots, moved);
        self.backend.queue.push(Lane::Arrived, end, Event::Placed { command: number });
    }

    /// The core is done with a write.
    pub(super) fn placed(&mut self, number: u16) -> Option<Completion> {
        let core = self.placing.as_mut().expect("a core that places");
        core.busy = false;
        let completes = std::mem::take(&mut core.completes);
        self.place_next();
        completes.then(|| self.complete(number))
    }
}
