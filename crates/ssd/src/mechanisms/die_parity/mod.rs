//! Parity across dies: section `[die_parity]` of a device file.
//!
//! In each stripe, the dies take turns in holding the parity of the others (`flash/die_parity.rs`).
//! Parity takes up one die's fraction of the space, and is programmed together with the last data
//! unit of its row. If no retry corrects a read, the drive reads all other dies of the stripe. Such
//! reads also return the data of a lost die. The firmware relocates these data one reclaim unit per
//! interval, unless the dies are still busy with the previous unit.

mod failure;
mod flash;
mod section;

use writecliff_base::{Nanos, counters, counts, saved};
use writecliff_flash::SLOT_BYTES;

pub(crate) use failure::Relocation;
pub use section::DieParityConfig;

counts! {
    /// Counters of parity across dies since the drive was new.
    pub struct DieParityCounts {
        /// Parity units programmed during timed simulation.
        programs,
        /// Host reads served from the other dies of the stripe.
        rebuilt,
        /// Host reads that neither retries nor the stripe could recover.
        unrecovered,
        /// Slots relocated from a lost die.
        relocated,
    }
}

/// Counters reported by the drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DieParityCounters {
    /// Counters since the drive was new.
    pub counts: DieParityCounts,
    /// Flash slots occupied by parity.
    pub parity_slots: u64,
}

const SLOT: u64 = SLOT_BYTES as u64;

counters! { |c: DieParityCounters|
    Integer "parity_write_bytes" Bytes: c.parity_slots * SLOT,
        "portion of `nand_write_bytes` that is parity across dies (`[die_parity]`)";
    Integer "rebuilt_reads" Count: c.counts.rebuilt,
        "host reads rebuilt from the other dies of the stripe (`[die_parity]`)";
    Integer "unrecovered_reads" Count: c.counts.unrecovered,
        "host reads whose data neither a retry nor parity recovers (`[die_parity]`)";
    Integer "die_relocated_bytes" Bytes: c.counts.relocated * SLOT,
        "portion of `gc_moved_bytes` relocated from a lost die (`[die_parity]`)";
}

/// Runtime state of the section.
#[derive(Clone, Debug)]
pub(crate) struct DieParity {
    pub config: DieParityConfig,
    pub lost: Option<u32>,
    /// Reclaim unit that is next for relocation of the lost die's data, and the time of the
    /// relocation.
    pub next: Option<(u32, Nanos)>,
    pub counts: DieParityCounts,
    /// Number of flash reads of a host command in addition to the reads that it started. The number
    /// includes reads of stripes, some of which start after a failed read, and excludes reads of
    /// the lost die.
    pub more_reads: i64,
}

saved! { DieParity { lost, next, counts } }

impl DieParity {
    pub(crate) fn lose(&mut self, die: u32, now: Nanos) {
        assert!(self.lost.is_none(), "a drive loses one die");
        self.lost = Some(die);
        // If the drive has no parity, the data of the failed die cannot be relocated.
        self.next = (self.config.stripe > 1).then(|| (0, now + self.config.relocate_interval));
    }

    /// Records that `moved` slots of the unit were relocated; the drive has `units` units.
    pub(crate) fn relocated(&mut self, units: u32, moved: u64) {
        self.counts.relocated += moved;
        let Some((unit, at)) = self.next else { return };
        let pause = if moved > 0 { self.config.relocate_interval } else { Nanos::ZERO };
        self.next = (unit + 1 < units).then_some((unit + 1, at + pause));
    }
}
