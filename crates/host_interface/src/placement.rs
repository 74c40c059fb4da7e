//! Data placement: state and parameters of NVMe streams, SCSI streams and Flexible Data Placement
//! (FDP), as reported by a drive to its host. Section numbers refer to the NVMe Base Specification
//! 2.1.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use writecliff_base::{Bytes, Nanos, words};

/// Reason for rejecting an administrative command, with the status code of the respective standard.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// NVMe generic status 02h.
    #[error("Invalid Field in Command (02h): {0}")]
    InvalidField(String),
    /// Command specific status 7Fh (8.1.8.3).
    #[error("Stream Resource Allocation Failed (7Fh): the drive has no stream resources")]
    AllocationFailed,
    /// SPC: CHECK CONDITION with sense data.
    #[error("CHECK CONDITION, {}: {about}", sense.name())]
    #[allow(missing_docs, reason = "sense data, and the field or resource concerned")]
    CheckCondition { sense: Sense, about: String },
    /// The drive has a different data placement interface, or none.
    #[error("the drive has {has}, not {wants}")]
    #[allow(missing_docs, reason = "names of the drive's interface and the command's")]
    OtherInterface { has: &'static str, wants: &'static str },
}

words! {
    /// Additional sense text and codes, with the sense key if the standard specifies one.
    pub enum Sense {
        /// ILLEGAL REQUEST, 24h/00h.
        InvalidFieldInCdb = "ILLEGAL REQUEST, INVALID FIELD IN CDB (24h/00h)",
        /// 55h/10h.
        TooManyStreams = "MAXIMUM NUMBER OF STREAMS OPEN (55h/10h)",
    }
    /// Reclaim Unit Handle Type (RUHT), whose codes start at 1.
    pub enum Isolation {
        /// Initially isolated: data are isolated until GC relocates them.
        Initially = "initially isolated",
        /// Persistently isolated: data are always isolated.
        Persistently = "persistently isolated",
    }
    /// FDP event types: host events, then controller events (log page 23h, 5.1.12.1.31).
    #[derive(Serialize, Deserialize)]
    pub enum FdpEventType {
        /// The host moved to another reclaim unit before the active unit was full (00h).
        NotFullyWritten = "reclaim unit not fully written",
        /// A reclaim unit remained active longer than the time limit (01h).
        TimeLimitExceeded = "reclaim unit time limit exceeded",
        /// A Controller Level Reset changed the reclaim units that handles reference (02h).
        ResetModifiedHandles = "controller reset modified handles",
        /// A write specified a placement identifier that the namespace does not have (03h).
        InvalidPlacementId = "invalid placement identifier",
        /// The controller moved data to another reclaim unit (80h).
        MediaReallocated = "media reallocated",
        /// The controller changed the reclaim unit that a handle references (81h).
        ImplicitlyModified = "implicitly modified handle",
    }
}

/// Identify directive, Return Parameters (8.1.8.2); bit n of each field represents directive type
/// n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directives {
    /// Directives Supported.
    pub supported: u8,
    /// Directives Enabled.
    pub enabled: u8,
    /// Directives that remain enabled across a Controller Level Reset.
    pub persistent: u8,
}

impl Directives {
    /// Bit of the Identify directive (type 00h).
    pub const IDENTIFY: u8 = 1 << 0;
    /// Bit of the Streams directive (type 01h).
    pub const STREAMS: u8 = 1 << 1;
    /// Bit of the Data Placement directive (type 02h).
    pub const DATA_PLACEMENT: u8 = 1 << 2;
}

/// The Streams directive, Return Parameters (8.1.8.3), with sizes in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamParameters {
    /// Max Streams Limit (MSL).
    pub limit: u16,
    /// NVM Subsystem Streams Available, which are not allocated for exclusive use.
    pub available: u16,
    /// NVM Subsystem Streams Open, excluding streams with exclusive resources.
    pub open: u16,
    /// Stream Write Size, which is a program unit.
    pub write_size: Bytes,
    /// Stream Granularity Size: a reclaim unit in stream write sizes; `FFFFh` if larger.
    pub granularity: u16,
    /// Namespace Streams Allocated for exclusive use.
    pub allocated: u16,
    /// Namespace Streams Open.
    pub namespace_open: u16,
}

/// Stream-related fields of the Block Limits Extension VPD page (SBC-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockLimitsExtension {
    /// MAXIMUM NUMBER OF STREAMS.
    pub maximum_number_of_streams: u16,
    /// Program unit size in logical blocks; `FFFFh` if larger.
    pub optimal_stream_write_size: u16,
    /// Reclaim unit size in optimal stream write sizes.
    pub stream_granularity_size: u32,
}

