//! Client requests and their completions.

use writecliff_base::{Nanos, StreamId};
use writecliff_contents::ContentsError;
use writecliff_host_interface::{Command, Operation};
use writecliff_nvme::Ticket;

/// Maximum command size in bytes. Larger requests are split, as a host does above the maximum data
/// transfer size (NVMe MDTS) of common drives.
const TRANSFER_BYTES_MAX: u64 = 1 << 20;
const TRIM_BYTES_MAX: u64 = 1 << 30;

/// Tag that identifies a request to its session, and is returned with the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// An NBD cookie, or any number.
    Number(u64),
    /// An NVMe command, and the action to take when the request has completed.
    Nvme(Ticket, Then),
}

impl Tag {
    /// Tag of requests whose result is ignored.
    pub(crate) const NONE: Self = Self::Number(0);

    /// Returns the tag number; 0 for an NVMe command.
    pub fn number(self) -> u64 {
        match self {
            Self::Number(number) => number,
            Self::Nvme(..) => 0,
        }
    }
}

/// Action after the drive has completed a request of an NVMe command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Reply without data.
    Reply,
    /// Reply with the data of the request's range.
    Read,
    /// Complete one request of the compound command with this number.
    Part(u32),
}

/// A request to the drive. The data of a write are stored first: [`crate::Session::store`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Tag of the request in its protocol.
    pub tag: Tag,
    /// Operation of the request.
    pub operation: Operation,
    /// Offset in bytes; 0 for flushes.
    pub offset: u64,
    /// Length in bytes, a multiple of 512; 0 for flushes.
    pub length: u64,
    /// Stream or placement identifier of a write.
    pub stream: StreamId,
    /// Forced unit access: the request completes when its data are durable. The simulated drives
    /// have no such command, so a flush follows the write on a drive with a volatile cache.
    pub durable: bool,
    /// `true` for a write of zeros without data from the host (NVMe Write Zeroes).
    pub is_zeros: bool,
}

impl Request {
    /// Creates a request in the default stream.
    pub fn new(tag: Tag, operation: Operation, offset: u64, length: u64) -> Self {
        let stream = StreamId::DEFAULT;
        Self { tag, operation, offset, length, stream, durable: false, is_zeros: false }
    }

    /// Returns the commands of a request, without queue and tag.
    pub(crate) fn commands(&self) -> impl Iterator<Item = Command> {
        let mut given = 0;
        std::iter::from_fn(move || {
            let command = (given < self.length).then(|| self.command(given, 0, 0))?;
            given += u64::from(command.length);
            Some(command)
        })
    }

    /// Returns the command for the bytes from `given` on, as a host splits large requests.
    pub(crate) fn command(&self, given: u64, queue: u32, tag: u32) -> Command {
        debug_assert!(
            given < self.length || self.length == 0,
            "the request has no further commands"
        );
        let largest = match self.operation {
            Operation::Trim => TRIM_BYTES_MAX,
            _ => TRANSFER_BYTES_MAX,
        };
        let (offset, length) = (self.offset + given, (self.length - given).min(largest) as u32);
        let stream = self.stream;
        Command { stream, queue, tag, ..Command::new(self.operation, offset, length) }
    }
}

/// Reason why a request is not passed to the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Offset or length is not a multiple of the sector size.
    Unaligned,
    /// The range extends beyond the capacity.
    OutOfRange,
    /// The drive does not support TRIM.
    NoTrim,
    /// The drive does not have the requested stream.
    NoStream,
    /// The server no longer accepts new requests, or the power was cut.
    Stopped,
    /// The write data were purged before the write was submitted.
    Purged,
}

/// Reason why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No space is left for the data.
    NoSpace,
    /// The contents file could not be read or written.
    Io,
    /// A read was uncorrectable, or it returned data that differ from the written data.
    UnrecoveredRead,
    /// The drive is read-only because it has no spare space left. The contents of a range that was
    /// being written when the failure occurred are undefined.
    WriteProtected,
}

impl From<ContentsError> for Failure {
    fn from(error: ContentsError) -> Self {
        match error {
            ContentsError::Full(_) => Self::NoSpace,
            ContentsError::WriteProtected => Self::WriteProtected,
            ContentsError::Io(_) | ContentsError::OutOfRange { .. } => Self::Io,
        }
    }
}

/// A request that the drive has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The request.
    pub request: Request,
    /// Wall time when the reply is due.
    pub due: Nanos,
    /// Reason for the failure; `None` for success.
    pub failure: Option<Failure>,
}

/// Receiver of a session's replies. Any thread may call these methods, even a thread that submits
/// for another session, so no method may wait for a client.
pub trait Replies: Send + Sync {
    /// Prepares the reply to a request; a call to [`Self::send`] follows.
    fn completed(&self, done: &Done);
    /// Sends the prepared replies, as far as the client immediately accepts them.
    fn send(&self);
    /// Handles a power loss: stops sending and ends the connection.
    fn sever(&self);
}
