//! Host commands, and the table of commands in flight.

use crate::content::Content;
use serde::{Deserialize, Serialize};
use writecliff_base::{Nanos, StreamId};

/// Operation of a command. Results are recorded separately for reads, writes and deallocations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Operation {
    /// Transfers data to the host.
    Read = 0,
    /// Transfers data to the drive.
    Write = 1,
    /// Deallocates the range: NVMe Dataset Management, ATA TRIM, SCSI UNMAP.
    Trim = 2,
    /// Flushes the write cache; has no offset or length, and does not count as an I/O of a job.
    Flush = 3,
}

/// A command as submitted by the host. Offsets and lengths are in bytes and multiples of
/// [`SECTOR_BYTES`](writecliff_base::SECTOR_BYTES).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// Operation of the command.
    pub operation: Operation,
    /// First byte.
    pub offset: u64,
    /// Length in bytes; 0 for a flush.
    pub length: u32,
    /// Content of the written data; ignored for other operations.
    pub content: Content,
    /// Stream or placement identifier of a write; 0 for a write without a directive.
    pub stream: StreamId,
    /// Submission queue number (modulo the drive's queue count).
    pub queue: u32,
    /// Tag that is returned with the completion.
    pub tag: u32,
}

impl Command {
    /// Creates a command in the default stream with random data, queue 0 and tag 0.
    #[inline]
    pub const fn new(operation: Operation, offset: u64, length: u32) -> Self {
        let (content, stream) = (Content::INCOMPRESSIBLE, StreamId::DEFAULT);
        Self { operation, offset, length, content, stream, queue: 0, tag: 0 }
    }
}

/// Times when a command was submitted, entered the drive and was decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Arrival {
    /// Time when the host submitted the command.
    pub submitted: Nanos,
    /// Time when the command received an entry in the drive's queue.
    pub entered: Nanos,
    /// Time when the firmware finished decoding the command.
    pub decoded: Nanos,
}

/// Outcome of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Status {
    /// The command was executed successfully.
    #[default]
    Success,
    /// The drive could not correct the data of a read, or detected that they differ from the
    /// written data.
    UnrecoveredRead,
    /// The drive has no spare space left and rejected the write.
    WriteProtected,
}

/// A completed command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// Completion time at the host.
    pub at: Nanos,
    /// Tag of the command.
    pub tag: u32,
    /// Operation of the command.
    pub operation: Operation,
    /// Command outcome.
    pub status: Status,
}

/// Drives return one completion per command, and the struct fits in two registers.
const _: () = assert!(size_of::<Option<Completion>>() == 16);

/// State of each command in flight, by command number; numbers are reused. Drives number their
/// commands with 16 bits. Hosts, which may have more commands in flight, use 32 bits.
#[derive(Clone, Debug)]
pub struct CommandTable<T, N = u16> {
    slots: Vec<T>,
    free: Vec<N>,
}

impl<T, N> Default for CommandTable<T, N> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T: Copy, N: Copy + Into<u64> + TryFrom<usize>> CommandTable<T, N> {
    /// Stores the state of a command and returns its number.
    #[inline]
    pub fn insert(&mut self, command: T) -> N {
        if let Some(number) = self.free.pop() {
            *self.get(number) = command;
            return number;
        }
        let number = self.slots.len().try_into().ok().expect("too many commands in flight");
        self.slots.push(command);
        number
    }

    /// Returns the state of command `number`, which must be in flight.
    #[inline]
    pub fn get(&mut self, number: N) -> &mut T {
        &mut self.slots[number.into() as usize]
    }

    /// Removes a command and returns its state; the command number becomes free.
    #[inline]
    pub fn remove(&mut self, number: N) -> T {
        debug_assert!(self.free.len() < self.slots.len(), "more commands removed than inserted");
        self.free.push(number);
        *self.get(number)
    }

    /// Returns the state slots of all numbers, including free numbers.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut()
    }

    /// Returns the number of commands in flight.
    pub fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
