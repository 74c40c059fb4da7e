//! Data placement: state and parameters of NVMe streams, SCSI streams and Flexible Data Placement
//! (FDP), as a drive reports them to its host. Section numbers are those of the NVMe Base
//! Specification 2.1.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use writecliff_base::{Bytes, Nanos};

/// Reason for the rejection of an administrative command, with the status code of its standard.
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
    #[allow(missing_docs, reason = "sense data, and the field or resource that they are about")]
    CheckCondition { sense: Sense, about: String },
    /// The drive has a different interface, or none.
    #[error("the drive has {has}, not {wants}")]
    #[allow(missing_docs, reason = "names of the drive's interface and the command's")]
    OtherInterface { has: &'static str, wants: &'static str },
}

/// Additional sense code and qualifier, with the sense key if the standard specifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sense {
    /// ILLEGAL REQUEST, 24h/00h.
    InvalidFieldInCdb,
    /// 55h/10h.
    TooManyStreams,
}

impl Sense {
    /// Returns sense key, additional sense text and codes.
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidFieldInCdb => "ILLEGAL REQUEST, INVALID FIELD IN CDB (24h/00h)",
            Self::TooManyStreams => "MAXIMUM NUMBER OF STREAMS OPEN (55h/10h)",
        }
    }
}

/// Identify directive, Return Parameters (8.1.8.2): bit n of each field is directive type n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directives {
    /// Directives Supported.
    pub supported: u8,
    /// Directives Enabled.
    pub enabled: u8,
    /// Enabled across a Controller Level Reset.
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
    /// Max Streams Limit.
    pub limit: u16,
    /// NVM Subsystem Streams Available: not allocated for exclusive use.
    pub available: u16,
    /// NVM Subsystem Streams Open, except streams with exclusive resources.
    pub open: u16,
    /// Stream Write Size: a program unit.
    pub write_size: Bytes,
    /// Stream Granularity Size: a reclaim unit, in stream write sizes; `FFFFh` if it is larger.
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
    /// Program unit in logical blocks; `FFFFh` if it is larger.
    pub optimal_stream_write_size: u16,
    /// Reclaim unit in optimal stream write sizes.
    pub stream_granularity_size: u32,
}

/// Reclaim Unit Handle Type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Isolation {
    /// Data are isolated until GC relocates them.
    Initially = 1,
    /// Data are always isolated.
    Persistently = 2,
}

impl Isolation {
    /// Returns the type as in the FDP configurations log page.
    pub fn name(self) -> &'static str {
        match self {
            Self::Initially => "initially isolated",
            Self::Persistently => "persistently isolated",
        }
    }
}

/// The only FDP configuration of a drive (log page 20h, 5.1.12.1.28): one namespace, enabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FdpConfiguration {
    /// Type of each reclaim unit handle; the number of handles is NRUH.
    pub handles: Vec<Isolation>,
    /// The namespace's list: reclaim unit handle of each placement handle.
    pub placement_handles: Vec<u16>,
    /// Reclaim Unit Nominal Size.
    pub reclaim_unit: Bytes,
    /// Estimated Reclaim Unit Time Limit in seconds; 0 if not reported.
    pub time_limit_s: u32,
    /// Number of Reclaim Groups (NRG), at least 1.
    pub reclaim_groups: u16,
    /// Reclaim Group Identifier Format: number of upper bits of a placement identifier that
    /// contain the reclaim group. The lower bits contain the placement handle.
    pub rgif: u8,
    /// `true` if a volatile write cache is present (FDPVWC).
    pub volatile_cache: bool,
}

impl FdpConfiguration {
    /// Returns the number of placement identifiers of the namespace: its placement handles in each
    /// reclaim group.
    pub fn identifiers(&self) -> usize {
        self.placement_handles.len() * usize::from(self.reclaim_groups)
    }

    /// Returns the reclaim group and the placement handle of a placement identifier.
    pub fn split(&self, identifier: u16) -> (u16, u16) {
        debug_assert!(self.rgif < 16, "a placement identifier has 16 bits");
        let lower = 16 - u32::from(self.rgif);
        let group = identifier.checked_shr(lower).unwrap_or(0);
        (group, identifier & (u16::MAX >> self.rgif))
    }

    /// Returns `true` if the namespace has a placement identifier.
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
    /// Reclaim Unit Available Media Writes: space left in the unit.
    pub available: Bytes,
}

