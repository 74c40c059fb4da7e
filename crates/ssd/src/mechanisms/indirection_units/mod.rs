//! Writes to a drive with indirection units above 4 KiB.

mod section;

use writecliff_base::StreamId;
use writecliff_flash::geometry::SLOT_BYTES;
use writecliff_ftl::{FastForward, FlashSink, Ftl};
use writecliff_host_interface::Command;

use crate::attribution::Recorder;
use crate::ssd::Ssd;
pub(crate) use section::{slots, units};

impl<R: Recorder> Ssd<R> {
    /// Whether parts of units are merged with the rest.
    pub(crate) fn has_large_units(&self) -> bool {
        self.config.indirection_slots > 1
    }

    /// Writes all units that a command touches. The rest of them passes through the buffer, too.
    pub(crate) fn write_in_units(&mut self, command: &Command, slots: u32) {
        self.backend.recorder.writing(command.tag);
        let stream = self.data_placement.route(command.stream, command.length, self.backend.now);
        let written = self.ftl.counters().host_slots;
        let size = self.config.indirection_slots;
        write_units(&mut self.ftl, command, stream, size, &mut self.backend);
        let more = self.ftl.counters().host_slots - written - u64::from(slots);
        self.buffer_free -= more as i64;
    }

    /// The same on the fast-forward clock.
    pub(crate) fn fast_forward_in_units(&mut self, command: &Command) {
        let now = self.backend.now;
        let stream = self.data_placement.route(command.stream, command.length, now);
        let size = self.config.indirection_slots;
        write_units(&mut self.ftl, command, stream, size, &mut FastForward);
    }
}

fn write_units<S: FlashSink>(
    ftl: &mut Ftl,
    command: &Command,
    stream: StreamId,
    size: u32,
    sink: &mut S,
) {
    let slot = u64::from(SLOT_BYTES);
    let end = command.offset + u64::from(command.length);
    let (first, last) = ((command.offset / slot) as u32, end.div_ceil(slot) as u32);
    let user_slots = ftl.user_slots();
    for unit in units(first, last, size, user_slots) {
        let from = (u64::from(unit.start) * slot).max(command.offset);
        let bytes = (u64::from(unit.end) * slot).min(end) - from;
        ftl.write_unit(unit, stream, bytes as u32, sink);
    }
}
