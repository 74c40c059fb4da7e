//! In-order service with a barrier between reads and writes.
//!
//! A simple controller works in one direction at a time. The controller starts a write only when
//! all earlier reads have completed, and a read only when all earlier writes are in the buffer.
//! Meanwhile, commands are decoded, and commands in the same direction overlap. Each run of reads
//! therefore exposes a full flash latency, so such drives are slower under a mix than under reads
//! or writes alone.

use std::collections::VecDeque;

use crate::command::{Arrival, Command, Operation};

/// Commands in service, which all have the same direction, and commands that wait for a change of
/// direction.
#[derive(Clone, Debug, Default)]
pub struct Barrier {
    held: VecDeque<(Command, Arrival)>,
    in_service: u32,
    reading: bool,
}

impl Barrier {
    /// Adds the next command in arrival order; returns `true` if the command may start.
    pub fn admit(&mut self, command: &Command, arrival: Arrival) -> bool {
        let may_begin = self.held.is_empty() && self.is_open_to(command);
        if may_begin {
            self.begins(command);
        } else {
            self.held.push_back((*command, arrival));
        }
        may_begin
    }

    /// Records that a command no longer blocks the other direction because a read has completed or
    /// a write has been accepted.
    pub fn passed(&mut self) {
        debug_assert!(self.in_service > 0, "a command passed the barrier twice");
        self.in_service -= 1;
    }

    /// Returns the next waiting command that may start.
    pub fn release(&mut self) -> Option<(Command, Arrival)> {
        let (next, _) = *self.held.front()?;
        if !self.is_open_to(&next) {
            return None;
        }
        self.begins(&next);
        self.held.pop_front()
    }

    fn is_open_to(&self, command: &Command) -> bool {
        self.in_service == 0 || self.reading == is_read(command)
    }

    fn begins(&mut self, command: &Command) {
        debug_assert!(self.is_open_to(command), "commands of both directions in service");
        self.in_service += 1;
        self.reading = is_read(command);
    }
}

/// Returns `true` for reads; all other commands may change the data that reads return.
fn is_read(command: &Command) -> bool {
    command.operation == Operation::Read
}

#[cfg(test)]
mod tests {
    use writecliff_base::StreamId;

    use super::*;
    use crate::content::Content;

    fn command(operation: Operation, tag: u32) -> Command {
        let (stream, content) = (StreamId::DEFAULT, Content::INCOMPRESSIBLE);
        Command { operation, offset: 0, length: 4096, content, stream, queue: 0, tag }
    }

    #[test]
    fn runs_of_one_direction_follow_each_other_in_order_of_arrival() {
        use Operation::{Flush, Read, Write};
        let mut barrier = Barrier::default();
        let arrivals = [Read, Read, Write, Flush, Read, Write];
        let begun = (0..)
            .zip(arrivals)
            .filter(|&(tag, op)| barrier.admit(&command(op, tag), Arrival::default()));
        assert_eq!(begun.count(), 2, "the reads before the first write");
        let mut passed = |commands: u32| {
            (0..commands).for_each(|_| barrier.passed());
            std::iter::from_fn(|| barrier.release()).map(|(c, _)| c.tag).collect::<Vec<_>>()
        };
        assert!(passed(1).is_empty(), "one of two reads is still in service");
        assert_eq!(passed(1), [2, 3]);
        assert_eq!(passed(2), [4], "the last write is behind it");
        assert_eq!(passed(1), [5]);
    }
}
