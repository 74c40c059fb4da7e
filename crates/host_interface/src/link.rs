//! The link between host and drive, and its section in device files.

use writecliff_base::located::{LocatedError, Table};
use writecliff_base::{BytesPerSecond, Nanos};

use writecliff_base::located::positive_rate;

/// Whether the link carries data in both directions at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Duplex {
    /// SATA: one frame at a time, either way.
    Half,
    /// SAS and PCIe.
    Full,
}

/// The link between host and drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// Name in reports: "SATA 6Gb/s", "SAS 12Gb/s", "NVMe".
    pub interface: String,
    /// Payload rate in each direction.
    pub bandwidth: BytesPerSecond,
    pub duplex: Duplex,
    /// Link time of a command in addition to its data (frames of command, setup and status).
    pub command: Nanos,
    pub queues: u32,
    /// Depth of one queue at the drive; further commands wait at the host.
    pub queue_depth: u32,
}

impl LinkConfig {
    /// Reads the table `[link]` of a device file.
    pub fn read(table: &Table<'_>) -> Result<Self, LocatedError> {
        let duplex = [("half", Duplex::Half), ("full", Duplex::Full)];
        let count = |key: &str, most: u64| table.required_integer(key, 1..=most).map(|n| n as u32);
        Ok(Self {
            interface: table.required_text("interface")?.to_owned(),
            bandwidth: positive_rate(table, "bandwidth")?,
            duplex: table.required_choice("duplex", &duplex)?,
            command: table.required_time("command")?,
            queues: count("queues", 1024)?,
            queue_depth: count("queue_depth", 65_535)?,
        })
    }
}
