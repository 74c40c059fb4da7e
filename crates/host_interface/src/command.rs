//! Host commands, and the table of commands in flight.

use crate::content::Content;
use serde::{Deserialize, Serialize};
use writecliff_base::{Nanos, StreamId};

/// The operation of a command. Results are kept separately for the first three.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Operation {
    /// Transfers data to the host.
    Read = 0,
    /// Transfers data to the drive.
    Write = 1,
    /// Deallocates the range: NVMe Dataset Management, ATA TRIM, SCSI UNMAP.
    Trim = 2,
    /// Flushes the write cache: has no offset or length, and does not count as an I/O of a job.
    Flush = 3,
}

/// A command as the host submits it. Offsets and lengths are in bytes, multiples of
/// [`SECTOR_BYTES`](writecliff_base::SECTOR_BYTES).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// Operation code.
    pub operation: Operation,
    /// First byte.
    pub offset: u64,
    /// Length in bytes; 0 for a flush.
    pub length: u32,
    /// Content of the data of a write; ignored for other operations.
    pub content: Content,
    /// Stream or placement identifier of a write; 0 without a directive.
    pub stream: StreamId,
    /// Submission queue (modulo the drive's queues).
    pub queue: u32,
    /// Returned with the completion.
    pub tag: u32,
}

/// Times at which a command was submitted, entered the drive and was decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Arrival {
    /// Time at which the host submitted the command.
    pub submitted: Nanos,
    /// Time at which the command got an entry of the drive's queue.
    pub entered: Nanos,
    /// Time at which the firmware had decoded the command.
    pub decoded: Nanos,
}

/// Outcome of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Status {
    /// The command was executed as specified.
    #[default]
    Success,
    /// The drive could not correct the data of a read, or found that they are not those written.
    UnrecoveredRead,
    /// The drive has no spare space left and rejected a write.
    WriteProtected,
}

/// A completed command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// Time of the completion at the host.
    pub at: Nanos,
    /// Tag of the command.
    pub tag: u32,
    /// Operation of the command.
    pub operation: Operation,
    /// Outcome of the command.
    pub status: Status,
}

/// Drives return one for each command, in two registers.
const _: () = assert!(size_of::<Option<Completion>>() == 16);

/// Per-command state of the commands in flight, by number; numbers are reused.
#[derive(Clone, Debug)]
pub struct CommandTable<T> {
    slots: Vec<T>,
    free: Vec<u16>,
}

impl<T> Default for CommandTable<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T: Copy> CommandTable<T> {
    /// Stores the state of a command and returns its number.
    #[inline]
    pub fn insert(&mut self, command: T) -> u16 {
        if let Some(number) = self.free.pop() {
            self.slots[number as usize] = command;
            return number;
        }
        let number = u16::try_from(self.slots.len()).expect("at most 65,536 commands in flight");
        self.slots.push(command);
        number
    }

    /// Returns the state of command `number`, which must be in flight.
    #[inline]
    pub fn get(&mut self, number: u16) -> &mut T {
        &mut self.slots[number as usize]
    }

    /// Removes a command and returns its state; the number becomes free.
    #[inline]
    pub fn remove(&mut self, number: u16) -> T {
        debug_assert!(self.free.len() < self.slots.len(), "more commands removed than inserted");
        self.free.push(number);
        self.slots[number as usize]
    }

    /// Returns the number of commands in flight.
    pub fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
