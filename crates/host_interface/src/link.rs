//! Link between host and drive, and its device file section.

use writecliff_base::keys::{Choice, Count, PositiveRate, Text, Time};
use writecliff_base::section;

/// Directions in which the link can carry data at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Duplex {
    /// SATA: one frame at a time, in either direction.
    Half,
    /// SAS and PCIe: both directions at the same time.
    Full,
}

section! {
    /// Link between host and drive, from section `[link]` of a device file.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct LinkConfig {
        interface: required Text, "name in reports, for example `\"SATA 6Gb/s\"`";
        bandwidth: required PositiveRate, "payload rate in each direction";
        duplex: required Choice<Duplex>(&[("half", Duplex::Half), ("full", Duplex::Full)]),
            "`\"full\"`: the link carries data in both directions at the same time";
        command: required Time,
            "link time of a command in addition to its data (frames of command, setup and status)";
        queues: required Count(1..=1024),
            "number of queues; the drive type limits `queues` × `queue_depth`";
        queue_depth: required Count(1..=65_535),
            "commands in one queue of the drive; further commands wait at the host";
    }
}
