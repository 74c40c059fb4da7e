//! Host commands, while the drive has them.

use writecliff_base::Lpn;
use writecliff_host_interface::Command;

/// A command inside the drive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    pub command: Command,
    pub first: Lpn,
    pub slots: u32,
    /// Read: flash operations outstanding. Write or flush that waits for flash: units outstanding.
    pub pending: u32,
    /// Read: bytes not yet sent to the host.
    pub unsent: u32,
}
