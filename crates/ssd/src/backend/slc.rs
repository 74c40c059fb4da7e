//! Operations of an SLC cache on the dies.

use writecliff_ftl::ProgramUnit;
use writecliff_ftl::frontier::FrontierId;

use super::Backend;
use crate::attribution::Recorder;
use crate::die::{FlashOperation, ReadFor, SENSE_SLC};
use crate::slc_cache::SlcSink;

impl<R: Recorder> Backend<R> {
    /// Reads `slots` slots of a unit of the SLC cache for a host command.
    pub fn host_read_slc(&mut self, command: u16, unit: u32, slots: u32) {
        let purpose = ReadFor::Host { command };
        let operation = FlashOperation::Read { sense: SENSE_SLC, slots: slots as u8, purpose };
        self.queue_read(self.geometry.die_of_unit(unit) as usize, operation);
    }

    /// Whether a unit of the SLC cache is full but not yet on flash.
    pub fn is_slc_in_flight(&self, unit: u32) -> bool {
        self.fills.is_in_flight(self.slc_unit.index(), unit)
    }
}

impl<R: Recorder> SlcSink for Backend<R> {
    fn read_slc_for(&mut self, frontier: FrontierId, unit: u32, slots: u32) {
        if self.is_slc_in_flight(unit) {
            return;
        }
        let fill = self.fills.current(frontier);
        self.fills.get(fill).reads_pending += 1;
        let purpose = ReadFor::Fill { fill };
        let operation = FlashOperation::Read { sense: SENSE_SLC, slots: slots as u8, purpose };
        self.work(self.geometry.die_of_unit(unit) as usize, operation);
    }

    fn program_slc(&mut self, unit: u32, data_slots: u32) {
        let (frontier, reclaim_unit) = (self.slc_frontier, self.slc_unit);
        let since = u64::MAX;
        let full = ProgramUnit { reclaim_unit, unit, data_slots, moved_slots: 0, since };
        if let Some(fill) = self.fills.filled(frontier, full) {
            Self::program(self, fill);
        }
    }

    fn erase_slc(&mut self) {
        for die in 0..self.dies.len() {
            self.work(die, FlashOperation::Erase { unit: self.slc_unit });
        }
    }
}