/// The only FDP configuration of a drive (log page 20h, 5.1.12.1.28), with one namespace and
/// enabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FdpConfiguration {
    /// Type of each reclaim unit handle; the list length is NRUH.
    pub handles: Vec<Isolation>,
    /// Reclaim unit handle of each placement handle of the namespace.
    pub placement_handles: Vec<u16>,
    /// Reclaim Unit Nominal Size.
    pub reclaim_unit: Bytes,
    /// Estimated Reclaim Unit Time Limit in seconds; 0 if not reported.
    pub time_limit_s: u32,
    /// Number of Reclaim Groups (NRG), at least 1.
    pub reclaim_groups: u16,
    /// Reclaim Group Identifier Format: number of upper bits in a placement identifier that contain
    /// the reclaim group. The lower bits contain the placement handle.
    pub rgif: u8,
    /// `true` if a volatile write cache is present (FDPVWC).
    pub volatile_cache: bool,
}

impl FdpConfiguration {
    /// Returns the number of placement identifiers in the namespace, which is the number of its
    /// placement handles times the number of reclaim groups.
    pub fn identifiers(&self) -> usize {
        self.placement_handles.len() * usize::from(self.reclaim_groups)
    }

    /// Returns the reclaim group and placement handle of a placement identifier.
    pub fn split(&self, identifier: u16) -> (u16, u16) {
        debug_assert!(self.rgif < 16, "a placement identifier has 16 bits");
        let lower = 16 - u32::from(self.rgif);
        let group = identifier.checked_shr(lower).unwrap_or(0);
        (group, identifier & (u16::MAX >> self.rgif))
    }

    /// Returns `true` if the namespace has the placement identifier.
    pub fn has(&self, identifier: u16) -> bool {
        let (group, handle) = self.split(identifier);
        group < self.reclaim_groups && usize::from(handle) < self.placement_handles.len()
    }

    /// Returns `true` if the host can specify a reclaim unit handle (log page 21h).
    pub fn specifies(&self, handle: usize) -> bool {
        self.placement_handles.iter().any(|&listed| usize::from(listed) == handle)
    }
}

/// Reclaim unit handle status descriptor (I/O Management Receive, 7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandleStatus {
    /// Placement Identifier (PID).
    pub placement_id: u16,
    /// Reclaim Unit Handle Identifier (RUHID).
    pub handle: u16,
    /// Estimated Active Reclaim Unit Time Remaining, in seconds; 0 if not reported.
    pub time_remaining_s: u32,
    /// Reclaim Unit Available Media Writes: remaining space in the reclaim unit.
    pub available: Bytes,
}

/// FDP Statistics log page (22h, 5.1.12.1.30).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FdpStatistics {
    /// Host Bytes with Metadata Written.
    pub host_bytes: u64,
    /// Media Bytes with Metadata Written, by the host and the controller.
    pub media_bytes: u64,
    /// Media Bytes Erased.
    pub erased_bytes: u64,
}

impl FdpEventType {
    /// Returns the Event Type field: the codes of controller events start at 80h.
    pub fn code(self) -> u8 {
        if self.is_of_host() { self as u8 } else { 0x80 + self as u8 - HOST_EVENTS }
    }

    /// Returns the event type with code `code`; `None` for reserved codes.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.code() == code)
    }

    /// Returns `true` for events caused by host commands.
    pub fn is_of_host(self) -> bool {
        (self as u8) < HOST_EVENTS
    }
}

/// Number of event types caused by host commands.
const HOST_EVENTS: u8 = FdpEventType::MediaReallocated as u8;

/// FDP event; fields marked as invalid by its flags are `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FdpEvent {
    /// Event Type.
    pub kind: FdpEventType,
    /// Event Timestamp in virtual time.
    pub time: Nanos,
    /// Placement Identifier (PID).
    pub placement_id: Option<u16>,
    /// Reclaim unit handle in the reclaim group that the placement identifier specifies.
    pub handle: Option<u16>,
    /// Sectors moved by a media reallocated event, at most `FFFFh`.
    pub moved: Option<Bytes>,
}

/// Status of the data placement interface. Counts start when the drive is new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataPlacementStatus {
    /// Interface name, for example `nvme-fdp`.
    pub interface: &'static str,
    /// `true` if the directive is enabled; SCSI streams are always enabled.
    pub enabled: bool,
    /// Streams: open identifiers in ascending order.
    pub open_streams: Vec<u16>,
    /// Streams: maximum number of open streams in addition to the default stream. FDP: number of
    /// placement identifiers, which is the number of placement handles times the number of reclaim
    /// groups.
    pub limit: u16,
    /// Number of streams opened explicitly or by a write.
    pub streams_opened: u64,
    /// Number of streams closed by the host or the drive.
    pub streams_released: u64,
    /// Writes to a stream or placement identifier that the drive could not provide.
    pub overflow_writes: u64,
    /// Bytes written by overflow writes.
    pub overflow_bytes: u64,
    /// Overflow bytes by stream number or placement identifier; 65535 represents all numbers that
    /// are not counted individually.
    pub overflow_by_number: Vec<(u16, u64)>,
    /// FDP statistics, which are counted with every interface.
    pub statistics: FdpStatistics,
    /// FDP log pages; `None` for other interfaces.
    pub fdp: Option<FdpStatus>,
}

