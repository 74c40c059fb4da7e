//! The state of the dies, channels and fills, saved and restored with the drive.

use writecliff_base::Nanos;
use writecliff_base::codec::CodecError;
use writecliff_base::words::{WordReader, WordWriter};

use super::Backend;
use super::sink::HeldErase;
use crate::attribution::Recorder;
use crate::die::Die;
use crate::mechanisms::power::BusyTimes;

impl<R: Recorder> Backend<R> {
    /// Saves all work in progress; the host must have no command outstanding.
    pub(crate) fn save(&self, out: &mut WordWriter) {
        out.put(self.now.0);
        self.queue.save(out);
        self.fills.save(out);
        if self.is_volatile {
            self.fills.save_since(out);
            out.list(self.held_erases.iter(), |out, held| held.save(out));
        }
        self.dies.iter().for_each(|die| die.save(out));
        self.channels.iter().for_each(|taken| out.put(taken.0));
        if let Some(ecc) = &self.ecc {
            ecc.save(out);
        }
        if let Some(parity) = &self.die_parity {
            parity.save(out);
        }
        self.busy.save(out);
        self.save_active_dies(out);
    }

    /// Restores what `save` saved of a drive of the same description.
    pub(crate) fn restore(&mut self, input: &mut WordReader<'_>) -> Result<(), CodecError> {
        self.now = Nanos(input.get()?);
        self.queue.restore(input)?;
        self.fills.restore(input)?;
        if self.is_volatile {
            self.fills.restore_since(input)?;
            let front_unit = self.front_unit;
            self.held_erases = input.list(|input| HeldErase::restore(input, front_unit))?;
        }
        for die in &mut self.dies {
            *die = Die::restore(input)?;
        }
        for taken in &mut self.channels {
            *taken = Nanos(input.get()?);
        }
        if let Some(ecc) = &mut self.ecc {
            ecc.restore(input)?;
        }
        if let Some(parity) = &mut self.die_parity {
            parity.restore(input)?;
        }
        self.busy = BusyTimes::restore(input)?;
        self.record_restored();
        self.restore_active_dies(input)
    }
}
