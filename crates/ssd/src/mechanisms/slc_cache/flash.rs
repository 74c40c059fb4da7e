//! Flash operations of an SLC cache on the dies.

use std::ops::Range;

use writecliff_base::ReclaimUnitId;
use writecliff_flash::Geometry;
use writecliff_ftl::{FrontierId, ProgramUnit};

use crate::die::{FRONT_MEDIUM, sense_medium};
use crate::fill::Fills;
use crate::{DeviceConfig, FlashOperation, ReadFor};

/// Numbers that represent the front's own flash in flash operations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrontFlash {
    /// Frontier of the front, numbered after the FTL's frontiers.
    pub frontier: FrontierId,
    /// The front's reclaim unit, after the FTL's. In erases, this unit plus n is its block n.
    pub unit: ReclaimUnitId,
    /// Number of slots per block, over all dies.
    block_slots: u32,
    /// Upper bound on the number of blocks.
    blocks: u32,
}

impl FrontFlash {
    pub(crate) fn of(config: &DeviceConfig) -> Self {
        let block_slots = super::block_slots(&config.geometry);
        let slots = config.sections.addresses();
        Self {
            frontier: FrontierId(2 * config.ftl.streams),
            unit: ReclaimUnitId(config.geometry.reclaim_units),
            block_slots: block_slots as u32,
            blocks: if slots > 0 { (slots.div_ceil(block_slots) + 2) as u32 } else { 0 },
        }
    }

    /// Returns the reclaim unit that represents a block in erases.
    pub(crate) fn block(&self, block: u32) -> ReclaimUnitId {
        debug_assert!(block < self.blocks, "no block of the log");
        ReclaimUnitId(self.unit.0 + block)
    }

    /// Returns `true` if `unit` represents a block of the front in erases.
    pub(crate) fn has_block(&self, unit: ReclaimUnitId) -> bool {
        unit.0.checked_sub(self.unit.0).is_some_and(|block| block < self.blocks)
    }

    /// Returns `true` if a program unit of the drive can be filled through a frontier.
    pub(crate) fn can_fill(&self, geometry: &Geometry, id: FrontierId, unit: &ProgramUnit) -> bool {
        let is_own = unit.reclaim_unit == self.unit && self.blocks > 0;
        let (units, slots) = if is_own {
            let slots = geometry.slots_per_read_group;
            (self.blocks * (self.block_slots / slots), slots)
        } else if unit.reclaim_unit.0 < geometry.reclaim_units {
            (geometry.program_units_per_reclaim_unit, geometry.ppas_per_program_unit)
        } else {
            return false;
        };
        is_own == (self.blocks > 0 && id == self.frontier)
            && unit.unit < units
            && unit.data_slots <= slots
            && unit.moved_slots <= unit.data_slots
    }

    /// Returns the die of a unit, and the read operation for `slots` of its slots.
    pub(crate) fn read(
        geometry: &Geometry,
        unit: u32,
        slots: u32,
        purpose: ReadFor,
    ) -> (usize, FlashOperation) {
        debug_assert!((1..=u32::from(u8::MAX)).contains(&slots), "a read of one page");
        let sense = sense_medium(FRONT_MEDIUM);
        let operation = FlashOperation::Read { sense, slots: slots as u8, purpose };
        (geometry.die_of_unit(unit) as usize, operation)
    }

    /// Returns the addresses that an erase of a reclaim unit, or of a block of the front, clears.
    pub(crate) fn ppas_of_erase(&self, geometry: &Geometry, unit: ReclaimUnitId) -> Range<u32> {
        if !self.has_block(unit) {
            return geometry.ppas(unit);
        }
        let first = geometry.first_ppa(self.unit);
        let block = unit.0 - self.unit.0;
        first + block * self.block_slots..first + (block + 1) * self.block_slots
    }

    /// Returns the addresses of a program unit, or of a unit of the front.
    #[inline]
    pub(crate) fn ppas_of_program(&self, geometry: &Geometry, unit: &ProgramUnit) -> Range<u32> {
        if unit.reclaim_unit != self.unit {
            return geometry.unit_ppas(unit.reclaim_unit, unit.unit);
        }
        let slots = geometry.slots_per_read_group;
        let first = geometry.first_ppa(self.unit) + unit.unit * slots;
        first..first + slots
    }

    /// Returns `true` if a unit of the front is full but not yet on flash.
    pub(crate) fn is_in_flight(&self, fills: &Fills, unit: u32) -> bool {
        fills.is_in_flight(self.unit.index(), unit)
    }
}
