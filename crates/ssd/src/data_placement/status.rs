//! What can be seen of a drive's data placement interface at one moment.

use super::events::{EventType, FdpEvent};
use super::fdp::{FdpStatistics, HandleStatus};

/// A look at the interface; counts are since the drive was new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataPlacementStatus {
    pub interface: &'static str,
    /// The directive is enabled; SCSI streams always are.
    pub enabled: bool,
    /// Streams: identifiers that are open, ascending.
    pub open_streams: Vec<u16>,
    /// Streams: most that can be open beside the default one; FDP: placement handles.
    pub limit: u16,
    pub streams_opened: u64,
    pub streams_released: u64,
    /// Writes that named a stream (an identifier) that the drive could not give them.
    pub overflow_writes: u64,
    pub overflow_bytes: u64,
    /// Their bytes by number; 65535 stands for all beyond those that are told one by one.
    pub overflow_by_number: Vec<(u16, u64)>,
    /// Of any interface: FDP's names for what every drive counts.
    pub statistics: FdpStatistics,
    pub fdp: Option<FdpStatus>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FdpStatus {
    pub handles: Vec<HandleStatus>,
    /// How often each type of `EventType::ALL` has happened, logged or not.
    pub events: [u64; EventType::ALL.len()],
    /// The log: events of the host, then those of the controller, each oldest first.
    pub log: Vec<FdpEvent>,
    pub abandoned_bytes: u64,
}
