//! FTL state that all reclaim groups share.

use writecliff_base::{Lpn, Prng, ReclaimUnitId, saved};
use writecliff_flash::{Geometry, Wear};

use crate::frontier::{Frontier, Frontiers};
use crate::gc_log::GcLog;
use crate::map::{Map, Released};
use crate::reduce::{Pack, Packer};
use crate::spare::SelfTuned;
use crate::table::Owner;
use crate::{BadBlocks, Counters, FlashSink, FrontierId, FtlConfig, ReductionCounters, UnitTable};

const SEED_LABEL: u64 = 0x0046_544c;

/// State that all reclaim groups share. `Group` holds the state of an individual group.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    pub geometry: Geometry,
    pub config: FtlConfig,
    pub map: Map,
    pub table: UnitTable,
    pub wear: Wear,
    pub frontiers: Frontiers,
    /// Measurements of the spare policy; `None` if the policy takes no measurements.
    pub spare: Option<SelfTuned>,
    pub counters: Counters,
    /// Allocation units relocated by GC and wear levelling, by the stream of the previous unit. The
    /// last element counts units that hold relocated data from several streams. The counts are not
    /// saved: they start at 0 when the FTL is created or restored.
    pub moved_by_stream: Vec<u64>,
    pub gc_log: GcLog,
    pub random: Prng,
    /// Fill levels of program units, if the controller compresses or deduplicates.
    pub packer: Option<Box<Packer>>,
    /// Blocks and their failures, if the device file has `[bad_blocks]`.
    pub bad_blocks: Option<Box<BadBlocks>>,
    pub parity: DieParity,
}

// `state.rs` saves the maps and other large arrays.
saved! {
    Parts { frontiers, (spare), counters, gc_log, random, (packer), (bad_blocks), parity }
}

impl Parts {
    pub(crate) fn new(geometry: Geometry, config: FtlConfig) -> Self {
        let units = geometry.reclaim_units;
        assert!(config.user_slots < geometry.raw_slots(), "the flash holds the user capacity");
        let mut table = UnitTable::new(units, config.alloc_units(geometry.slots_per_reclaim_unit));
        let bad_blocks = config.blocks(&geometry).map(Box::new);
        for &unit in bad_blocks.iter().flat_map(|bad| &bad.dropped_when_new) {
            table.drop_unit(unit);
        }
        Self {
            map: Map::new(&config, &geometry),
            table,
            wear: Wear::new(units, config.rated_cycles),
            frontiers: Frontiers::new(config.streams, geometry.reclaim_groups),
            spare: config.spare.measurements(config.streams, units),
            counters: Counters::default(),
            moved_by_stream: vec![0; config.streams as usize + 1],
            gc_log: GcLog::default(),
            random: Prng::derive(config.seed, SEED_LABEL),
            packer: Packer::new(&config, &geometry),
            bad_blocks,
            parity: DieParity::new(&geometry),
            geometry,
            config,
        }
    }

    /// Discards all data. The operation preserves counters and wear.
    pub(crate) fn purge(&mut self) {
        for unit in (0..self.table.len()).map(ReclaimUnitId) {
            if !self.table.erased[unit.index()] {
                self.wear.record_erase(unit);
            }
        }
        self.map.purge();
        self.table.purge();
        self.frontiers.all.fill(Frontier::CLOSED);
        self.spare = self.config.spare.measurements(self.config.streams, self.table.len());
        if let Some(packer) = &mut self.packer {
            packer.packs.fill(Pack::default());
        }
        if let Some(bad) = &mut self.bad_blocks {
            // The data of these units have been purged.
            bad.due.clear();
        }
    }

    #[inline]
    pub(crate) fn invalidate(&mut self, released: Option<Released>) {
        if let Some(Released { ppa, alloc_units }) = released {
            debug_assert!(!ppa.is_none(), "data without an address are released");
            self.table.invalidate(self.geometry.reclaim_unit_of(ppa), alloc_units);
        }
    }

