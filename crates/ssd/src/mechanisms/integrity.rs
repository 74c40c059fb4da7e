//! Faults on the data path, and end-to-end protection against them: section `[integrity]`.
//!
//! The state of the data is simulated, not their contents. Faults are numbered random draws for
//! each slot that the host writes or reads; relocation by garbage collection introduces no faults.
//!
//! | fault | effect | detected by |
//! |---|---|---|
//! | a bit flips in the buffer | wrong data on flash | `buffer_ecc` (corrects), `guard` (read) |
//! | a bit flips on the bus during a write | wrong data on flash | `guard` (repeated transfer) |
//! | a bit flips on the bus during a read | wrong data at the host | `guard` (repeated transfer) |
//! | a write is misplaced | another slot has these data | `reference_tag` (read) |
//! | a write is misplaced | this slot retains its old data | none: guard and tag match |
//!
//! `(read)` means that the check reports the read of the slot.
//!
//! Guard and reference tag are fields of protection information (NVM Command Set, 5.3; T10 SBC): a
//! checksum of the data, and the address that the data were written for.

use std::collections::BTreeMap;

use writecliff_base::keys::{Flag, Number};
use writecliff_base::located::Table;
use writecliff_base::random::nth;
use writecliff_base::{Lpn, Prng, counters, counts, saved, section};
use writecliff_flash::SLOT_BYTES;
use writecliff_host_interface::Status;

use crate::front::slot_overlap;
use crate::mechanisms::{Access, Checked, Described, Mechanism, MechanismSection, steps};
use crate::{DeviceConfig, Recorder, Ssd};

const SEED_LABEL: u64 = 0x0046_4155_4c54;
/// Random draws per slot: one for each fault type, and one for the target of a misplaced write.
const DRAWS: u64 = 4;

/// The data of a slot are corrupt.
const FLIPPED: u8 = 1;
/// The data belong to another slot.
const OTHER: u8 = 2;
/// The data are older than the host's last write.
const STALE: u8 = 4;

section! {
    /// Fault rates, which are probabilities per slot.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub struct IntegrityConfig {
        buffer_flips: default Number(0.0..=1.0) = 0.0,
            "probability that a bit flips while written data are in the buffer";
        bus_flips: default Number(0.0..=1.0) = 0.0,
            "probability that a bit flips on a bus of the drive while data are written or read";
        misplaced_writes: default Number(0.0..=1.0) = 0.0,
            "probability that a slot is written to the location of another slot";
        buffer_ecc: default Flag = false, "flips in the buffer are corrected";
        guard: default Flag = false,
            "a checksum protects the data: bad transfers are repeated, and bad data are reported";
        reference_tag: default Flag = false,
            "the address is stored with the data, and data of another address are reported";
    }
}

impl MechanismSection for IntegrityConfig {
    type Keys = Self;

    fn check(config: Self::Keys, _: &Table<'_>, _: &mut Described<'_>) -> Checked<Self> {
        Ok(Some(config))
    }

    fn places_alike(ours: Option<&Self>, theirs: Option<&Self>) -> bool {
        ours.or(theirs).is_none()
    }
}

counts! {
    /// Counters of faults since the drive was new.
    pub struct IntegrityCounts {
        buffer_flips,
        bus_flips,
        misplaced_writes,
        corrected,
        reported_reads,
        silent_reads,
        wrong_slots,
    }
}

counters! { |c: IntegrityCounts|
    Integer "buffer_flips" Count: c.buffer_flips,
        "slots with a bit flip in the buffer (`[integrity]`)";
    Integer "bus_flips" Count: c.bus_flips,
        "slots with a bit flip on an internal bus of the drive (`[integrity]`)";
    Integer "misplaced_writes" Count: c.misplaced_writes,
        "slots that were written to the location of other slots (`[integrity]`)";
    Integer "corrected_faults" Count: c.corrected,
        "faults that protection corrected before they did harm (`[integrity]`)";
    Integer "reported_reads" Count: c.reported_reads,
        "reads that failed because protection detected wrong data (`[integrity]`)";
    Integer "silent_reads" Count: c.silent_reads,
        "reads that returned wrong data without an error (`[integrity]`)";
    Integer "wrong_slots" Count level: c.wrong_slots,
        "slots whose stored data differ from those last written (`[integrity]`)";
}

/// Runtime state of the section.
#[derive(Clone, Debug, Default)]
pub struct Integrity {
    config: IntegrityConfig,
    salt: u64,
    user_slots: u32,
    /// Number of slots for which faults have been drawn so far.
    drawn: u64,
    /// Flags of slots with wrong data, by logical page.
    wrong: BTreeMap<u32, u8>,
    counts: IntegrityCounts,
}