/// Flexible Data Placement status beyond [`FdpStatistics`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FdpStatus {
    /// Status descriptors by reclaim group, then by placement handle.
    pub handles: Vec<HandleStatus>,
    /// Number of events of each type in `FdpEventType::ALL`, including events that were not logged.
    pub events: [u64; FdpEventType::ALL.len()],
    /// Event log: host events, then controller events, each oldest first.
    pub log: Vec<FdpEvent>,
    /// Unwritten bytes in the reclaim units abandoned by handle updates.
    pub abandoned_bytes: u64,
}

/// Result of an administrative command.
pub type Answer<T> = Result<T, Refusal>;

/// Administrative commands of a data placement interface. A drive rejects the commands of other
/// interfaces.
pub trait DataPlacement {
    /// Returns the interface name for messages.
    fn interface_name(&self) -> &'static str;

    /// Returns the interface status; `None` if the drive does not report one.
    fn status(&mut self) -> Option<DataPlacementStatus>;

    // -- NVMe directives (8.1.8) ----------------------------------------------------------------

    /// Identify directive, Return Parameters.
    fn directives(&self) -> Answer<Directives>;

    /// Identify directive, Enable Directive, for the Streams directive; disabling it closes all
    /// streams.
    fn enable_streams(&mut self, enabled: bool) -> Answer<()>;

    /// Streams directive, Return Parameters.
    fn stream_parameters(&mut self) -> Answer<StreamParameters>;

    /// Streams directive, Get Status: open identifiers in ascending order.
    fn stream_status(&mut self) -> Answer<Vec<u16>>;

    /// Streams directive, Allocate Resources; returns the number of streams granted.
    fn allocate_streams(&mut self, wanted: u16) -> Answer<u16>;

    /// Streams directive, Release Identifier; returns `true` if the identifier was open.
    fn release_stream(&mut self, id: u16) -> Answer<bool>;

    /// Streams directive, Release Resources: releases the namespace's exclusive stream resources.
    fn release_stream_resources(&mut self) -> Answer<()>;

    // -- SCSI stream control (SBC-4), which NVMe drives reject ----------------------------------

    /// STREAM CONTROL command, open; returns the assigned identifier.
    fn scsi_open_stream(&mut self) -> Answer<u16> {
        Err(self.no_scsi())
    }

    /// STREAM CONTROL command, close.
    fn scsi_close_stream(&mut self, _id: u16) -> Answer<()> {
        Err(self.no_scsi())
    }

    /// GET STREAM STATUS; returns the open identifiers, starting at `first`.
    fn scsi_stream_status(&mut self, _first: u16) -> Answer<Vec<u16>> {
        Err(self.no_scsi())
    }

    /// Block Limits Extension VPD page (B7h).
    fn scsi_block_limits(&mut self) -> Answer<BlockLimitsExtension> {
        Err(self.no_scsi())
    }

    /// Returns the error for a SCSI command on a drive without SCSI streams.
    fn no_scsi(&self) -> Refusal {
        Refusal::OtherInterface { has: self.interface_name(), wants: "scsi-streams" }
    }

    // -- FDP (8.1.10) ---------------------------------------------------------------------------

    /// FDP Configurations log page (20h).
    fn fdp_configuration(&mut self) -> Answer<FdpConfiguration>;

    /// I/O Management Receive, reclaim unit handle status, by reclaim group and then by placement
    /// handle.
    fn fdp_handle_status(&mut self) -> Answer<Vec<HandleStatus>>;

    /// I/O Management Send, reclaim unit handle update: abandons the units that the identifiers
    /// reference, so that their next writes go to empty units. Returns the number of abandoned
    /// units.
    fn fdp_update(&mut self, ids: &[u16]) -> Answer<u32>;

    /// Set Features, FDP events: enables or disables event types for the reclaim unit handle of a
    /// placement handle.
    fn fdp_enable_events(&mut self, id: u16, kinds: &[FdpEventType], enabled: bool) -> Answer<()>;

    /// Get Features, FDP events: returns the enabled event types.
    fn fdp_enabled_events(&mut self, id: u16) -> Answer<Vec<FdpEventType>>;

    /// Enables all events for every placement handle, for a host that retains the whole log. A
    /// drive with another interface ignores this call.
    fn fdp_enable_all_events(&mut self) {
        let configuration = self.fdp_configuration();
        let handles = configuration.map_or(0, |fdp| fdp.placement_handles.len());
        for handle in 0..handles as u16 {
            let enabled = self.fdp_enable_events(handle, &FdpEventType::ALL, true);
            debug_assert_eq!(enabled, Ok(()), "a placement handle of the namespace");
        }
    }

    /// FDP Events log page (23h): the newest events of the host or the controller, oldest first.
    fn fdp_events(&mut self, of_host: bool) -> Answer<Vec<FdpEvent>>;

    /// FDP Statistics log page (22h).
    fn fdp_statistics(&mut self) -> Answer<FdpStatistics>;
}
