//! Operations of a mapping table on flash: its translation pages are read, and written back.

use crate::attribution::Recorder;
use crate::backend::Backend;
use crate::die::{FlashOperation, PROGRAM_MAPPING, ReadFor, SENSE_MAPPING};
use crate::fill::NO_FILL;
use crate::mechanisms::mapping_cache::LoadId;

impl<R: Recorder> Backend<R> {
    /// Reads a translation page of `slots` slots: for a host read with its priority, for a write
    /// after the other work of the die.
    pub(crate) fn read_mapping(&mut self, die: u16, slots: u32, load: LoadId, for_write: bool) {
        let purpose = ReadFor::Mapping { load };
        let operation = FlashOperation::Read { sense: SENSE_MAPPING, slots: slots as u8, purpose };
        if for_write {
            self.work(usize::from(die), operation);
        } else {
            self.queue_read(usize::from(die), operation);
        }
    }

    /// Programs translation pages.
    pub(crate) fn program_mapping(&mut self, die: u16) {
        let operation = FlashOperation::Program { fill: NO_FILL, page_type: PROGRAM_MAPPING };
        self.work(usize::from(die), operation);
    }
}
