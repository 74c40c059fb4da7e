//! I/Os of a trace.

use serde::Serialize;
use writecliff_base::words;

use crate::sink::LENGTH_MAX_BYTES;

words! {
    /// Operation of an I/O.
    #[derive(PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "lowercase")]
    #[repr(u8)]
    pub enum Operation {
        /// Transfers data from the volume.
        Read = "read",
        /// Transfers data to the volume.
        Write = "write",
        /// Flushes the volatile cache.
        Flush = "flush",
        /// Deallocates a range.
        Discard = "discard",
    }
}

impl Operation {
    /// Returns `true` for operations that transfer data.
    pub fn moves(self) -> bool {
        matches!(self, Self::Read | Self::Write)
    }
}

/// Response time of an I/O whose completion is unknown.
pub const NO_RESPONSE: i64 = -1;

/// An I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Issue time since the first I/O of the trace. Records need not be in time order.
    pub time_ns: i64,
    /// Number of the volume, drive or file.
    pub volume: u32,
    /// Operation of the I/O.
    pub operation: Operation,
    /// Offset of the first byte; 0 for flushes.
    pub offset_bytes: u64,
    /// Length in bytes; 0 for flushes.
    pub length_bytes: u64,
    /// Response time in ns, or `NO_RESPONSE`.
    pub response_ns: i64,
    /// Number of the process that issued the I/O; 0 if unknown.
    pub process: u32,
    /// Hash of the data; 0 if unknown.
    pub content: u64,
}

impl Record {
    /// Returns an I/O without further information.
    pub fn new(time_ns: i64, operation: Operation, offset_bytes: u64, length_bytes: u64) -> Self {
        Self {
            time_ns,
            volume: 0,
            operation,
            offset_bytes,
            length_bytes,
            response_ns: NO_RESPONSE,
            process: 0,
            content: 0,
        }
    }

    /// Checks that the I/O is valid.
    ///
    /// # Errors
    /// Returns the reason: an end above 2^63 - 1, or a read or write of 0 bytes or more than 1 GiB.
    #[inline]
    pub fn check(&self) -> Result<(), &'static str> {
        let end = self.offset_bytes.checked_add(self.length_bytes);
        if end.is_none_or(|end| end > i64::MAX as u64) {
            return Err("address too large");
        }
        match self.length_bytes {
            0 if self.operation.moves() => Err("length of 0"),
            length if self.operation.moves() && length > LENGTH_MAX_BYTES => {
                Err("length over 1 GiB")
            }
            _ => Ok(()),
        }
    }
}
