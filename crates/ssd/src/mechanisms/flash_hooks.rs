//! Hooks that connect the mechanisms of a drive with its flash operations.
//!
//! The backend routes reads, programs and erases to dies. At each of these steps it calls a hook of
//! every flash mechanism that the drive has, in the order of the list in `mod.rs`. The calls are
//! static: a hook that no mechanism of the list implements compiles to nothing.

use std::ops::AddAssign;

use writecliff_base::fields::Saved;
use writecliff_base::{Nanos, Ppa, ReclaimUnitId};
use writecliff_flash::Geometry;
use writecliff_flash::geometry::FlashLocation;
use writecliff_ftl::ProgramUnit;

use crate::attribution::Recorder;
use crate::backend::{Backend, HostData};
use crate::config::DeviceConfig;
use crate::die::{Die, FlashOperation};
use crate::fill::FillId;

/// A read of slots of one page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageRead {
    pub location: FlashLocation,
    /// 0 if a read takes all planes.
    pub plane: u32,
    pub slots: u32,
}

/// Retries of a flash read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Retries {
    pub count: u8,
    /// `true` if no retry corrects the data.
    pub fails: bool,
}

impl AddAssign for Retries {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.fails |= other.fails;
    }
}

/// Data of a host read of a plane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlaneData {
    pub die: u16,
    /// The recorder's number for reads of the plane.
    pub read: u16,
    pub data: HostData,
}

/// A mechanism that takes part in flash operations. A hook that receives the backend finds it
/// without this mechanism.
pub(crate) trait FlashMechanism: Saved {
    /// Returns the mechanism of a new drive; `None` if the drive does not have it.
    fn of(config: &DeviceConfig) -> Option<Box<Self>>;

    /// Die time of each retry of a read.
    fn retry_time(&self) -> Nanos {
        Nanos::ZERO
    }

    /// Returns the retries of a flash read that is about to be queued.
    #[inline]
    fn retries(&mut self, _location: &FlashLocation, _slots: u32, _now: Nanos) -> Retries {
        Retries::default()
    }

    /// Returns the plane that a read of an address takes; 0 if it takes all planes.
    fn plane_of(&self, _geometry: &Geometry, _ppa: Ppa) -> u32 {
        0
    }

    /// Returns marks of the sense of host reads of a plane.
    fn host_read_marks(&self, _plane: u32) -> u16 {
        0
    }

    /// Queues the flash reads of a host read in place of the backend; returns `false` if the
    /// backend shall queue one.
    fn host_read<R: Recorder>(
        &mut self,
        _backend: &mut Backend<R>,
        _command: u16,
        _read: &PageRead,
    ) -> bool {
        false
    }

    /// Returns the number of flash reads that a host command waits for after it queued `queued`.
    fn awaited_reads(&mut self, queued: u32) -> u32 {
        queued
    }

    /// Number of flash reads whose data are lost; `None` if the mechanism does not count them.
    fn lost_reads(&self) -> Option<u64> {
        None
    }

    /// Queues the flash reads for a fill in place of the backend; returns `false` if the backend
    /// shall queue one.
    fn fill_read<R: Recorder>(
        &mut self,
        _backend: &mut Backend<R>,
        _fill: FillId,
        _location: &FlashLocation,
        _slots: u32,
    ) -> bool {
        false
    }

    /// Starts a read of one plane whose command has reached the die at `begun`.
    fn start_plane_read<R: Recorder>(
        &mut self,
        _backend: &mut Backend<R>,
        _die: usize,
        _operation: FlashOperation,
        _begun: Nanos,
    ) {
    }

    /// Called when an operation was queued on a die that reads some of its planes.
    fn queued_beside_reads<R: Recorder>(&mut self, _backend: &mut Backend<R>, _die: usize) {}

