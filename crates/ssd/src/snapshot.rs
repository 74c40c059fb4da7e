//! Saves, restores and copies the complete state of a drive.
//!
//! A drive is saved between two host commands. Work in progress (programs, GC, transfers) belongs
//! to the state, so saving does not change the run. The file contains the canonical device
//! description, and a state cannot be restored into a different device.

use writecliff_base::fields::{from_bytes, to_bytes};
use writecliff_base::saved_state::{self, RestoreError};
use writecliff_base::{Nanos, saved};
use writecliff_host_interface::Drive;

use crate::event::Packed;
use crate::{Recorder, Ssd};

saved! {
    <R: Recorder> Ssd<R> {
        storage.backend, commands.frontend, active, buffer.free, host_read_bytes,
        storage.unmapped_read_slots, buffer.is_cache, idle.last_activity, idle.is_scheduled,
        mechanisms, storage.front, storage.data_placement,
    } check is_possible
}

impl<R: Recorder> Ssd<R> {
    fn is_possible(&mut self) -> bool {
        assert!(self.buffer.is_settled(), "restored while writes were on their way");
        let Self { storage, idle, .. } = self;
        let checks = storage.backend.queue.events().filter(|&event| event == Packed::IDLE_CHECK);
        storage.backend.completes_fills(self.mechanisms.waiting_fills().into_iter())
            && checks.count() == usize::from(idle.is_scheduled)
            && idle.last_activity <= storage.backend.now
            && self.buffer.can_hold(u64::from(storage.front.filled()) + storage.unprogrammed())
    }

    /// Copies the state of `other`, which must have no outstanding commands. After an error, this
    /// drive must not be used.
    ///
    /// A new drive also accepts the state of a different device with the same flash and FTL, if
    /// that drive was only fast-forwarded, which depends neither on times nor on link or buffer.
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
