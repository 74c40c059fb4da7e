//! Status of a drive's data placement interface.

use super::events::{EventType, FdpEvent};
use super::fdp::{FdpStatistics, HandleStatus};

/// Status of the interface; counts are since the drive was new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataPlacementStatus {
    pub interface: &'static str,
    /// Whether the directive is enabled; SCSI streams always are.
    pub enabled: bool,
    /// Streams: identifiers that are open, ascending.
    pub open_streams: Vec<u16>,
    /// Streams: maximum number of open streams in addition to the default one. FDP: number of
    /// placement identifiers: the placement handles in each reclaim group.
    pub limit: u16,
    pub streams_opened: u64,
    pub streams_released: u64,
    /// Writes to a stream or placement identifier that the drive could not provide.
    pub overflow_writes: u64,
    pub overflow_bytes: u64,
    /// Their bytes by number; 65535 represents all numbers that are not counted individually.
    pub overflow_by_number: Vec<(u16, u64)>,
    /// FDP statistics, which every drive has.
    pub statistics: FdpStatistics,
    pub fdp: Option<FdpStatus>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FdpStatus {
    pub handles: Vec<HandleStatus>,
    /// Number of events of each type in `EventType::ALL`, logged or not.
    pub events: [u64; EventType::ALL.len()],
    /// The log: events of the host, then of the controller, each oldest first.
    pub log: Vec<FdpEvent>,
    pub abandoned_bytes: u64,
}
