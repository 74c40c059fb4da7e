//! Packs pieces of different sizes into program units.
//!
//! A piece gets the first free address of the read group where it starts, so the address determines
//! the die and page to read. Addresses where no piece starts remain unused.

use serde::{Deserialize, Serialize};
use writecliff_base::saved;
use writecliff_flash::Geometry;
use writecliff_host_interface::Content;
use writecliff_host_interface::content::SECTORS_PER_SLOT;

use super::{ReductionConfig, ReductionCounters};
use crate::frontier::Frontier;
use crate::{FrontierId, FtlConfig};

/// Fill level of a frontier's program unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pack {
    /// Used sectors, including those of a piece that continues from the previous unit.
    pub used: u32,
    /// Number of pieces that start in the unit.
    pub pieces: u32,
}

/// Fill levels of all frontiers, and counters of stored data.
#[derive(Clone, Debug)]
pub(crate) struct Packer {
    pub config: ReductionConfig,
    pub packs: Vec<Pack>,
    pub sectors_per_program_unit: u32,
    sectors_per_read_group: u32,
    pub counters: ReductionCounters,
}

saved! { Packer { [packs], counters } }

impl Packer {
    /// Returns `None` for a controller that stores all data unchanged.
    pub(crate) fn new(config: &FtlConfig, geometry: &Geometry) -> Option<Box<Self>> {
        let new = |reduction| Self {
            config: reduction,
            packs: vec![Pack::default(); 2 * usize::from(config.streams)],
            sectors_per_program_unit: geometry.slots_per_program_unit * SECTORS_PER_SLOT,
            sectors_per_read_group: geometry.slots_per_read_group * SECTORS_PER_SLOT,
            counters: ReductionCounters::default(),
        };
        config.reduction.map(|reduction| Box::new(new(reduction)))
    }

    /// Returns the number of sectors that data occupy.
    pub(crate) fn stored(&self, content: Content) -> u32 {
        content.sectors.clamp(self.config.min_stored_sectors, SECTORS_PER_SLOT)
    }

    /// Returns the number of unused sectors in the reclaim unit of an open frontier.
    pub(crate) fn unwritten(&self, id: FrontierId, f: &Frontier, ppas: u32) -> i64 {
        let units = (f.end - f.fill_end) / ppas + 1;
        i64::from(units * self.sectors_per_program_unit) - i64::from(self.packs[id.index()].used)
    }

    /// Returns `true` if a piece does not fit into the remaining space of an open reclaim unit.
    pub(crate) fn is_short(&self, id: FrontierId, f: &Frontier, sectors: u32) -> bool {
        !f.needs_unit()
            && f.fill_end == f.end
            && self.packs[id.index()].used + sectors > self.sectors_per_program_unit
    }

    /// Closes a frontier's partly filled program unit. Returns its pieces and empty sectors.
    pub(crate) fn close(&mut self, id: FrontierId) -> (u32, u32) {
        let size = self.sectors_per_program_unit;
        let Pack { used, pieces } = self.packs[id.index()];
        // Sectors beyond the end of the indirection unit belong to the next unit.
        self.packs[id.index()] = Pack { used: used.saturating_sub(size), pieces: 0 };
        let empty = size.saturating_sub(used);
        self.counters.padding_sectors += u64::from(empty);
        (pieces, empty)
    }

    /// Adds a piece to a program unit. Returns its address, and `true` if the unit is full.
    pub(crate) fn add(
        &mut self,
        id: FrontierId,
        f: &Frontier,
        sectors: u32,
        geometry: &Geometry,
    ) -> (u32, bool) {
        debug_assert!(!f.needs_unit(), "a piece without an open unit");
        let first = f.fill_end - geometry.ppas_per_program_unit;
        let group = self.packs[id.index()].used / self.sectors_per_read_group;
        let ppa = f.next.max(first + group * geometry.ppas_per_read_group);
        debug_assert!(ppa < f.fill_end, "more pieces than addresses");
        let size = self.sectors_per_program_unit;
        let pack = &mut self.packs[id.index()];
        debug_assert!(pack.used < size, "a full program unit is closed");
        pack.used += sectors;
        pack.pieces += 1;
        (ppa, pack.used >= size)
    }
}
