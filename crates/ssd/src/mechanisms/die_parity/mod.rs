//! Parity across dies: section `[die_parity]` of a device file.
//!
//! In each stripe, the dies take turns in holding the parity of the others (`flash/die_parity.rs`).
//! Parity takes up one die's fraction of the space, and is programmed together with the last data
//! unit of its row. If no retry corrects a read, the drive reads all other dies of the stripe. Such
//! reads also return the data of a lost die. The firmware relocates these data one reclaim unit per
//! interval, unless the dies are still busy with the previous unit.

pub(crate) mod flash;

use writecliff_base::keys::{Count, PositiveTime};
use writecliff_base::located::{Change, Table};
use writecliff_base::{Nanos, ReclaimUnitId, SLOT_BYTES, counters, counts, saved, section};

use crate::device_file::scaled::shorter;
use crate::mechanisms::{Checked, Described, Mechanism, MechanismSection, Resizing, steps};
use crate::{DeviceConfig, Recorder, Ssd, Storage};

counts! {
    /// Counters of parity across dies since the drive was new.
    pub struct DieParityCounts {
        /// Parity units programmed during timed simulation.
        programs,
        rebuilt,
        unrecovered,
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

counters! { |c: DieParityCounters|
    Integer "parity_write_bytes" Bytes: c.parity_slots * SLOT_BYTES,
        "portion of `nand_write_bytes` that is parity across dies (`[die_parity]`)";
    Integer "rebuilt_reads" Count: c.counts.rebuilt,
        "host reads rebuilt from the other dies of the stripe (`[die_parity]`)";
    Integer "unrecovered_reads" Count: c.counts.unrecovered,
        "host reads whose data neither a retry nor parity recovers (`[die_parity]`)";
    Integer "die_relocated_bytes" Bytes: c.counts.relocated * SLOT_BYTES,
        "portion of `gc_moved_bytes` relocated from a lost die (`[die_parity]`)";
}

#[derive(Clone, Debug)]
pub(crate) struct DieParity {
    pub config: DieParityConfig,
    pub lost: Option<u32>,
    /// Reclaim unit from which the lost die's data are relocated next, and the time of that.
    pub next: Option<(u32, Nanos)>,
    pub counts: DieParityCounts,
    /// Number of flash reads of a host command in addition to the reads that it started. The number
    /// includes reads of stripes, some after a failed read, and excludes reads of the lost die.
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

section! {
    /// Parity across dies, which rebuilds the data of a lost die.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct DieParityConfig {
        stripe: required Count(1..=64),
            "dies per stripe, including the parity die; must divide the number of dies; 1: no \
             parity";
        // The default is a fraction of the time that programming all dies takes.
        relocate_interval: default PositiveTime = Nanos(10_000_000),
            "interval between two reclaim units whose data on a lost die are relocated";
    }
}

impl MechanismSection for DieParityConfig {
    type Keys = Self;

    /// Reserves the flash space for parity.
    fn check(config: Self::Keys, table: &Table<'_>, drive: &mut Described<'_>) -> Checked<Self> {
        if config.stripe > 1 {
            let geometry = drive.geometry.clone().with_parity(config.stripe);
            drive.geometry = geometry.map_err(|e| table.error(e.key, e.to_string(), None))?;
        }
        Ok(Some(config))
    }

    fn scaled(&self, drive: &Resizing<'_>) -> Vec<Change> {
        vec![shorter("die_parity.relocate_interval", self.relocate_interval, drive.scale)]
    }
}

impl DieParityCounters {
    pub(crate) fn of<R: Recorder>(storage: &Storage<R>) -> Option<Self> {
        let counts = storage.backend.mechanisms.die_parity.as_ref()?.counts;
        Some(Self { counts, parity_slots: parity_slots(storage) })
    }
}

fn parity_slots<R: Recorder>(storage: &Storage<R>) -> u64 {
    let unit = storage.backend.geometry.slots_per_program_unit;
    storage.ftl.parity_programs() * u64::from(unit)
}

/// Relocation of data from a lost die, one reclaim unit per interval; its state is in the dies.
pub(crate) struct Relocation;

saved! { Relocation {} }

impl Mechanism for Relocation {
    const STEPS: u8 = steps::COMMANDS;

    fn of(config: &DeviceConfig) -> Option<Box<Self>> {
        config.sections.die_parity.map(|_| Box::new(Self))
    }

    fn next_work<R: Recorder>(&self, drive: &Ssd<R>, until: Nanos) -> Option<Nanos> {
        let parity = drive.storage.backend.mechanisms.die_parity.as_ref()?;
        parity.next.map(|(_, at)| at).filter(|&at| at <= until)
    }

    /// Relocates the lost die's data in the reclaim unit that is due.
    #[cold]
    fn work<R: Recorder>(&mut self, drive: &mut Ssd<R>) {
        let Storage { ftl, backend, .. } = &mut drive.storage;
        let Some(parity) = &mut backend.mechanisms.die_parity else { return };
        let (Some(die), Some((unit, at))) = (parity.lost, &mut parity.next) else { return };
        if backend.fills.outstanding().count() >= backend.geometry.dies as usize {
            // Relocation is no faster than the dies can program.
            *at += parity.config.relocate_interval;
            return;
        }
        let moved = ftl.evacuate(ReclaimUnitId(*unit), die, backend);
        let units = backend.geometry.reclaim_units;
        if let Some(parity) = &mut backend.mechanisms.die_parity {
            parity.relocated(units, moved);
        }
    }

    fn own_slots<R: Recorder>(&self, drive: &Ssd<R>) -> u64 {
        parity_slots(&drive.storage)
    }
}
