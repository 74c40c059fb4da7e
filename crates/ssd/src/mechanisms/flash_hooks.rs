//! Hooks that connect a drive's mechanisms with its flash operations.
//!
//! The backend routes reads, programs and erases to dies. At each of these steps, the backend calls
//! a hook of every flash mechanism in the drive (`flash_hook!`), in the order of the list in
//! `mod.rs`. The calls are static: a hook that no mechanism in the list implements compiles to
//! nothing.

use writecliff_base::fields::Saved;
use writecliff_base::{Nanos, Ppa, ReclaimUnitId};
use writecliff_flash::{FlashLocation, Geometry};
use writecliff_ftl::ProgramUnit;

use super::{FlashMechanisms, flash_hook};
use crate::backend::{HostData, Outcome};
use crate::die::Die;
use crate::{Backend, DeviceConfig, FillId, FlashOperation, ReadFor, Recorder};

/// A read of slots of one page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageRead {
    pub location: FlashLocation,
    /// Plane occupied by the read; 0 if the read takes all planes.
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

/// Data of a host read on a plane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlaneData {
    pub die: u16,
    /// The recorder's number for reads on the plane.
    pub read: u16,
    pub data: HostData,
}

/// Die of a plane whose tR or transfer has ended and, after tR, the data of the host read.
pub(crate) type PlaneDone = (usize, Option<PlaneData>);

/// Mechanism that takes part in flash operations. While a hook runs, the backend passed to the hook
/// does not contain this mechanism.
pub(crate) trait FlashMechanism: Saved {
    /// Returns the mechanism for a new drive; `None` if the drive does not have it.
    fn of(config: &DeviceConfig) -> Option<Box<Self>>;

    /// Returns the retries of a flash read that is about to be queued; `None` if the mechanism does
    /// not determine them.
    #[inline]
    fn retries(&mut self, _location: &FlashLocation, _slots: u32, _now: Nanos) -> Option<Retries> {
        None
    }

    /// Returns the plane occupied by a read of an address; 0 if the read takes all planes.
    fn plane_of(&self, _geometry: &Geometry, _ppa: Ppa) -> u32 {
        0
    }

    /// Returns the marks in `sense` for host reads of a plane.
    fn host_read_marks(&mut self, _plane: u32) -> u16 {
        0
    }

    /// Queues the flash reads of a host read in place of the backend; returns `false` if the
    /// backend must queue the read.
    fn host_read<R: Recorder>(&mut self, _: &mut Backend<R>, _command: u16, _: &PageRead) -> bool {
        false
    }

    /// Returns the number of flash reads that a host command waits for; the backend queued `queued`
    /// of them.
    fn awaited_reads(&mut self, queued: u32) -> u32 {
        queued
    }

    /// Returns the number of flash reads whose data are lost; `None` if the mechanism does not
    /// count lost reads.
    fn lost_reads(&self) -> Option<u64> {
        None
    }

    /// Queues the flash reads for a fill in place of the backend; returns `false` if the backend
    /// must queue the read.
    fn fill_read<R: Recorder>(
        &mut self,
        _: &mut Backend<R>,
        _: FillId,
        _: &FlashLocation,
        _slots: u32,
    ) -> bool {
        false
    }

    /// Starts a read of one plane whose command reached the die at `begun`.
    fn start_plane_read<R: Recorder>(
        &mut self,
        _backend: &mut Backend<R>,
        _die: usize,
        _operation: FlashOperation,
        _begun: Nanos,
    ) {
    }

    /// Handles an operation queued on a die that reads some of its planes.
    fn queued_beside_reads<R: Recorder>(&mut self, _backend: &mut Backend<R>, _die: usize) {}

    /// Handles the end of tR on a plane, or the end of its data transfer.
    fn plane_done<R: Recorder>(&mut self, _: &mut Backend<R>, _reader: u16) -> Option<PlaneDone> {
        None
    }

    /// Handles the end of tR for a host read that fails or belongs to a stripe.
    fn sensed<R: Recorder>(&mut self, _: &mut Backend<R>, _die: usize, _: FlashOperation) {}

    /// Handles the queueing of a unit's program.
    fn program_queued<R: Recorder>(&mut self, _backend: &mut Backend<R>, _unit: &ProgramUnit) {}