/// The FDP Statistics log page (22h, 5.1.12.1.30).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FdpStatistics {
    /// Host Bytes with Metadata Written.
    pub host_bytes: u64,
    /// Media Bytes with Metadata Written, by host and controller.
    pub media_bytes: u64,
    /// Media Bytes Erased.
    pub erased_bytes: u64,
}

/// FDP event types and their codes (log page 23h, 5.1.12.1.31).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum FdpEventType {
    /// The host moved to another reclaim unit before the active unit was full.
    NotFullyWritten = 0x00,
    /// A reclaim unit stayed active longer than the time limit.
    TimeLimitExceeded = 0x01,
    /// A Controller Level Reset changed the reclaim units that handles reference.
    ResetModifiedHandles = 0x02,
    /// A write named a placement identifier that the namespace does not have.
    InvalidPlacementId = 0x03,
    /// The controller moved data to another reclaim unit.
    MediaReallocated = 0x80,
    /// The controller changed the reclaim unit that a handle references.
    ImplicitlyModified = 0x81,
}

impl FdpEventType {
    /// All types: events of the host, then of the controller.
    pub const ALL: [Self; 6] = [
        Self::NotFullyWritten,
        Self::TimeLimitExceeded,
        Self::ResetModifiedHandles,
        Self::InvalidPlacementId,
        Self::MediaReallocated,
        Self::ImplicitlyModified,
    ];

    /// Returns the Event Type field.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Returns the type with Event Type field `code`; `None` for reserved codes.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.code() == code)
    }

    /// Returns the position in [`Self::ALL`].
    pub fn index(self) -> usize {
        (self as usize & 0x7f) + if self.is_of_host() { 0 } else { 4 }
    }

    /// Returns `true` for events that the host's commands cause (codes below 80h).
    pub fn is_of_host(self) -> bool {
        self.code() < 0x80
    }

    /// Returns the name of the event in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotFullyWritten => "reclaim unit not fully written",
            Self::TimeLimitExceeded => "reclaim unit time limit exceeded",
            Self::ResetModifiedHandles => "controller reset modified handles",
            Self::InvalidPlacementId => "invalid placement identifier",
            Self::MediaReallocated => "media reallocated",
            Self::ImplicitlyModified => "implicitly modified handle",
        }
    }
}

/// One FDP event; fields that its flags mark as invalid are `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FdpEvent {
    /// Event Type.
    pub kind: FdpEventType,
    /// Event Timestamp in virtual time.
    pub time: Nanos,
    /// Placement Identifier (PID).
    pub placement_id: Option<u16>,
    /// Reclaim unit handle, in the reclaim group that the placement identifier names.
    pub handle: Option<u16>,
    /// Media reallocated: data moved, at most `FFFFh` sectors.
    pub moved: Option<Bytes>,
}

/// Status of the data placement interface. Counts start when the drive is new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataPlacementStatus {
    /// Name of the interface, such as `nvme-fdp`.
    pub interface: &'static str,
    /// `true` if the directive is enabled; SCSI streams always are.
    pub enabled: bool,
    /// Streams: identifiers that are open, ascending.
    pub open_streams: Vec<u16>,
    /// Streams: maximum number of open streams in addition to the default one. FDP: number of
    /// placement identifiers: the placement handles in each reclaim group.
    pub limit: u16,
    /// Streams opened, explicitly or by a write.
    pub streams_opened: u64,
    /// Streams closed by the host or the drive.
    pub streams_released: u64,
    /// Writes to a stream or placement identifier that the drive could not provide.
    pub overflow_writes: u64,
    /// Bytes of overflow writes.
    pub overflow_bytes: u64,
    /// Overflow bytes by stream number or placement identifier; 65535 represents all numbers that
    /// are not counted individually.
    pub overflow_by_number: Vec<(u16, u64)>,
    /// FDP statistics, counted with every interface.
    pub statistics: FdpStatistics,
    /// FDP log pages; `None` with other interfaces.
    pub fdp: Option<FdpStatus>,
}

/// Status of Flexible Data Placement beyond [`FdpStatistics`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FdpStatus {
    /// Status descriptors by reclaim group, then by placement handle.
    pub handles: Vec<HandleStatus>,
    /// Number of events of each type in `FdpEventType::ALL`, logged or not.
    pub events: [u64; FdpEventType::ALL.len()],
    /// The log: events of the host, then of the controller, each oldest first.
    pub log: Vec<FdpEvent>,
    /// Unwritten bytes of the reclaim units that handle updates abandoned.
    pub abandoned_bytes: u64,
}

