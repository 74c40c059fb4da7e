//! Block layer events, parsed by their fields.

use crate::format::{EventFormat, Field, FormatError};

/// Operation of a request, from the letters printed by the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Operation {
    /// Transfers data from the drive.
    Read,
    /// Transfers data to the drive.
    Write,
    /// Discards data, or writes zeroes without data.
    Discard,
    /// Flushes the volatile cache.
    Flush,
    /// Zone commands, and commands that drivers send to their drives.
    Other,
}

/// Request flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// Flag: a process waits for the request (`REQ_SYNC`).
    pub const SYNC: u8 = 1;
    /// Flag: forced unit access (`REQ_FUA`).
    pub const FUA: u8 = 2;
    /// Flag: a flush precedes the request (`REQ_PREFLUSH`).
    pub const PREFLUSH: u8 = 4;
    /// Flag: read-ahead by the kernel (`REQ_RAHEAD`).
    pub const READAHEAD: u8 = 8;
    /// Flag: file system metadata (`REQ_META`).
    pub const META: u8 = 16;
    /// Flag: write of zeroes without data (`REQ_OP_WRITE_ZEROES`).
    pub const ZEROES: u8 = 32;
    /// Secure erase (`REQ_OP_SECURE_ERASE`).
    pub const ERASE: u8 = 64;
    /// Atomic write (`REQ_ATOMIC`).
    pub const ATOMIC: u8 = 128;

    pub(crate) fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }
}

/// Parses the letters that the kernel prints for a request (`blk_fill_rwbs`): F for a preceding
/// flush, the operation, then F (FUA), A (readahead), S (sync), M (metadata), U (atomic). N
/// represents any other operation; of these, only writes of zeroes cover `sectors`.
pub fn parse_rwbs(text: &[u8], sectors: u32) -> (Operation, Flags) {
    let mut flags = 0;
    let mut rest = text;
    if let [b'F', b'W' | b'R' | b'D' | b'F' | b'N' | b'Z', ..] = rest {
        flags |= Flags::PREFLUSH;
        rest = &rest[1..];
    }
    let (operation, used) = match rest {
        [b'W', b'Z', ..] | [b'D', b'E', ..] => (Operation::Discard, 2),
        [b'Z', b'A', ..] => (Operation::Write, 2),
        [b'R', ..] => (Operation::Read, 1),
        [b'W', ..] => (Operation::Write, 1),
        [b'D', ..] => (Operation::Discard, 1),
        [b'F', ..] => (Operation::Flush, 1),
        [b'N', ..] if sectors > 0 => (Operation::Discard, 1),
        _ => return (Operation::Other, Flags(0)),
    };
    flags |= match &rest[..used] {
        b"WZ" | b"N" => Flags::ZEROES,
        b"DE" => Flags::ERASE,
        _ => 0,
    };
    for letter in &rest[used..] {
        flags |= match letter {
            b'F' => Flags::FUA,
            b'A' => Flags::READAHEAD,
            b'S' => Flags::SYNC,
            b'M' => Flags::META,
            b'U' => Flags::ATOMIC,
            _ => 0,
        };
    }
    (operation, Flags(flags))
}

/// Step in the life of a request. The letters used by blktrace are in brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A request is created for a bio (G).
    Get,
    /// The driver receives the request (D).
    Issue,
    /// The driver has completed the request, or a portion of it (C).
    Complete,
    /// The driver returns the request unexecuted (R).
    Requeue,
    /// A bio is merged at the front of a request (F).
    FrontMerge,
    /// A request is merged at the end of another request.
    Merge,
    /// A bio arrives at a device without requests (Q).
    BioQueue,
    /// A bio of a device without requests completes (C).
    BioComplete,
}

impl EventKind {
    /// Returns the event type with this name in `events/block`.
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "block_getrq" => Self::Get,
            "block_rq_issue" => Self::Issue,
            "block_rq_complete" => Self::Complete,
            "block_rq_requeue" => Self::Requeue,
            "block_bio_frontmerge" => Self::FrontMerge,
            "block_rq_merge" => Self::Merge,
            "block_bio_queue" => Self::BioQueue,
            "block_bio_complete" => Self::BioComplete,
            _ => return None,
        })
    }
}

/// Block layer event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockEvent {
    /// Time on the trace clock.
    pub time_ns: u64,
    /// Step of the request.
    pub kind: EventKind,
    /// Request operation.
    pub operation: Operation,
    /// Request flags.
    pub flags: Flags,
    /// First 512-byte sector on the device.
    pub sector: u64,
    /// Number of sectors.
    pub sectors: u32,
    /// Identifier of the running thread.
    pub thread_id: i32,
    /// Number of the thread's name in `Names`.
    pub name: u32,
    /// Positive error number; 0 for success.
    pub errno: u16,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockFormat {
    pub(crate) kind: EventKind,
    sector: Field,
    sectors: Field,
    rwbs: Field,
    thread_id: Field,
    comm: Option<Field>,
    error: Option<Field>,
}

impl BlockFormat {
    pub(crate) fn of(format: &EventFormat, kind: EventKind) -> Result<Self, FormatError> {
        Ok(Self {
            kind,
            sector: format.field("sector")?,
            sectors: format.field("nr_sector")?,
            rwbs: format.field("rwbs")?,
            thread_id: format.field("common_pid")?,
            comm: format.optional("comm"),
            error: format.optional("error").or_else(|| format.optional("errors")),
        })
    }

    /// Returns the event and the name of its thread.
    pub(crate) fn decode<'a>(&self, time_ns: u64, event: &'a [u8]) -> (BlockEvent, &'a [u8]) {
        let sectors = self.sectors.number(event) as u32;
        let (operation, flags) = parse_rwbs(self.rwbs.text(event), sectors);
        let decoded = BlockEvent {
            time_ns,
            kind: self.kind,
            operation,
            flags,
            sector: self.sector.number(event),
            sectors,
            thread_id: self.thread_id.number(event) as i32,
            name: 0,
            errno: self.error.map_or(0, |field| (field.number(event) as i32).unsigned_abs() as u16),
        };
        (decoded, self.comm.map_or(&[][..], |field| field.text(event)))
    }
}
