//! Writes to a drive with several reclaim groups.

mod section;

use writecliff_base::{Lpn, StreamId};
use writecliff_flash::geometry::SLOT_BYTES;
use writecliff_ftl::{FastForward, FlashSink, Ftl};
use writecliff_host_interface::Command;

use crate::attribution::Recorder;
use crate::ssd::Ssd;
use crate::ssd::io::slot_overlap;
pub(crate) use section::{check, divided};

impl<R: Recorder> Ssd<R> {
    pub(crate) fn has_groups(&self) -> bool {
        self.config.geometry.reclaim_groups() > 1
    }

    /// Writes in the reclaim group that the placement identifier names. It has power-loss
    /// protection, so the data are durable.
    pub(crate) fn write_in_group(&mut self, command: &Command) {
        self.backend.recorder.writing(command.tag);
        let stream = self.data_placement.route(command.stream, command.length, self.backend.now);
        let elsewhere = write_slots(&mut self.ftl, command, stream, &mut self.backend);
        self.note_elsewhere(command, elsewhere);
    }

    /// The same on the fast-forward clock.
    pub(crate) fn fast_forward_in_group(&mut self, command: &Command) {
        let now = self.backend.now;
        let stream = self.data_placement.route(command.stream, command.length, now);
        let elsewhere = write_slots(&mut self.ftl, command, stream, &mut FastForward);
        self.note_elsewhere(command, elsewhere);
    }

    fn note_elsewhere(&mut self, command: &Command, bytes: u32) {
        if bytes > 0 {
            self.data_placement.tally.overflow(command.stream.0, bytes);
        }
    }
}

/// Returns how many bytes went to another group, as theirs was full.
fn write_slots<S: FlashSink>(
    ftl: &mut Ftl,
    command: &Command,
    wanted: StreamId,
    sink: &mut S,
) -> u32 {
    let slot = u64::from(SLOT_BYTES);
    let end = command.offset + u64::from(command.length);
    let mut elsewhere = 0;
    for lpn in command.offset / slot..end.div_ceil(slot) {
        let lpn = Lpn(lpn as u32);
        let bytes = slot_overlap(lpn, command.offset, end);
        let stream = ftl.choose_stream(wanted);
        elsewhere += if stream == wanted { 0 } else { bytes };
        ftl.write(lpn, stream, bytes, sink);
    }
    elsewhere
}
