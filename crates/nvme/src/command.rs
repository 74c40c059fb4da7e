//! Submission queue entries, the work that they trigger, and completion queue entries.

use crate::page::read;
use crate::status::{Refusal, Status};

/// Size of a submission queue entry in bytes.
pub const ENTRY_BYTES: usize = 64;
/// Maximum transfer size of a command, reported as MDTS.
pub const MAX_TRANSFER: u32 = 1 << 20;
/// The drive's only namespace.
pub const NSID: u32 = 1;
/// Namespace Identifier that addresses all namespaces.
pub const ALL_NAMESPACES: u32 = u32::MAX;

/// A submission queue entry of 64 bytes (Base 2.1, 4.1).
#[derive(Clone, Copy)]
pub struct Entry<'a>(pub &'a [u8; ENTRY_BYTES]);

impl Entry<'_> {
    /// Returns the opcode (CDW0 bits 7:0).
    pub fn opcode(self) -> u8 {
        self.0[0]
    }

    /// Returns the Fused Operation; 0 for a normal operation.
    pub fn fused(self) -> u8 {
        self.0[1] & 3
    }

    /// Returns the Command Identifier (CDW0 bits 31:16).
    pub fn command_id(self) -> u16 {
        u16::from_le_bytes([self.0[2], self.0[3]])
    }

    /// Namespace Identifier.
    pub fn nsid(self) -> u32 {
        self.dword(1)
    }

    /// Returns command dword `number`, 0 to 15.
    pub fn dword(self, number: usize) -> u32 {
        debug_assert!(number < ENTRY_BYTES / 4, "an entry has no command dword {number}");
        read(self.0, number * 4).map_or(0, u32::from_le_bytes)
    }

    /// Returns command dwords `number` and `number` + 1 as one 64-bit number.
    pub fn quadword(self, number: usize) -> u64 {
        u64::from(self.dword(number)) | u64::from(self.dword(number + 1)) << 32
    }

    pub(crate) fn word(self, byte: usize) -> u16 {
        debug_assert!(byte + 2 <= ENTRY_BYTES, "an entry has no byte {byte}");
        read(self.0, byte).map_or(0, u16::from_le_bytes)
    }

    /// Returns bits `low` to `high` of command dword `number`.
    pub fn bits(self, number: usize, low: u32, high: u32) -> u32 {
        debug_assert!(low <= high && high < u32::BITS, "bits {low} to {high} of a dword");
        self.dword(number) >> low & (u32::MAX >> (31 - (high - low)))
    }

    pub(crate) fn flag(self, number: usize, bit: u32) -> bool {
        self.dword(number) >> bit & 1 == 1
    }
}

/// A command as received by a transport.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// Submission queue entry.
    pub entry: Entry<'a>,
    /// Data from the host, if the command transfers data to the controller.
    pub data: &'a [u8],
    /// Size of the host's buffer in bytes, as specified by the command's data pointer.
    pub buffer: u32,
}

impl<'a> Request<'a> {
    pub(crate) fn first(self, count: usize) -> Result<&'a [u8], Refusal> {
        self.data.get(..count).ok_or(Refusal::at(Status::DATA_SGL_LENGTH, 24))
    }
}

/// Byte range of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
}

/// Placement requested by the host for a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The host requested no placement.
    Unstated,
    /// Streams directive: a stream identifier, not 0.
    Stream(u16),
    /// Data Placement directive: a placement identifier, which may be invalid.
    Identifier(u16),
}

/// Work that the drive must do for a command. Offsets and lengths are in bytes and within the
/// drive's capacity. The caller holds the data of write and compare commands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "commands of the NVM Command Set; `fua` is Force Unit Access")]
pub enum Work {
    Read(Span),
    Write {
        span: Span,
        placement: Placement,
        fua: bool,
    },
    WriteZeroes {
        span: Span,
        placement: Placement,
        fua: bool,
        deallocate: bool,
    },
    Deallocate(Vec<Span>),
    /// Makes all completed writes durable.
    Flush,
    Compare(Span),
    Verify(Span),
}

/// Identifier of a command whose `Work` is not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Controller Identifier.
    pub controller: u16,
    /// Queue Identifier.
    pub queue: u16,
    /// Command Identifier.
    pub command_id: u16,
    pub(crate) opcode: u8,
    pub(crate) nsid: u32,
    pub(crate) lba: u64,
}

impl Ticket {
    /// Returns the completion of a command whose work succeeded, without the subsystem that
    /// `Subsystem::fail` needs.
    pub fn success(&self) -> Reply {
        Reply::new(self.controller, self.queue, self.command_id)
    }
}

/// A completion without the submission queue head, which only the transport knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Controller Identifier.
    pub controller: u16,
    /// Queue Identifier.
    pub queue: u16,
    /// Command Identifier.
    pub command_id: u16,
    /// Dwords 0 and 1 of the completion queue entry.
    pub result: u64,
    /// Status code type and status code.
    pub status: Status,
    /// `true` if the Error Information log page has an entry for the status.
    pub logged: bool,
    /// Data for the host, at most as long as its buffer; empty for reads (the caller's data).
    pub data: Vec<u8>,
}

impl Reply {
    /// Creates a successful reply without a result or data.
    pub fn new(controller: u16, queue: u16, command_id: u16) -> Self {
        let status = Status::SUCCESS;
        Self { controller, queue, command_id, result: 0, status, logged: false, data: Vec::new() }
    }

    /// Returns the completion queue entry (Base 2.1, 4.2).
    pub fn entry(&self, queue_head: u16) -> [u8; 16] {
        let mut entry = [0; 16];
        entry[..8].copy_from_slice(&self.result.to_le_bytes());
        entry[8..10].copy_from_slice(&queue_head.to_le_bytes());
        entry[10..12].copy_from_slice(&self.queue.to_le_bytes());
        entry[12..14].copy_from_slice(&self.command_id.to_le_bytes());
        entry[14..].copy_from_slice(&self.status.field(self.logged).to_le_bytes());
        entry
    }
}

/// Result of submitting a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The command is complete.
    Done(Reply),
    /// An asynchronous event request, which completes when an event occurs.
    Held,
    /// The drive has work to do; `Ticket::success` or `Subsystem::fail` returns the completion.
    Work(Ticket, Work),
}
