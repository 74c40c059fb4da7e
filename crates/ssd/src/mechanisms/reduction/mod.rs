//! Writes on a drive with data reduction (section `[reduction]`).

mod section;

use writecliff_base::Lpn;
use writecliff_flash::geometry::SLOT_BYTES;
use writecliff_ftl::FastForward;
use writecliff_host_interface::Command;

use crate::attribution::Recorder;
use crate::ssd::Ssd;
use crate::ssd::io::slot_overlap;
pub(crate) use section::{Keys, read};

impl<R: Recorder> Ssd<R> {
    /// Writes reduced data; returns whether they are durable. Duplicates leave the buffer at once
    /// and are as durable as the data that they duplicate.
    pub(crate) fn write_reduced(
        &mut self,
        number: u16,
        command: &Command,
        first: Lpn,
        slots: u32,
    ) -> bool {
        let durable = self.write_cache || self.config.controller.power_loss_protection;
        let end = command.offset + u64::from(command.length);
        let mut repeats_buffered = false;
        for n in 0..slots {
            let lpn = Lpn(first.0 + n);
            let bytes = slot_overlap(lpn, command.offset, end);
            let content = command.content.of_slot(n);
            if !self.ftl.takes_space(content, bytes) {
                self.buffer_free += 1;
                repeats_buffered |= self.is_in_buffer(content.same_as);
            } else if !durable {
                self.ftl.make_fit(command.stream, content, &mut self.backend);
                self.wait_for_current_unit(number, self.ftl.host_frontier(command.stream));
            }
            self.ftl.write_reduced(lpn, command.stream, bytes, content, &mut self.backend);
        }
        if !durable && repeats_buffered {
            self.wait_for_all_units(number);
        } else if !durable && self.writes_in_transfer == 0 {
            self.close_units(true);
        }
        self.admit_writes();
        durable || self.commands.get(number).pending == 0
    }

    fn is_in_buffer(&self, lpn: Lpn) -> bool {
        let ppa = self.ftl.lookup(lpn);
        self.is_buffered(ppa, &self.config.geometry.locate(ppa))
    }

    pub(crate) fn fast_forward_reduced(&mut self, command: &Command) {
        let slot = u64::from(SLOT_BYTES);
        let end = command.offset + u64::from(command.length);
        for (n, lpn) in (command.offset / slot..end.div_ceil(slot)).enumerate() {
            let lpn = Lpn(lpn as u32);
            let bytes = slot_overlap(lpn, command.offset, end);
            let content = command.content.of_slot(n as u32);
            self.ftl.write_reduced(lpn, command.stream, bytes, content, &mut FastForward);
        }
    }
}
