//! State of host commands inside the drive.

use writecliff_base::Lpn;
use writecliff_flash::geometry::SLOT_BYTES;
use writecliff_host_interface::{Command, Status};

/// A command inside the drive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    pub command: Command,
    pub slots: u32,
    /// For reads: outstanding flash operations. For writes and flushes that wait for flash:
    /// outstanding program units.
    pub pending: u32,
    /// For reads: bytes not yet sent to the host.
    pub unsent: u32,
    pub status: Status,
}

impl InFlight {
    /// Returns the slot of the first byte.
    #[inline]
    pub(crate) fn first(&self) -> Lpn {
        Lpn((self.command.offset / u64::from(SLOT_BYTES)) as u32)
    }
}

/// Many are outstanding, and each I/O touches its own several times.
const _: () = assert!(size_of::<InFlight>() == 48);