saved! { Integrity { drawn, wrong, counts } check is_possible }

impl Integrity {
    fn is_possible(&mut self) -> bool {
        self.wrong.keys().all(|&lpn| lpn < self.user_slots)
    }

    pub(crate) fn counters(&self) -> IntegrityCounts {
        IntegrityCounts { wrong_slots: self.wrong.len() as u64, ..self.counts }
    }

    /// Returns random draw `which` for the current slot, uniform in `[0, 1)`.
    fn draw(&self, which: u64) -> f64 {
        (nth(self.salt, DRAWS * self.drawn + which) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Records that the host writes a slot, either fully (`whole`) or partially.
    fn written(&mut self, lpn: u32, whole: bool) {
        debug_assert!(lpn < self.user_slots, "no page of the drive");
        let mut now = 0;
        if self.draw(0) < self.config.buffer_flips {
            self.counts.buffer_flips += 1;
            now |= self.unless(self.config.buffer_ecc);
        }
        if self.draw(1) < self.config.bus_flips {
            self.counts.bus_flips += 1;
            now |= self.unless(self.config.guard);
        }
        let misplaced = self.draw(2) < self.config.misplaced_writes;
        if misplaced {
            self.counts.misplaced_writes += 1;
            let other = (self.draw(3) * f64::from(self.user_slots)) as u32;
            debug_assert!(other < self.user_slots, "no page of the drive");
            if other != lpn {
                self.wrong.insert(other, OTHER | now);
                *self.wrong.entry(lpn).or_default() |= STALE;
            }
        } else {
            let before = if whole { 0 } else { self.wrong.get(&lpn).copied().unwrap_or(0) };
            self.set(lpn, before | now);
        }
        self.drawn += 1;
    }

    /// Returns the flag of a slot with a flipped bit; 0 if protection corrects it.
    fn unless(&mut self, is_corrected: bool) -> u8 {
        self.counts.corrected += u64::from(is_corrected);
        if is_corrected { 0 } else { FLIPPED }
    }

    fn set(&mut self, lpn: u32, flags: u8) {
        if flags != 0 {
            self.wrong.insert(lpn, flags);
        } else if !self.wrong.is_empty() {
            self.wrong.remove(&lpn);
        }
    }

    /// Draws the faults of a command that reads slots. Returns `true` if protection detects wrong
    /// data, so that the command fails. If `is_lost`, the flash has already lost data of the
    /// command. The command fails in any case, and the drive has no data to check.
    fn finds_fault(&mut self, first: u32, slots: u32, is_lost: bool) -> bool {
        debug_assert!(first + slots <= self.user_slots, "a read leaves the drive");
        let (mut reported, mut silent) = (false, false);
        for lpn in first..first + slots {
            let flags = self.wrong.get(&lpn).copied().unwrap_or(0);
            let is_detected = (self.config.guard && flags & FLIPPED != 0)
                || (self.config.reference_tag && flags & OTHER != 0);
            reported |= is_detected;
            silent |= flags != 0 && !is_detected;
            if self.draw(1) < self.config.bus_flips {
                self.counts.bus_flips += 1;
                silent |= self.unless(self.config.guard) != 0;
            }
            self.drawn += 1;
        }
        // A failed command is counted once and returns no data.
        reported &= !is_lost;
        self.counts.reported_reads += u64::from(reported);
        self.counts.silent_reads += u64::from(silent && !reported && !is_lost);
        reported
    }
}

impl Mechanism for Integrity {
    const STEPS: u8 = steps::READS | steps::WRITES;

    fn of(config: &DeviceConfig) -> Option<Box<Self>> {
        config.sections.integrity.map(|section| {
            Box::new(Self {
                config: section,
                salt: Prng::derive(config.ftl.seed, SEED_LABEL).next_u64(),
                user_slots: config.ftl.user_slots as u32,
                ..Self::default()
            })
        })
    }

    fn before_write<R: Recorder>(&mut self, _: &mut Ssd<R>, write: &Access<'_>) {
        let offset = write.command.offset;
        let end = offset + u64::from(write.command.length);
        for lpn in write.first.0..write.first.0 + write.slots {
            self.written(lpn, slot_overlap(Lpn(lpn), offset, end) == SLOT_BYTES);
        }
    }

    fn read(&mut self, read: &Access<'_>, outcome: Status) -> Status {
        let is_lost = outcome != Status::Success;
        let is_reported = self.finds_fault(read.first.0, read.slots, is_lost);
        if is_reported { Status::UnrecoveredRead } else { outcome }
    }

    fn trimmed(&mut self, lpn: Lpn) {
        self.set(lpn.0, 0);
    }

    fn purged(&mut self) {
        self.wrong.clear();
    }
}
