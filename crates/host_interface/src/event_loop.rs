//! Clock, pending events and commands in flight, for drives whose media need few events.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use writecliff_base::fields::{FieldReader, FieldWriter, Impossible, Saved};
use writecliff_base::{Bytes, Nanos, SECTOR_BYTES};

use crate::{Command, CommandTable, Completion, Frontend, Status};

/// Event loop of a drive with events of type `E`. The loop stores an `S` for each command in
/// flight.
pub struct EventLoop<S, E> {
    /// Current virtual time.
    pub now: Nanos,
    /// Submission queues, firmware and link.
    pub frontend: Frontend,
    commands: CommandTable<(Command, S)>,
    events: BinaryHeap<Reverse<(Nanos, u64, E)>>,
    /// Number of events scheduled so far. Events scheduled for the same time run in scheduling
    /// order.
    scheduled: u64,
}

/// Commands and events are not saved because the host has no outstanding commands and a restored
/// drive reschedules its own work.
impl<S, E> Saved for EventLoop<S, E> {
    fn save(&self, out: &mut FieldWriter) {
        self.now.save(out);
        self.frontend.save(out);
    }

    fn restore(&mut self, input: &mut FieldReader<'_>) -> Result<(), Impossible> {
        self.events.clear();
        self.now.restore(input)?;
        self.frontend.restore(input)
    }
}

impl<S: Copy, E: Copy + Ord> EventLoop<S, E> {
    /// Returns an event loop at time 0 without events.
    pub fn new(frontend: Frontend) -> Self {
        Self {
            now: Nanos::ZERO,
            frontend,
            commands: CommandTable::default(),
            events: BinaryHeap::new(),
            scheduled: 0,
        }
    }

    /// Schedules `event` at `at`, which must not be in the past.
    pub fn schedule(&mut self, at: Nanos, event: E) {
        debug_assert!(at >= self.now, "an event in the past");
        self.events.push(Reverse((at, self.scheduled, event)));
        self.scheduled += 1;
    }

    /// Returns the time of the next event; `None` if no event is scheduled.
    pub fn next_event(&self) -> Option<Nanos> {
        self.events.peek().map(|&Reverse((time, ..))| time)
    }

    /// Removes and returns the next event, and advances the clock to the event's time; `None` if no
    /// event is due by `limit`.
    pub fn take_event(&mut self, limit: Nanos) -> Option<E> {
        let &Reverse((time, _, event)) = self.events.peek()?;
        if time > limit {
            return None;
        }
        debug_assert!(time >= self.now, "the clock would go back");
        self.events.pop();
        self.now = time;
        Some(event)
    }

    /// Advances the clock to `at` and submits a command to a drive with capacity `capacity`.
    /// Returns `true` if the drive can start the command; otherwise the command waits in its queue.
    pub fn enter(&mut self, at: Nanos, command: &Command, capacity: Bytes) -> bool {
        let (offset, length) = (command.offset, u64::from(command.length));
        debug_assert!(at >= self.now);
        debug_assert!(offset.is_multiple_of(SECTOR_BYTES) && length.is_multiple_of(SECTOR_BYTES));
        debug_assert!(offset + length <= capacity.0);
        self.now = at;
        self.frontend.enter(command, at)
    }

    /// Marks a command as in flight and returns its number.
    pub fn insert(&mut self, command: Command, state: S) -> u16 {
        self.commands.insert((command, state))
    }

    /// Returns a command in flight and its state.
    pub fn in_flight(&mut self, number: u16) -> &mut (Command, S) {
        self.commands.get(number)
    }

    /// Completes a command. Also returns the queued command that the drive must start next.
    pub fn complete(&mut self, number: u16) -> (Completion, Option<Command>) {
        let (command, _) = self.commands.remove(number);
        let next = self.frontend.leave(&command).map(|(next, _)| next);
        let (tag, operation) = (command.tag, command.operation);
        (Completion { at: self.now, tag, operation, status: Status::Success }, next)
    }

    /// Returns the number of commands in flight or in queues.
    pub fn outstanding(&self) -> usize {
        self.commands.in_flight() + self.frontend.waiting()
    }
}
