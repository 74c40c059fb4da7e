//! Validated configuration of a drive, as read from TOML by `device_file.rs`.

use writecliff_base::keys::{Count, PositiveTime, Size, Time};
use writecliff_base::{Bytes, section};
use writecliff_host_interface::{Identity, LinkConfig};

section! {
    /// Memory: banks that are read and written in place.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct MediaConfig {
        unit: required Size,
            "data per access, a multiple of 512 B up to 64 KiB; smaller writes first read the unit";
        banks: required Count(1..=4096),
            "number of dies, partitions or channels that work in parallel, with one access each";
        interleave: required Size,
            "consecutive bytes in one bank; a multiple of `unit` up to 16 MiB";
        read_time: required PositiveTime, "bank time of a read access";
        write_time: required PositiveTime, "bank time of a write access";
    }
}

section! {
    /// Controller timing.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ControllerConfig {
        command_time: required Time,
            "controller time per command, during which no accesses are issued";
        access_time: required Time, "controller time per access, during which no other access is \
         issued";
        latency: required Time, "adds latency to each command without delaying others";
    }
}

/// Configuration of a drive with storage-class memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScmConfig {
    /// Model name and firmware revision that the drive reports.
    pub identity: Identity,
    /// Capacity that the host can address.
    pub user_capacity: Bytes,
    /// Banks and their access times.
    pub media: MediaConfig,
    /// Controller times.
    pub controller: ControllerConfig,
    /// Host link and submission queues.
    pub link: LinkConfig,
    /// All values that affect the drive's behaviour, one `key = value` per line. Device files with
    /// equal canonical text describe the same drive; the device hash is computed from this text.
    pub canonical: String,
}
