//! The checked configuration of a drive, as `device_file.rs` reads it from TOML.

use writecliff_base::{Bytes, Nanos};
use writecliff_host_interface::{Identity, LinkConfig};

/// The memory: banks that are read and written in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaConfig {
    /// Number of banks. A bank serves one access at a time.
    pub banks: u32,
    /// What one access reads or writes.
    pub unit: Bytes,
    /// Consecutive bytes that lie in one bank; the next ones lie in the next bank.
    pub interleave: Bytes,
    /// Time of a bank for an access that reads.
    pub read_time: Nanos,
    /// Time of a bank for an access that writes.
    pub write_time: Nanos,
}

/// Timing of the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerConfig {
    /// Controller time per command, during which it issues no access.
    pub command_time: Nanos,
    /// Controller time per access, during which it issues no other.
    pub access_time: Nanos,
    /// Additional latency per command, which overlaps with other commands.
    pub latency: Nanos,
}

/// Configuration of a drive of storage-class memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScmConfig {
    pub identity: Identity,
    pub user_capacity: Bytes,
    pub media: MediaConfig,
    pub controller: ControllerConfig,
    pub link: LinkConfig,
    /// Every value that affects the behaviour of the drive, one `key = value` per line. Device
    /// files with equal text describe the same drive; the device hash is computed from it.
    pub canonical: String,
}
