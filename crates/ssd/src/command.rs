//! State of host commands inside the drive.

use writecliff_base::Lpn;
use writecliff_host_interface::Command;

/// A command inside the drive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    pub command: Command,
    pub first: Lpn,
    pub slots: u32,
    /// For reads: outstanding flash operations. For writes and flushes that wait for flash:
    /// outstanding program units.
    pub pending: u32,
    /// For reads: bytes not yet sent to the host.
    pub unsent: u32,
}
