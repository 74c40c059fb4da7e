//! Parity across dies: section `[die_parity]` of a device file.
//!
//! Of each stripe of dies one holds the parity of the others, in turn (`flash/die_parity.rs`): it
//! takes its share of the space, and is programmed when the last of the others in the row is. A
//! read that no retry corrects is followed by reads of all other dies of the stripe. The same
//! serves what a lost die held; the firmware relocates that, one reclaim unit at each interval at
//! which the dies are not busy with the one before.

mod failure;
mod flash;
mod section;

use writecliff_base::codec::CodecError;
use writecliff_base::words::{WordReader, WordWriter};
use writecliff_base::{Nanos, ReclaimUnitId, counters, counts};
use writecliff_flash::geometry::SLOT_BYTES;

pub use section::DieParityConfig;

counts! {
    /// Counters of parity across dies since the drive was new.
    pub struct DieParityCounts {
        /// Parity units programmed, on the timed clock.
        programs,
        /// Host reads answered from the other dies of the stripe.
        rebuilt,
        /// Host reads that could not be answered.
        unrecovered,
        /// Slots relocated from a lost die.
        relocated,
    }
}

/// What the drive reports of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DieParityCounters {
    pub counts: DieParityCounts,
    /// Slots that the parity takes on flash.
    pub parity_slots: u64,
}

const SLOT: u64 = SLOT_BYTES as u64;

counters! { |c: DieParityCounters|
    Integer "parity_write_bytes" Bytes: c.parity_slots * SLOT,
        "of `nand_write_bytes`, parity across dies (`[die_parity]`)";
    Integer "rebuilt_reads" Count: c.counts.rebuilt,
        "host reads answered from the other dies of the stripe (`[die_parity]`)";
    Integer "unrecovered_reads" Count: c.counts.unrecovered,
        "host reads of data that neither a retry nor parity brings back (`[die_parity]`)";
    Integer "die_relocated_bytes" Bytes: c.counts.relocated * SLOT,
        "of `gc_moved_bytes`, relocated from a lost die (`[die_parity]`)";
}

/// Runtime state of the section.
#[derive(Clone, Debug)]
pub(crate) struct DieParity {
    pub config: DieParityConfig,
    pub lost: Option<u32>,
    /// The reclaim unit from which data of the lost die are relocated next, and when.
    next: Option<(u32, Nanos)>,
    pub counts: DieParityCounts,
    /// Flash reads of a host command more than those that it began: with those of stripes, of which
    /// some begin when a read has failed, without those of the lost die.
    pub more_reads: i64,
}

impl DieParity {
    pub(crate) fn of(config: Option<DieParityConfig>) -> Option<Box<Self>> {
        let (counts, lost, next, more_reads) = (DieParityCounts::default(), None, None, 0);
        config.map(|config| Box::new(Self { config, lost, next, counts, more_reads }))
    }

    pub(crate) fn lose(&mut self, die: u32, now: Nanos) {
        self.lost = Some(die);
        // Without parity there is nothing to relocate.
        self.next = (self.config.stripe > 1).then(|| (0, now + self.config.relocate_interval));
    }

    /// When the next relocation is due, if not after `until`.
    pub(crate) fn due(&self, until: Nanos) -> Option<Nanos> {
        self.next.map(|(_, at)| at).filter(|&at| at <= until)
    }

    /// The lost die and the unit that is due.
    pub(crate) fn next(&self) -> Option<(u32, ReclaimUnitId)> {
        self.lost.zip(self.next.map(|(unit, _)| ReclaimUnitId(unit)))
    }

    /// A unit of `units` has been looked at; `moved` slots of it were relocated.
    pub(crate) fn relocated(&mut self, units: u32, moved: u64) {
        self.counts.relocated += moved;
        let Some((unit, at)) = self.next else { return };
        let pause = if moved > 0 { self.config.relocate_interval } else { Nanos::ZERO };
        self.next = (unit + 1 < units).then_some((unit + 1, at + pause));
    }

    /// The dies are busy with what was relocated before.
    pub(crate) fn postpone(&mut self) {
        let interval = self.config.relocate_interval;
        self.next = self.next.map(|(unit, at)| (unit, at + interval));
    }

    pub(crate) fn is_relocating(&self) -> bool {
        self.next.is_some()
    }

    pub(crate) fn save(&self, out: &mut WordWriter) {
        out.put(self.lost.map_or(0, |die| u64::from(die) + 1));
        out.put(self.next.map_or(0, |(unit, _)| u64::from(unit) + 1));
        out.put(self.next.map_or(0, |(_, at)| at.0));
        out.counts(self.counts.to_array());
    }

    pub(crate) fn restore(&mut self, input: &mut WordReader<'_>) -> Result<(), CodecError> {
        self.lost = input.get()?.checked_sub(1).map(|die| die as u32);
        let (unit, at) = (input.get()?.checked_sub(1), Nanos(input.get()?));
        self.next = unit.map(|unit| (unit as u32, at));
        self.counts = DieParityCounts::from_array(input.counts()?);
        Ok(())
    }
}
