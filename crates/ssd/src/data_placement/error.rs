//! Rejection of administrative commands, with the status codes of their standard.

use thiserror::Error;

/// Why the drive rejects a command.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// NVMe generic status 02h.
    #[error("Invalid Field in Command (02h): {0}")]
    InvalidField(String),
    /// NVMe Base 2.1, 8.1.8.3: command specific status 7Fh.
    #[error("Stream Resource Allocation Failed (7Fh): the drive has no stream resources")]
    AllocationFailed,
    /// SPC: CHECK CONDITION with sense data.
    #[error("CHECK CONDITION, {}: {about}", sense.name())]
    CheckCondition { sense: Sense, about: String },
    /// The drive has a different interface, or none.
    #[error("the drive has {has}, not {wants}")]
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
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidFieldInCdb => "ILLEGAL REQUEST, INVALID FIELD IN CDB (24h/00h)",
            Self::TooManyStreams => "MAXIMUM NUMBER OF STREAMS OPEN (55h/10h)",
        }
    }
}
