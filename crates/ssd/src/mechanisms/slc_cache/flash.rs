//! The flash of an SLC cache among the dies' operations.

use std::ops::Range;

use writecliff_base::ReclaimUnitId;
use writecliff_flash::Geometry;
use writecliff_ftl::ProgramUnit;
use writecliff_ftl::frontier::FrontierId;

use crate::config::DeviceConfig;
use crate::die::{FRONT_MEDIUM, FlashOperation, ReadFor, sense_medium};
use crate::fill::Fills;
use crate::front;

/// The numbers of the front's own flash in flash operations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrontFlash {
    /// Its frontier, numbered after those of the FTL.
    pub frontier: FrontierId,
    /// Its number among the reclaim units: one after the last. In erases, the numbers after it are
    /// its blocks after the first.
    pub unit: ReclaimUnitId,
    /// Slots of a block on all dies.
    block_slots: u32,
}

impl FrontFlash {
    pub(crate) fn of(config: &DeviceConfig) -> Self {
        Self {
            frontier: front::own_frontier(config),
            unit: ReclaimUnitId(config.geometry.reclaim_units),
            block_slots: front::block_slots(&config.geometry) as u32,
        }
    }

    /// Returns the reclaim unit by which an erase names a block.
    pub(crate) fn block(&self, block: u32) -> ReclaimUnitId {
        ReclaimUnitId(self.unit.0 + block)
    }

    /// Returns `true` if an erase names a block of the front.
    pub(crate) fn has_block(&self, unit: ReclaimUnitId) -> bool {
        unit.0 >= self.unit.0
    }

    /// Returns a read of slots of a unit, and its die.
    pub(crate) fn read(
        geometry: &Geometry,
        unit: u32,
        slots: u32,
        purpose: ReadFor,
    ) -> (usize, FlashOperation) {
        let sense = sense_medium(FRONT_MEDIUM);
        let operation = FlashOperation::Read { sense, slots: slots as u8, purpose };
        (geometry.die_of_unit(unit) as usize, operation)
    }

    /// Addresses that an erase of all dies clears: of a reclaim unit, or of a block of the front.
    pub(crate) fn ppas_of_erase(&self, geometry: &Geometry, unit: ReclaimUnitId) -> Range<u32> {
        if !self.has_block(unit) {
            return geometry.ppas(unit);
        }
        let first = geometry.first_ppa(self.unit);
        let block = unit.0 - self.unit.0;
        first + block * self.block_slots..first + (block + 1) * self.block_slots
    }

    /// Addresses of a program unit, or of a unit of the front.
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