    /// Handles the end of tR on a plane, or of the transfer of its data. Returns the die and the
    /// data of the host read after tR.
    fn plane_done<R: Recorder>(
        &mut self,
        _backend: &mut Backend<R>,
        _reader: u16,
    ) -> Option<(usize, Option<PlaneData>)> {
        None
    }

    /// Called after tR of a host read that fails or belongs to a stripe.
    fn sensed<R: Recorder>(
        &mut self,
        _backend: &mut Backend<R>,
        _die: usize,
        _operation: FlashOperation,
    ) {
    }

    /// Called when a program of a unit was queued.
    fn program_queued<R: Recorder>(&mut self, _backend: &mut Backend<R>, _unit: &ProgramUnit) {}

    /// Called when the first program unit of a reclaim unit since its erase is full.
    fn first_written(&mut self, _unit: ReclaimUnitId, _now: Nanos) {}

    /// Called when the FTL erases a reclaim unit.
    fn erased(&mut self, _unit: ReclaimUnitId) {}

    /// Returns `true` if a free die may start an operation now.
    #[inline]
    fn allows(&self, _die: usize) -> bool {
        true
    }

    /// Called when a free die is about to start an operation; if it may not, returns `false` and
    /// queues the die.
    #[inline]
    fn admits(&mut self, _die: usize) -> bool {
        true
    }

    /// Called when an operation or sensing has ended.
    #[inline]
    fn released(&mut self, _die: usize) {}

    /// Removes the next die from the queue that may start an operation now.
    #[inline]
    fn next_die(&mut self) -> Option<usize> {
        None
    }

    /// Called when no die has an operation any more.
    fn cleared(&mut self) {}

    /// Called when the drive was restored.
    fn resumed(&mut self, _dies: &[Die]) {}
}

