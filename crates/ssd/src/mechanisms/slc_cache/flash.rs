//! Operations of an SLC cache on the dies.

use std::ops::Range;

use writecliff_base::ReclaimUnitId;
use writecliff_ftl::ProgramUnit;
use writecliff_ftl::frontier::FrontierId;

use super::LogSink;
use crate::attribution::Recorder;
use crate::backend::Backend;
use crate::backend::sink::{Awaits, HeldErase};
use crate::die::{FRONT_MEDIUM, FlashOperation, ReadFor, sense_medium};
use crate::fill::FillId;

impl<R: Recorder> Backend<R> {
    /// Reads `slots` slots of a unit of the SLC cache for a host command.
    pub fn host_read_slc(&mut self, command: u16, unit: u32, slots: u32) {
        let purpose = ReadFor::Host { command };
        let sense = sense_medium(FRONT_MEDIUM);
        let operation = FlashOperation::Read { sense, slots: slots as u8, purpose };
        self.queue_read(self.geometry.die_of_unit(unit) as usize, operation);
    }

    /// Addresses that an erase of all dies clears: of a reclaim unit, or of a block of the cache.
    pub(crate) fn ppas_of_erase(&self, unit: ReclaimUnitId) -> Range<u32> {
        if unit.0 < self.front_unit.0 {
            return self.geometry.ppas(unit);
        }
        let first = self.geometry.first_ppa(self.front_unit);
        let block = unit.0 - self.front_unit.0;
        first + block * self.front_block_slots..first + (block + 1) * self.front_block_slots
    }

    /// Addresses of a program unit, or of a unit of the cache.
    #[inline]
    pub(crate) fn ppas_of_program(&self, unit: &ProgramUnit) -> Range<u32> {
        if unit.reclaim_unit != self.front_unit {
            return self.geometry.unit_ppas(unit.reclaim_unit, unit.unit);
        }
        let slots = self.geometry.slots_per_read_group;
        let first = self.geometry.first_ppa(self.front_unit) + unit.unit * slots;
        first..first + slots
    }

    /// Returns `true` if a unit of the SLC cache is full but not yet on flash.
    pub fn is_slc_in_flight(&self, unit: u32) -> bool {
        self.fills.is_in_flight(self.front_unit.index(), unit)
    }
}

impl<R: Recorder> LogSink for Backend<R> {
    fn read_slc_for(&mut self, frontier: FrontierId, unit: u32, slots: u32) {
        if self.is_slc_in_flight(unit) {
            return;
        }
        let fill = self.fills.current(frontier);
        self.fills.get(fill).reads_pending += 1;
        let purpose = ReadFor::Fill { fill };
        let sense = sense_medium(FRONT_MEDIUM);
        let operation = FlashOperation::Read { sense, slots: slots as u8, purpose };
        self.work(self.geometry.die_of_unit(unit) as usize, operation);
    }

    fn program_slc(&mut self, unit: u32, data_slots: u32, since: u64) {
        let (frontier, reclaim_unit) = (self.front_frontier, self.front_unit);
        let full = ProgramUnit { reclaim_unit, unit, data_slots, moved_slots: 0, since };
        if let Some(fill) = self.fills.filled(frontier, full) {
            Self::program(self, fill);
        }
    }

    fn erase_slc(&mut self, block: u32) {
        self.recorder.journaled();
        let unit = ReclaimUnitId(self.front_unit.0 + block);
        let awaited: Vec<FillId> = self.fills.outstanding().collect();
        if !self.is_volatile || awaited.is_empty() {
            return self.erase_now(unit);
        }
        let fill = self.fills.current(self.front_frontier);
        self.fills.get(fill).reads_pending += 1;
        self.held_erases.push(HeldErase {
            unit,
            is_erased: false,
            awaits: Awaits::Fills(awaited),
            fill,
        });
        self.recorder.held(self.ppas_of_erase(unit));
    }
}
