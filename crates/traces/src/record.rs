//! I/Os of a trace, individually and as columns.

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

/// I/Os as columns of equal length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Issue times, as in [`Record::time_ns`].
    pub time_ns: Vec<i64>,
    /// Numbers of volumes.
    pub volume: Vec<u32>,
    /// Operations as numbers in the order of [`Operation`].
    pub operation: Vec<u8>,
    /// First bytes.
    pub offset_bytes: Vec<u64>,
    /// Lengths in bytes.
    pub length_bytes: Vec<u64>,
    /// Response times in ns; [`NO_RESPONSE`] if unknown.
    pub response_ns: Vec<i64>,
    /// Numbers of processes; 0 if unknown.
    pub process: Vec<u32>,
    /// Hashes of the data; 0 if unknown.
    pub content: Vec<u64>,
}

impl Batch {
    /// Returns the number of I/Os.
    pub fn len(&self) -> usize {
        self.time_ns.len()
    }

    /// Returns `true` if the batch is empty.
    pub fn is_empty(&self) -> bool {
        self.time_ns.is_empty()
    }

    /// Returns `true` if all columns have the same length.
    pub fn is_even(&self) -> bool {
        let lengths = [
            self.volume.len(),
            self.operation.len(),
            self.offset_bytes.len(),
            self.length_bytes.len(),
            self.response_ns.len(),
            self.process.len(),
            self.content.len(),
        ];
        lengths.iter().all(|&length| length == self.len())
    }

    /// Removes all I/Os but retains the memory.
    pub fn clear(&mut self) {
        self.time_ns.clear();
        self.volume.clear();
        self.operation.clear();
        self.offset_bytes.clear();
        self.length_bytes.clear();
        self.response_ns.clear();
        self.process.clear();
        self.content.clear();
    }

    /// Moves all I/Os of `other` to the end of this batch.
    pub fn append(&mut self, other: &mut Self) {
        if self.is_empty() {
            std::mem::swap(self, other);
            return;
        }
        debug_assert!(self.is_even() && other.is_even(), "columns differ in length");
        self.time_ns.append(&mut other.time_ns);
        self.volume.append(&mut other.volume);
        self.operation.append(&mut other.operation);
        self.offset_bytes.append(&mut other.offset_bytes);
        self.length_bytes.append(&mut other.length_bytes);
        self.response_ns.append(&mut other.response_ns);
        self.process.append(&mut other.process);
        self.content.append(&mut other.content);
    }

    /// Appends an I/O.
    pub fn push(&mut self, record: &Record) {
        self.time_ns.push(record.time_ns);
        self.volume.push(record.volume);
        self.operation.push(record.operation as u8);
        self.offset_bytes.push(record.offset_bytes);
        self.length_bytes.push(record.length_bytes);
        self.response_ns.push(record.response_ns);
        self.process.push(record.process);
        self.content.push(record.content);
        debug_assert_eq!(self.content.len(), self.time_ns.len(), "columns differ in length");
    }

    /// Returns row `n`.
    pub fn get(&self, n: usize) -> Record {
        Record {
            time_ns: self.time_ns[n],
            volume: self.volume[n],
            operation: Operation::ALL[usize::from(self.operation[n] & 3)],
            offset_bytes: self.offset_bytes[n],
            length_bytes: self.length_bytes[n],
            response_ns: self.response_ns[n],
            process: self.process[n],
            content: self.content[n],
        }
    }

    /// Iterates over the I/Os in order.
    pub fn iter(&self) -> impl Iterator<Item = Record> + '_ {
        (0..self.len()).map(|n| self.get(n))
    }
}
