//! Host commands, while the drive has them.

use writecliff_base::{Lpn, Nanos, StreamId};

/// What a command does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    Read,
    Write,
    Trim,
    Flush,
}

/// A command as the host submits it. Offsets and lengths are in bytes, multiples of 512.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    pub operation: Operation,
    pub offset: u64,
    pub length: u32,
    pub stream: StreamId,
    /// Submission queue (modulo the drive's queues).
    pub queue: u32,
    /// Given back with the completion.
    pub tag: u32,
}

/// A completed command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    pub at: Nanos,
    pub tag: u32,
    pub operation: Operation,
}

/// A command inside the drive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    pub command: Command,
    pub first: Lpn,
    pub slots: u32,
    /// Read: flash operations outstanding. Write or flush that waits for flash: units outstanding.
    pub pending: u32,
    /// Read: bytes not yet sent to the host.
    pub unsent: u32,
}

/// In-flight commands by number; numbers are reused.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommandTable {
    slots: Vec<InFlight>,
    free: Vec<u16>,
}

impl CommandTable {
    #[inline]
    pub(crate) fn insert(&mut self, command: InFlight) -> u16 {
        if let Some(number) = self.free.pop() {
            self.slots[number as usize] = command;
            return number;
        }
        let number = u16::try_from(self.slots.len()).expect("at most 65,536 commands in flight");
        self.slots.push(command);
        number
    }

    #[inline]
    pub(crate) fn get(&mut self, number: u16) -> &mut InFlight {
        &mut self.slots[number as usize]
    }

    #[inline]
    pub(crate) fn remove(&mut self, number: u16) -> InFlight {
        self.free.push(number);
        self.slots[number as usize]
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
