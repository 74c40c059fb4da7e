//! Lifetime SMART counters that the simulated drive itself does not have.

use serde::{Deserialize, Serialize};
use writecliff_base::Nanos;
use writecliff_host_interface::Operation;
use writecliff_runner::AnyDrive;

use crate::request::Request;

/// Host operations since the drive was new, including reads of unmapped blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Life {
    pub(crate) read_commands: u64,
    /// Number of completed write requests.
    pub write_commands: u64,
    pub(crate) read_bytes: u64,
    /// Bytes written by these requests.
    pub write_bytes: u64,
    /// Drive time with requests outstanding.
    pub busy: Nanos,
}

impl Life {
    /// Returns the counters of a drive that has not been served before; they include its
    /// preconditioning.
    pub(crate) fn before(drive: &AnyDrive) -> Self {
        let counters = drive.counters();
        Self {
            read_bytes: counters.host_read_bytes(),
            write_bytes: counters.host_write_bytes(),
            ..Self::default()
        }
    }

    /// Counts a completed request. Data Units Written and Host Write Commands count Write commands
    /// but not Write Zeroes (NVM Command Set, SMART / Health Information).
    pub(crate) fn count(&mut self, request: &Request) {
        match request.operation {
            Operation::Read => {
                self.read_commands += 1;
                self.read_bytes += request.length;
            }
            Operation::Write if !request.is_zeros => {
                self.write_commands += 1;
                self.write_bytes += request.length;
            }
            Operation::Write | Operation::Trim | Operation::Flush => {}
        }
    }
}
