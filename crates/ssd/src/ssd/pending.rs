//! Saves and restores work in progress, and state that fast-forward does not update.

use writecliff_base::Nanos;
use writecliff_base::codec::CodecError;
use writecliff_ftl::frontier::FrontierId;

use super::Ssd;
use crate::attribution::Recorder;
use crate::front::Front;
use crate::mechanisms::power::ActiveTime;
use writecliff_base::words::{WordReader, WordWriter};

impl<R: Recorder> Ssd<R> {
    /// Saves all work in progress; the host must have no command outstanding.
    pub(crate) fn save_pending(&self, out: &mut WordWriter) {
        assert_eq!(self.commands.in_flight() + self.frontend.waiting(), 0);
        self.backend.save(out);
        if self.backend.die_parity.is_some() {
            out.put(self.ftl.parity_programs());
        }
        self.frontend.save(out);
        self.active.save(out);
        out.put(self.buffer_free as u64);
        out.put(self.host_read_bytes);
        out.put(self.unmapped_read_slots);
        out.put(self.write_cache);
        out.put(self.last_activity.0);
        out.put(self.idle_check_scheduled);
        self.mechanisms.save(out);
        self.front.save(out);
        if self.config.data_placement.is_some() {
            self.data_placement.save(self.ftl.gc_log(), out);
        }
    }

    pub(crate) fn restore_pending(&mut self, input: &mut WordReader<'_>) -> Result<(), CodecError> {
        assert_eq!(self.commands.in_flight() + self.frontend.waiting(), 0);
        self.backend.restore(input)?;
        if let Some(parity) = &self.backend.die_parity {
            self.ftl.restore_parity(parity.lost, input.get()?);
        }
        self.frontend.restore(input)?;
        self.active = ActiveTime::restore(input)?;
        self.buffer_free = input.get()? as i64;
        self.host_read_bytes = input.get()?;
        self.unmapped_read_slots = input.get()?;
        self.write_cache = input.flag()?;
        self.last_activity = Nanos(input.get()?);
        self.idle_check_scheduled = input.flag()?;
        self.mechanisms.restore(self.backend.fills.len(), input)?;
        self.front.restore(input)?;
        if self.config.data_placement.is_some() {
            self.data_placement.restore(self.ftl.gc_log_mut(), input)?;
        }
        Ok(())
    }

    pub(crate) fn resynchronise_errors(&mut self) {
        if let Some(ecc) = &mut self.backend.ecc {
            ecc.after_untimed(self.ftl.wear(), self.ftl.table(), self.backend.now);
        }
    }

    /// Sets the buffer to contain exactly the data of partly filled units.
    pub(crate) fn resynchronise_buffer(&mut self) {
        let held: u32 = (0..self.config.ftl.streams).map(|s| self.ftl.filled(FrontierId(s))).sum();
        let in_log = self.front.filled();
        self.buffer_free = i64::from(self.config.buffer_slots()) - i64::from(held + in_log);
    }
}
