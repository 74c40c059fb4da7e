//! Saves, restores and copies the complete state of a drive.
//!
//! A drive is saved between two host commands. Work in progress (programs, GC, transfers) is part
//! of the state, so saving does not change the run. The file contains the canonical device
//! description, and a state cannot be restored into a different device.

use std::io::{Read, Write};

use writecliff_base::codec::CodecError;
use writecliff_base::fields::{from_bytes, to_bytes};
use writecliff_base::saved_state;
use writecliff_base::{Lpn, Nanos, Ppa, saved};
use writecliff_host_interface::Drive;

use writecliff_ftl::frontier::FrontierId;

use crate::attribution::Recorder;
use crate::front::Front;
use crate::ssd::Ssd;

pub use writecliff_base::saved_state::RestoreError;

saved! {
    <R: Recorder> Ssd<R> {
        backend, frontend, active, buffer_free, host_read_bytes, unmapped_read_slots, write_cache,
        last_activity, idle_check_scheduled, mechanisms, front, data_placement,
    } check is_possible
}

impl<R: Recorder> Ssd<R> {
    fn is_possible(&mut self) -> bool {
        self.mechanisms.fills_end() <= self.backend.fills.len()
    }

    /// Returns the address that stores, or will store, the newest data of a logical page. Addresses
    /// of an SLC cache follow the addresses of the FTL's flash.
    pub fn location(&self, lpn: Lpn) -> Ppa {
        let in_front = self.front.location(lpn);
        if in_front.is_none() { self.ftl.lookup(lpn) } else { in_front }
    }

    /// Returns the erases of reclaim units and of blocks of an SLC cache since the drive was new.
    pub fn erases(&self) -> u64 {
        self.ftl.wear().total() + self.front.erases()
    }

    /// Writes the state. The host must have nothing outstanding.
    pub fn save<W: Write>(&self, out: W) -> Result<W, CodecError> {
        assert_eq!(self.commands.in_flight() + self.frontend.waiting(), 0);
        let mut out = saved_state::begin(out, &self.config.canonical, self)?;
        self.ftl.save(&mut out)?;
        out.finish()
    }

    /// Takes the state of `other`, which has nothing outstanding. After an error this drive must
    /// not be used.
    ///
    /// A new drive also takes it from another device whose flash and FTL are the same, if that has
    /// only been fast-forwarded: fast-forward depends on nothing else, neither on times nor on the
    /// link or the buffer.
    pub fn copy_from<S: Recorder>(&mut self, other: &Ssd<S>) -> Result<(), RestoreError> {
        if self.config.canonical != other.config.canonical {
            return self.take_fast_forwarded(other);
        }
        from_bytes(&to_bytes(other), self)?;
        self.ftl.copy_from(&other.ftl);
        if let Some(ecc) = &mut self.backend.mechanisms.ecc {
            ecc.take_wear(self.ftl.wear());
        }
        Ok(())
    }

    fn take_fast_forwarded<S: Recorder>(&mut self, other: &Ssd<S>) -> Result<(), RestoreError> {
        let (ours, theirs) = (&self.config, &other.config);
        let place_alike = ours.data_placement.is_none()
            && theirs.data_placement.is_none()
            && ours.sections.place_alike(&theirs.sections);
        let untimed = self.now() == Nanos::ZERO && other.now() == Nanos::ZERO;
        if !(untimed && place_alike) || ours.geometry != theirs.geometry || ours.ftl != theirs.ftl {
            let names = saved_state::first_difference(&ours.canonical, &theirs.canonical);
            return Err(RestoreError::OtherDevice(names));
        }
        self.quiesce();
        self.ftl.copy_from(&other.ftl);
        from_bytes(&to_bytes(&other.front), &mut self.front)?;
        self.end_fast_forward();
        Ok(())
    }

    /// Replaces the state of this drive. After an error the drive must not be used.
    pub fn restore<I: Read>(&mut self, input: I) -> Result<(), RestoreError> {
        assert_eq!(self.commands.in_flight() + self.frontend.waiting(), 0);
        let canonical = self.config.canonical.clone();
        let mut input = saved_state::open(input, &canonical, self)?;
        self.ftl.restore(&mut input)?;
        if let Some(ecc) = &mut self.backend.mechanisms.ecc {
            ecc.take_wear(self.ftl.wear());
        }
        Ok(input.end()?)
    }

    pub(crate) fn resynchronise_errors(&mut self) {
        if let Some(ecc) = &mut self.backend.mechanisms.ecc {
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