/// Declares [`FlashMechanisms`]: a line for each mechanism.
macro_rules! flash_mechanisms {
    ($($name:ident: $type:ty,)*) => {
        /// The mechanisms of a drive that take part in flash operations.
        pub(crate) struct FlashMechanisms {
            $(pub $name: Option<Box<$type>>,)*
        }

        writecliff_base::saved! { FlashMechanisms { $(($name)),* } }

        impl FlashMechanisms {
            pub(crate) fn of(config: &DeviceConfig) -> Self {
                Self { $($name: <$type as FlashMechanism>::of(config)),* }
            }

            pub(crate) fn retry_time(&self) -> Nanos {
                Nanos::ZERO $(+ self.$name.as_ref().map_or(Nanos::ZERO, |m| m.retry_time()))*
            }

            #[inline]
            pub(crate) fn retries(
                &mut self,
                location: &FlashLocation,
                slots: u32,
                now: Nanos,
            ) -> Retries {
                let mut retries = Retries::default();
                $(if let Some(m) = &mut self.$name {
                    retries += FlashMechanism::retries(&mut **m, location, slots, now);
                })*
                retries
            }

            pub(crate) fn plane_of(&self, geometry: &Geometry, ppa: Ppa) -> u32 {
                0 $(+ self.$name.as_ref().map_or(0, |m| m.plane_of(geometry, ppa)))*
            }

            /// Queues the flash reads of a host read.
            pub(crate) fn host_read<R: Recorder>(
                backend: &mut Backend<R>,
                command: u16,
                read: &PageRead,
            ) {
                let mut is_queued = false;
                each!(backend, [$($name),*],
                    m => is_queued = is_queued || m.host_read(backend, command, read));
                if !is_queued {
                    let PageRead { location, plane, slots } = *read;
                    let (mut sense, _) = backend.sense(&location, slots);
                    $(if let Some(m) = &backend.mechanisms.$name {
                        sense |= m.host_read_marks(plane);
                    })*
                    let purpose = ReadFor::Host { command };
                    let operation = FlashOperation::Read { sense, slots: slots as u8, purpose };
                    backend.queue_read(location.die as usize, operation);
                }
            }

            /// Returns the number of flash reads that a host command waits for.
            pub(crate) fn awaited_reads(&mut self, queued: u32) -> u32 {
                $(let queued = self.$name.as_mut().map_or(queued, |m| m.awaited_reads(queued));)*
                queued
            }

            /// Flash reads whose data are lost, as the last mechanism of the list counts them.
            pub(crate) fn lost_reads(&self) -> u64 {
                let lost = None;
                $(let lost = self.$name.as_ref().and_then(|m| m.lost_reads()).or(lost);)*
                lost.unwrap_or(0)
            }

            /// Returns `true` if a mechanism has queued the flash reads for a fill.
            #[inline]
            pub(crate) fn fill_read<R: Recorder>(
                backend: &mut Backend<R>,
                fill: FillId,
                location: &FlashLocation,
                slots: u32,
            ) -> bool {
                let mut is_queued = false;
                each!(backend, [$($name),*],
                    m => is_queued = is_queued || m.fill_read(backend, fill, location, slots));
                is_queued
            }

            #[cold]
            pub(crate) fn start_plane_read<R: Recorder>(
                backend: &mut Backend<R>,
                die: usize,
                operation: FlashOperation,
                begun: Nanos,
            ) {
                each!(backend, [$($name),*],
                    m => m.start_plane_read(backend, die, operation, begun));
            }

            #[cold]
            pub(crate) fn queued_beside_reads<R: Recorder>(backend: &mut Backend<R>, die: usize) {
                each!(backend, [$($name),*], m => m.queued_beside_reads(backend, die));
            }

            /// Returns the data of a host read after tR. After the transfer of the last plane, the
            /// die is free.
            pub(crate) fn plane_done<R: Recorder>(
                backend: &mut Backend<R>,
                reader: u16,
            ) -> Option<PlaneData> {
                let mut ended = None;
                each!(backend, [$($name),*], m => ended = ended.or(m.plane_done(backend, reader)));
                let (die, data) = ended?;
                if backend.dies[die].is_idle() {
                    let _: Outcome = backend.die_done(die);
                }
                data
            }

            #[cold]
            pub(crate) fn sensed<R: Recorder>(
                backend: &mut Backend<R>,
                die: usize,
                operation: FlashOperation,
            ) {
                each!(backend, [$($name),*], m => m.sensed(backend, die, operation));
            }

            #[inline]
            pub(crate) fn program_queued<R: Recorder>(
                backend: &mut Backend<R>,
                unit: &ProgramUnit,
            ) {
                each!(backend, [$($name),*], m => m.program_queued(backend, unit));
            }

            #[inline]
            pub(crate) fn first_written(&mut self, unit: ReclaimUnitId, now: Nanos) {
                $(if let Some(m) = &mut self.$name { m.first_written(unit, now); })*
            }

            pub(crate) fn erased(&mut self, unit: ReclaimUnitId) {
                $(if let Some(m) = &mut self.$name { m.erased(unit); })*
            }

            #[inline]
            pub(crate) fn allows(&self, die: usize) -> bool {
                true $(&& self.$name.as_ref().is_none_or(|m| m.allows(die)))*
            }

            #[inline]
            pub(crate) fn admits(&mut self, die: usize) -> bool {
                true $(&& self.$name.as_mut().is_none_or(|m| m.admits(die)))*
            }

            #[inline]
            pub(crate) fn released(&mut self, die: usize) {
                $(if let Some(m) = &mut self.$name { m.released(die); })*
            }

            #[inline]
            pub(crate) fn next_die(&mut self) -> Option<usize> {
                None $(.or_else(|| self.$name.as_mut().and_then(|m| m.next_die())))*
            }

            pub(crate) fn cleared(&mut self) {
                $(if let Some(m) = &mut self.$name { m.cleared(); })*
            }

            pub(crate) fn resumed(&mut self, dies: &[Die]) {
                $(if let Some(m) = &mut self.$name { m.resumed(dies); })*
            }
        }
    };
}
