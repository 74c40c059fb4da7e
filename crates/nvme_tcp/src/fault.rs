//! Transport errors, which end a connection (1.1, 3.5 and 3.6.2.5), and termination requests.

use thiserror::Error;

use crate::pdu::{C2H_TERMINATE, HEADER_BYTES, QUOTED_BYTES};

/// A protocol violation, with its Fatal Error Status and Information.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// Offset of the invalid field in the PDU header.
    #[error("the host sent a PDU with an invalid header field at byte {0}")]
    Header(u32),
    /// PDU Sequence Error: the PDU type is not allowed in the current state.
    #[error("the host sent a PDU of a type that is not allowed in this state")]
    Sequence,
    /// Digest received from the host.
    #[error("the host sent a PDU whose header digest does not match")]
    HeaderDigest(u32),
    /// Data Transfer Out of Range.
    #[error("the host sent data outside of the requested range")]
    DataRange,
    /// Data Transfer Limit Exceeded.
    #[error("the host sent a data PDU that exceeds MAXH2CDATA")]
    DataLimit,
    /// Offset of the unsupported field in the PDU header.
    #[error("the host requested an unsupported parameter (header byte {0})")]
    Unsupported(u32),
    /// The host has ended the connection with a termination request.
    #[error("the host ended the connection with fatal error status {0}")]
    Terminated(u16),
}

impl Fault {
    fn status_and_information(self) -> Option<(u16, u32)> {
        match self {
            Self::Header(byte) => Some((1, byte)),
            Self::Sequence => Some((2, 0)),
            Self::HeaderDigest(digest) => Some((3, digest)),
            Self::DataRange => Some((4, 0)),
            Self::DataLimit => Some((5, 0)),
            Self::Unsupported(byte) => Some((6, byte)),
            Self::Terminated(_) => None,
        }
    }
}

/// End of a connection: the last bytes to send, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{fault}")]
pub struct Fatal {
    /// Protocol violation, or the host's termination request.
    pub fault: Fault,
    /// Termination request for the host; empty if the host ended the connection.
    pub last_words: Vec<u8>,
}

impl Fatal {
    /// Creates the error with the first bytes of the faulty PDU.
    pub(crate) fn new(fault: Fault, pdu: &[u8]) -> Self {
        let Some((status, information)) = fault.status_and_information() else {
            return Self { fault, last_words: Vec::new() };
        };
        let quoted = &pdu[..pdu.len().min(QUOTED_BYTES)];
        let mut words = vec![0; HEADER_BYTES];
        words[0] = C2H_TERMINATE;
        words[2] = HEADER_BYTES as u8;
        words[4..8].copy_from_slice(&((HEADER_BYTES + quoted.len()) as u32).to_le_bytes());
        words[8..10].copy_from_slice(&status.to_le_bytes());
        words[10..14].copy_from_slice(&information.to_le_bytes());
        words.extend_from_slice(quoted);
        Self { fault, last_words: words }
    }
}
