//! Saves, restores and copies the complete state of a drive.
//!
//! A drive is saved between two host commands. Work in progress (programs, GC, transfers) is part
//! of the state, so saving does not change the run. The file contains the canonical device
//! description, and a state cannot be restored into a different device.

use writecliff_base::Nanos;
use writecliff_base::fields::{FieldReader, FieldWriter, Impossible, Saved, from_bytes, to_bytes};
use writecliff_base::saved_state::{self, RestoreError};
use writecliff_host_interface::Drive;

use crate::event::Packed;
use crate::{Front, Recorder, Ssd};

impl<R: Recorder> Saved for Ssd<R> {
    fn save(&self, out: &mut FieldWriter) {
        let Self { storage, .. } = self;
        storage.backend.save(out);
        self.commands.frontend.save(out);
        self.active.save(out);
        out.put(&self.buffer.free());
        out.put(&self.host_read_bytes);
        out.put(&storage.unmapped_read_slots);
        out.put(&self.buffer.is_cache());
        out.put(&self.idle.last_activity);
        out.put(&self.idle.is_scheduled);
        self.mechanisms.save(out);
        storage.front.save(out);
        storage.data_placement.save(out);
    }

    fn restore(&mut self, input: &mut FieldReader<'_>) -> Result<(), Impossible> {
        let Self { storage, .. } = self;
        storage.backend.restore(input)?;
        self.commands.frontend.restore(input)?;
        self.active.restore(input)?;
        self.buffer.restore_free(input.get()?);
        self.host_read_bytes = input.get()?;
        storage.unmapped_read_slots = input.get()?;
        self.buffer.set_cache(input.get()?);
        self.idle.last_activity = input.get()?;
        self.idle.is_scheduled = input.get()?;
        self.mechanisms.restore(input)?;
        storage.front.restore(input)?;
        storage.data_placement.restore(input)?;
        let checks = storage.backend.queue.events().filter(|&event| event == Packed::IDLE_CHECK);
        let is_possible =
            storage.backend.completes_fills(self.mechanisms.waiting_fills().into_iter())
                && checks.count() == usize::from(self.idle.is_scheduled)
                && self.idle.last_activity <= storage.backend.now
                && self.buffer.can_hold(u64::from(storage.front.filled()) + storage.unprogrammed());
        if is_possible { Ok(()) } else { Err(Impossible) }
    }
}

impl<R: Recorder> Ssd<R> {
    /// Takes the state of `other`, which has nothing outstanding. After an error this drive must
    /// not be used.
    ///
    /// A new drive also takes it from another device whose flash and FTL are the same, if that has
    /// only been fast-forwarded: fast-forward depends on nothing else, neither on times nor on the
    /// link or the buffer.
    pub fn copy_from<S: Recorder>(&mut self, other: &Ssd<S>) -> Result<(), RestoreError> {
        let (ours, theirs) = (&self.config, &other.config);
        if ours.canonical == theirs.canonical {
            from_bytes(&to_bytes(other), self)?;
            self.storage.ftl.copy_from(&other.storage.ftl);
            self.storage.take_wear();
            return Ok(());
        }
        let is_untimed = self.now() == Nanos::ZERO && other.now() == Nanos::ZERO;
        if !(is_untimed && ours.fast_forwards_like(theirs)) {
            let names = saved_state::first_difference(&ours.canonical, &theirs.canonical);
            return Err(RestoreError::OtherDevice(names));
        }
        self.quiesce();
        self.storage.ftl.copy_from(&other.storage.ftl);
        from_bytes(&to_bytes(&other.storage.front), &mut self.storage.front)?;
        self.end_fast_forward();
        Ok(())
    }
}