/// Answer to an administrative command.
pub type Answer<T> = Result<T, Refusal>;

/// The administrative commands of a data placement interface. A drive rejects the commands of
/// other interfaces.
pub trait DataPlacement {
    /// Returns the name of the drive's interface for messages.
    fn interface_name(&self) -> &'static str;

    /// Returns the status of the interface; `None` if the drive does not report a status.
    fn status(&mut self) -> Option<DataPlacementStatus>;

    // -- NVMe directives (8.1.8) ----------------------------------------------------------------

    /// Identify directive, Return Parameters.
    fn directives(&self) -> Answer<Directives>;

    /// Identify directive, Enable Directive, of the Streams directive; disabling closes all
    /// streams.
    fn enable_streams(&mut self, enabled: bool) -> Answer<()>;

    /// Streams directive, Return Parameters.
    fn stream_parameters(&mut self) -> Answer<StreamParameters>;

    /// Get Status: open identifiers, ascending.
    fn stream_status(&mut self) -> Answer<Vec<u16>>;

    /// Allocate Resources; returns the number of streams granted.
    fn allocate_streams(&mut self, wanted: u16) -> Answer<u16>;

    /// Release Identifier; returns `true` if it was open.
    fn release_stream(&mut self, id: u16) -> Answer<bool>;

    /// Release Resources: returns the namespace's exclusive stream resources.
    fn release_stream_resources(&mut self) -> Answer<()>;

    // -- SCSI stream control (SBC-4), which NVMe drives reject ----------------------------------

    /// STREAM CONTROL, open; returns the assigned identifier.
    fn scsi_open_stream(&mut self) -> Answer<u16> {
        Err(self.no_scsi())
    }

    /// STREAM CONTROL, close.
    fn scsi_close_stream(&mut self, _id: u16) -> Answer<()> {
        Err(self.no_scsi())
    }

    /// GET STREAM STATUS; returns the open identifiers from `first` on.
    fn scsi_stream_status(&mut self, _first: u16) -> Answer<Vec<u16>> {
        Err(self.no_scsi())
    }

    /// Block Limits Extension VPD page (B7h).
    fn scsi_block_limits(&mut self) -> Answer<BlockLimitsExtension> {
        Err(self.no_scsi())
    }

    /// Returns the error of SCSI commands on a drive that is not a SCSI drive.
    fn no_scsi(&self) -> Refusal {
        Refusal::OtherInterface { has: self.interface_name(), wants: "scsi-streams" }
    }

    // -- FDP (8.1.10) ---------------------------------------------------------------------------

    /// FDP Configurations log page (20h).
    fn fdp_configuration(&mut self) -> Answer<FdpConfiguration>;

    /// I/O Management Receive, reclaim unit handle status: by reclaim group, then by placement
    /// handle.
    fn fdp_handle_status(&mut self) -> Answer<Vec<HandleStatus>>;

    /// I/O Management Send, reclaim unit handle update: abandons the units that these identifiers
    /// reference, so that their next writes go to empty units. Returns the number of units
    /// abandoned.
    fn fdp_update(&mut self, ids: &[u16]) -> Answer<u32>;

    /// Set Features, FDP events: enables or disables event types for the reclaim unit handle of a
    /// placement handle.
    fn fdp_enable_events(&mut self, id: u16, kinds: &[FdpEventType], enabled: bool) -> Answer<()>;

    /// Get Features, FDP events: the enabled event types.
    fn fdp_enabled_events(&mut self, id: u16) -> Answer<Vec<FdpEventType>>;

    /// Enables all events for every placement handle, for a host that keeps the whole log. Has no
    /// effect on a drive with another interface.
    fn fdp_enable_all_events(&mut self) {
        let configuration = self.fdp_configuration();
        let handles = configuration.map_or(0, |fdp| fdp.placement_handles.len());
        for handle in 0..handles as u16 {
            let enabled = self.fdp_enable_events(handle, &FdpEventType::ALL, true);
            debug_assert_eq!(enabled, Ok(()), "a placement handle of the namespace");
        }
    }

    /// FDP Events log page (23h): the newest events of the host or of the controller, oldest first.
    fn fdp_events(&mut self, of_host: bool) -> Answer<Vec<FdpEvent>>;

    /// FDP Statistics log page (22h).
    fn fdp_statistics(&mut self) -> Answer<FdpStatistics>;
}