    /// Reads the old data of a partly written slot.
    #[cold]
    pub(crate) fn merge<S: FlashSink>(&self, frontier: FrontierId, lpn: Lpn, sink: &mut S) {
        let old = self.map.lookup(lpn);
        if !old.is_none() {
            sink.read_for(frontier, old, 1);
        }
    }

    /// Counts data that the host has stored.
    pub(crate) fn stored(&mut self, count: impl FnOnce(&mut ReductionCounters)) {
        count(&mut self.packer.as_mut().expect("a drive that reduces data").counters);
    }

    #[inline]
    pub(crate) fn destination(&self, unit: ReclaimUnitId) -> FrontierId {
        self.frontiers.destination(self.config.gc_destination, self.table.owner[unit.index()])
    }

    /// Returns the number of allocation units that fit into the open unit of a frontier.
    pub(crate) fn unwritten(&self, id: FrontierId, f: &Frontier) -> i64 {
        match &self.packer {
            None => i64::from(f.room()),
            Some(packer) => packer.unwritten(id, f, self.geometry.ppas_per_program_unit),
        }
    }

    /// Returns the number of slots, or pieces, in the program unit that a frontier is filling.
    pub(crate) fn filled(&self, id: FrontierId) -> u32 {
        match &self.packer {
            None => self.frontiers[id].filled(self.geometry.ppas_per_program_unit),
            Some(packer) => packer.packs[id.index()].pieces,
        }
    }

    pub(crate) fn full_units(&self, unit: ReclaimUnitId) -> u32 {
        let ppas = self.geometry.ppas_per_program_unit;
        let full = |id| (self.frontiers[id].fill_end - self.geometry.first_ppa(unit)) / ppas - 1;
        self.frontiers.of_unit(unit).map_or(0, full)
    }

    /// Counts relocated data for their stream. Out of line, because it is rare.
    #[inline(never)]
    pub(crate) fn note_moved(&mut self, owner: Owner, moved: u32) {
        debug_assert!(moved <= self.table.unit_size, "more than a unit holds");
        let handle = self.frontiers.handle_of(owner.stream);
        let is_mixed = owner.relocated && !self.config.gc_destination.isolates(handle);
        let stream = if is_mixed { self.config.streams } else { owner.stream.0 };
        self.moved_by_stream[usize::from(stream)] += u64::from(moved);
    }

    /// Frees a reclaim unit, and marks the program units that are being filled at this time.
    #[inline(never)]
    pub(crate) fn free(&mut self, unit: ReclaimUnitId) {
        let number = self.counters.collections;
        self.table.free(unit, number);
        let ppas = self.geometry.ppas_per_program_unit;
        for f in self.frontiers.all.iter_mut().filter(|f| f.filled(ppas) > 0) {
            f.since = f.since.min(number);
        }
        self.counters.collections += 1;
    }
}

/// Stripes of program units across dies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DieParity {
    /// Lost die, which the FTL no longer writes to.
    pub lost_die: Option<u32>,
    /// `true` if dies are organised in stripes or a die is lost.
    pub is_in_use: bool,
    /// Number of parity units programmed.
    pub programs: u64,
}

saved! { DieParity { lost_die, is_in_use, programs } }

impl DieParity {
    pub(crate) fn new(geometry: &Geometry) -> Self {
        Self { lost_die: None, is_in_use: geometry.stripes.is_some(), programs: 0 }
    }

    pub(crate) fn lose_die(&mut self, die: u32) {
        assert!(self.lost_die.is_none(), "a drive loses one die");
        (self.lost_die, self.is_in_use) = (Some(die), true);
    }

    /// Counts the parity that is programmed after a program unit.
    #[cold]
    pub(crate) fn count_behind(&mut self, unit: u32, geometry: &Geometry) {
        if let Some(stripes) = &geometry.stripes {
            let (row, place) = geometry.row_and_place(unit);
            self.programs += u64::from(stripes.parity_behind(row, place, self.lost_die).is_some());
        }
    }
}
