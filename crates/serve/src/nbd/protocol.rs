//! Constants and layouts of the NBD protocol; all integers are big-endian.

/// "NBDMAGIC", the first word sent by the server.
pub const GREETING: u64 = 0x4e42_444d_4147_4943;
/// "IHAVEOPT", which announces the newstyle handshake and starts each option.
pub const OPTION: u64 = 0x4948_4156_454f_5054;
pub(crate) const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
/// First word of a request (`NBD_REQUEST_MAGIC`).
pub const REQUEST: u32 = 0x2560_9513;
/// First word of a simple reply (`NBD_SIMPLE_REPLY_MAGIC`).
pub const SIMPLE_REPLY: u32 = 0x6744_6698;
pub(crate) const CHUNK: u32 = 0x668e_33ef;

/// Handshake flags of both sides.
pub const FIXED_NEWSTYLE: u16 = 1;
/// Handshake flag: the 124 zero bytes after `EXPORT_NAME` are omitted (`NBD_FLAG_NO_ZEROES`).
pub const NO_ZEROES: u16 = 2;
/// Number of zero bytes at the end of the reply to `EXPORT_NAME`, unless both sides set
/// `NO_ZEROES`.
pub const ZEROES: usize = 124;

/// Options.
pub mod option {
    /// Selects an export by its name and enters the transmission phase (`NBD_OPT_EXPORT_NAME`).
    pub const EXPORT_NAME: u32 = 1;
    pub(crate) const ABORT: u32 = 2;
    pub(crate) const LIST: u32 = 3;
    pub(crate) const INFO: u32 = 6;
    pub(crate) const GO: u32 = 7;
    pub(crate) const STRUCTURED_REPLY: u32 = 8;
}

pub(crate) mod reply {
    pub(crate) const ACK: u32 = 1;
    pub(crate) const SERVER: u32 = 2;
    pub(crate) const INFO: u32 = 3;
    pub(crate) const UNSUPPORTED: u32 = (1 << 31) + 1;
    pub(crate) const INVALID: u32 = (1 << 31) + 3;
    pub(crate) const UNKNOWN: u32 = (1 << 31) + 6;
    pub(crate) const TOO_BIG: u32 = (1 << 31) + 9;
}

pub(crate) mod info {
    pub(crate) const EXPORT: u16 = 0;
    pub(crate) const NAME: u16 = 1;
    pub(crate) const DESCRIPTION: u16 = 2;
    pub(crate) const BLOCK_SIZE: u16 = 3;
}

/// Transmission flags, which list the operations that the export supports.
pub(crate) mod flag {
    pub(crate) const HAS_FLAGS: u16 = 1;
    pub(crate) const FLUSH: u16 = 1 << 2;
    pub(crate) const FUA: u16 = 1 << 3;
    pub(crate) const ROTATIONAL: u16 = 1 << 4;
    pub(crate) const TRIM: u16 = 1 << 5;
    pub(crate) const WRITE_ZEROES: u16 = 1 << 6;
    pub(crate) const DONT_FRAGMENT: u16 = 1 << 7;
    pub(crate) const MULTI_CONN: u16 = 1 << 8;
}

/// Requests.
pub mod command {
    /// Reads a range.
    pub const READ: u16 = 0;
    /// Writes a range; the data follow the request.
    pub const WRITE: u16 = 1;
    pub(crate) const DISCONNECT: u16 = 2;
    /// Flushes all completed writes.
    pub const FLUSH: u16 = 3;
    /// Deallocates a range.
    pub const TRIM: u16 = 4;
    pub(crate) const WRITE_ZEROES: u16 = 6;
    /// Request flags.
    pub const FUA: u16 = 1;
    pub(crate) const NO_HOLE: u16 = 2;
    pub(crate) const DF: u16 = 4;
}

/// Chunk types of structured replies, and the flag of the last chunk.
pub(crate) mod chunk {
    pub(crate) const DONE: u16 = 1;
    pub(crate) const NONE: u16 = 0;
    pub(crate) const OFFSET_DATA: u16 = 1;
    pub(crate) const ERROR: u16 = (1 << 15) + 1;
}

pub(crate) mod error {
    pub(crate) const NOT_PERMITTED: u32 = 1;
    pub(crate) const IO: u32 = 5;
    pub(crate) const INVALID: u32 = 22;
    pub(crate) const NO_SPACE: u32 = 28;
}

/// Request size in bytes, excluding the data.
pub const REQUEST_BYTES: usize = 28;

/// Request header as transmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Request flags.
    pub flags: u16,
    pub(crate) command: u16,
    pub(crate) cookie: u64,
    /// First byte.
    pub offset: u64,
    /// Length in bytes.
    pub length: u32,
}

impl Header {
    /// Parses a header; returns `None` if the magic number is wrong.
    pub fn read(bytes: &[u8; REQUEST_BYTES]) -> Option<Self> {
        let (words, _) = bytes.as_chunks();
        let word = |n: usize| u32::from_be_bytes(words[n]);
        let double = |n: usize| u64::from(word(n)) << 32 | u64::from(word(n + 1));
        (word(0) == REQUEST).then(|| Self {
            flags: (word(1) >> 16) as u16,
            command: word(1) as u16,
            cookie: double(2),
            offset: double(4),
            length: word(6),
        })
    }
}

/// Returns a simple reply, which carries no data.
pub fn simple_reply(error: u32, cookie: u64) -> [[u8; 4]; 4] {
    [SIMPLE_REPLY, error, (cookie >> 32) as u32, cookie as u32].map(u32::to_be_bytes)
}

/// Returns the header of a reply with a single chunk.
pub fn only_chunk(kind: u16, cookie: u64, length: u32) -> [[u8; 4]; 5] {
    let kind = u32::from(chunk::DONE) << 16 | u32::from(kind);
    [CHUNK, kind, (cookie >> 32) as u32, cookie as u32, length].map(u32::to_be_bytes)
}
