//! Status codes (NVMe Base Specification 2.1, 4.2.3; NVM Command Set 1.1; Fabrics 3.3).

use std::fmt;

/// Status Code Type in bits 10:8, Status Code in bits 7:0.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(pub u16);

macro_rules! statuses {
    ($($name:ident = $code:literal, $text:literal;)*) => {
        impl Status {
            $(#[doc = $text] pub const $name: Self = Self($code);)*

            /// Returns the standard's name for the status.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($code => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

statuses! {
    SUCCESS = 0x000, "Successful Completion";
    INVALID_OPCODE = 0x001, "Invalid Command Opcode";
    INVALID_FIELD = 0x002, "Invalid Field in Command";
    INTERNAL_ERROR = 0x006, "Internal Error";
    ABORT_REQUESTED = 0x007, "Command Abort Requested";
    INVALID_NAMESPACE = 0x00b, "Invalid Namespace or Format";
    SEQUENCE_ERROR = 0x00c, "Command Sequence Error";
    DATA_SGL_LENGTH = 0x00f, "Data SGL Length Invalid";
    SGL_TYPE = 0x011, "SGL Descriptor Type Invalid";
    SGL_OFFSET = 0x016, "SGL Offset Invalid";
    WRITE_PROTECTED = 0x020, "Namespace is Write Protected";
    TRANSIENT_TRANSPORT = 0x022, "Transient Transport Error";
    LBA_OUT_OF_RANGE = 0x080, "LBA Out of Range";
    ASYNC_LIMIT_EXCEEDED = 0x105, "Asynchronous Event Request Limit Exceeded";
    INVALID_LOG_PAGE = 0x109, "Invalid Log Page";
    INVALID_FORMAT = 0x10a, "Invalid Format";
    FEATURE_NOT_SAVEABLE = 0x10d, "Feature Identifier Not Saveable";
    FEATURE_NOT_OF_NAMESPACE = 0x10f, "Feature Not Namespace Specific";
    COMMAND_SET_REJECTED = 0x12b, "I/O Command Set Combination Rejected";
    STREAM_ALLOCATION_FAILED = 0x17f, "Stream Resource Allocation Failed";
    CONNECT_FORMAT = 0x180, "Connect Incompatible Format";
    CONNECT_BUSY = 0x181, "Connect Controller Busy";
    CONNECT_PARAMETERS = 0x182, "Connect Invalid Parameters";
    CONNECT_HOST = 0x184, "Connect Invalid Host";
    WRITE_FAULT = 0x280, "Write Fault";
    UNRECOVERED_READ = 0x281, "Unrecovered Read Error";
    COMPARE_FAILURE = 0x285, "Compare Failure";
}

impl Status {
    /// Returns `true` if the command may succeed when sent again, so that Do Not Retry is 0.
    fn may_succeed_later(self) -> bool {
        matches!(
            self,
            Self::INTERNAL_ERROR
                | Self::ABORT_REQUESTED
                | Self::TRANSIENT_TRANSPORT
                | Self::CONNECT_BUSY
        )
    }

    /// Returns the Status field of a completion queue entry (bits 15:1 of its last word, with phase
    /// tag 0). `more` indicates an entry in the Error Information log page.
    pub fn field(self, more: bool) -> u16 {
        debug_assert!(self.0 < 1 << 11, "a status has a type of 3 and a code of 8 bits");
        let do_not_retry = self != Self::SUCCESS && !self.may_succeed_later();
        (self.0 | u16::from(more) << 13 | u16::from(do_not_retry) << 14) << 1
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ({:03x}h)", self.name().unwrap_or("unnamed status"), self.0)
    }
}

/// Command rejection: the status, and the invalid byte of the submission queue entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: Status,
    pub(crate) byte: Option<u8>,
    /// Dword 0 of the completion queue entry, where Connect reports the invalid parameter.
    pub(crate) result: u32,
}

impl Refusal {
    pub(crate) fn at(status: Status, byte: u8) -> Self {
        Self { status, byte: Some(byte), result: 0 }
    }

    /// Returns Invalid Field in Command for command dword `dword`.
    pub(crate) fn field(dword: u8) -> Self {
        debug_assert!(dword < 16, "an entry has no command dword {dword}");
        Self::at(Status::INVALID_FIELD, dword * 4)
    }
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Self { status, byte: None, result: 0 }
    }
}