    /// Handles the first full program unit of a reclaim unit since its erase.
    fn first_written(&mut self, _unit: ReclaimUnitId, _now: Nanos) {}

    /// Handles the FTL's erase of a reclaim unit.
    fn erased(&mut self, _unit: ReclaimUnitId) {}

    /// Called when a free die is about to start an operation. If the die must wait, queues the die
    /// and returns `false`.
    #[inline]
    fn admits(&mut self, _die: usize) -> bool {
        true
    }

    /// Handles the end of an operation or of sensing.
    #[inline]
    fn released(&mut self, _die: usize) {}

    /// Removes and returns the next die in the queue that may start an operation now.
    #[inline]
    fn next_die(&mut self) -> Option<usize> {
        None
    }

    /// Called when all operations of all dies have finished or are dropped.
    fn cleared(&mut self) {}

    /// Called after the drive was restored.
    fn resumed(&mut self, _dies: &[Die]) {}
}

impl FlashMechanisms {
    /// Queues the flash reads of a host read.
    pub(crate) fn host_read<R: Recorder>(backend: &mut Backend<R>, command: u16, read: &PageRead) {
        let mut is_queued = false;
        flash_hook!(backend,
            m => is_queued = is_queued || m.host_read(backend, command, read));
        if !is_queued {
            let PageRead { location, plane, slots } = *read;
            let (mut sense, _) = backend.sense(&location, slots);
            flash_hook!(backend, m => sense |= m.host_read_marks(plane));
            let purpose = ReadFor::Host { command };
            let operation = FlashOperation::Read { sense, slots: slots as u8, purpose };
            backend.queue_read(location.die as usize, operation);
        }
    }

    /// Handles the end of tR on a plane, or the end of its data transfer. Returns the data of the
    /// host read after tR. The die is free after the transfer from the last plane.
    pub(crate) fn plane_done<R: Recorder>(
        backend: &mut Backend<R>,
        reader: u16,
    ) -> Option<PlaneData> {
        let mut ended = None;
        flash_hook!(backend, m => ended = ended.or(m.plane_done(backend, reader)));
        let (die, data) = ended?;
        if backend.dies[die].is_idle() {
            let _: Outcome = backend.die_done(die);
        }
        data
    }
}

/// Declares [`FlashMechanisms`] from one line per mechanism, and the macro `flash_hook`, which
/// calls a hook of each mechanism in a backend.
macro_rules! flash_mechanisms {
    (($dollar:tt) $($name:ident: $type:ty,)*) => {
        /// Mechanisms of a drive that take part in flash operations.
        pub(crate) struct FlashMechanisms {
            $(pub $name: Option<Box<$type>>,)*
        }

        writecliff_base::saved! { FlashMechanisms { $(($name)),* } }

        impl FlashMechanisms {
            pub(crate) fn of(config: &DeviceConfig) -> Self {
                Self { $($name: <$type>::of(config)),* }
            }

            pub(crate) fn plane_of(&self, geometry: &Geometry, ppa: Ppa) -> u32 {
                0 $(+ self.$name.as_ref().map_or(0, |m| m.plane_of(geometry, ppa)))*
            }

            /// Returns the number of flash reads that a host command waits for.
            pub(crate) fn awaited_reads(&mut self, queued: u32) -> u32 {
                $(let queued = self.$name.as_mut().map_or(queued, |m| m.awaited_reads(queued));)*
                queued
            }

            /// Returns the number of flash reads whose data are lost. If several mechanisms count
            /// lost reads, the last mechanism in the list determines the result.
            pub(crate) fn lost_reads(&self) -> u64 {
                let lost = None;
                $(let lost = self.$name.as_ref().and_then(|m| m.lost_reads()).or(lost);)*
                lost.unwrap_or(0)
            }
        }

        macro_rules! flash_hook {
            ($dollar backend:ident, $dollar m:ident => $dollar call:expr) => {
                {
                    $crate::mechanisms::each!(
                        $dollar backend, [$($name),*], $dollar m => $dollar call
                    );
                }
            };
        }
        pub(crate) use flash_hook;
    };
}
