//! The host-facing side of a drive: submission queues, firmware and link.
//!
//! Firmware and link serve one command at a time in arrival order, so the state of each is the time
//! until which it is busy.

use std::collections::VecDeque;

use writecliff_base::{Nanos, saved};

use crate::command::Command;
use crate::link::{Duplex, LinkConfig};

/// Submission queues, firmware and link of a drive, represented by busy times.
pub struct Frontend {
    link: LinkConfig,
    /// Length and duration of the last transfer in each direction, cached because lengths repeat
    /// and divisions are slow.
    carried: [(u32, Nanos); 2],
    command_time: Nanos,
    latency: Nanos,
    firmware_free: Nanos,
    /// Times until which the link is busy, towards the drive and towards the host.
    link_free: [Nanos; 2],
    /// Total busy time of both directions.
    link_busy: Nanos,
    queues: Vec<SubmissionQueue>,
}

#[derive(Clone, Debug, Default)]
struct SubmissionQueue {
    in_drive: u32,
    /// Commands that wait at the host, each with the time when the wait started.
    waiting: VecDeque<(Command, Nanos)>,
}

saved! { Frontend { firmware_free, link_free, link_busy } }

const TO_DRIVE: usize = 0;
const TO_HOST: usize = 1;

impl Frontend {
    /// Creates an idle frontend. `command_time` is the firmware time of a command, during which no
    /// other command is processed. `latency` is added to each command without blocking other
    /// commands.
    pub fn new(link: &LinkConfig, command_time: Nanos, latency: Nanos) -> Self {
        assert!(link.queues > 0 && link.queue_depth > 0, "no queue would take a command");
        Self {
            link: link.clone(),
            carried: [(0, Nanos::ZERO); 2],
            command_time,
            latency,
            firmware_free: Nanos::ZERO,
            link_free: [Nanos::ZERO; 2],
            link_busy: Nanos::ZERO,
            queues: vec![SubmissionQueue::default(); link.queues as usize],
        }
    }

    #[inline]
    fn queue(&mut self, number: u32) -> &mut SubmissionQueue {
        let (number, queues) = (number as usize, self.queues.len());
        // Most hosts number their queues as the drive does, so this comparison avoids the division.
        let index = if number < queues { number } else { number % queues };
        &mut self.queues[index]
    }

    /// Allocates an entry of the command's queue. Returns `false` if the queue is full, in which
    /// case the command waits at the host.
    #[inline]
    pub fn enter(&mut self, command: &Command, now: Nanos) -> bool {
        let depth = self.link.queue_depth;
        let queue = self.queue(command.queue);
        if queue.in_drive < depth {
            debug_assert!(queue.waiting.is_empty(), "a command would overtake waiting ones");
            queue.in_drive += 1;
            return true;
        }
        queue.waiting.push_back((*command, now));
        false
    }

    /// Removes a completed command; returns the next command of the same queue that waits at the
    /// host, and the time when its wait started.
    #[inline]
    pub fn leave(&mut self, left: &Command) -> Option<(Command, Nanos)> {
        let queue = self.queue(left.queue);
        debug_assert!(queue.in_drive > 0, "a command that did not enter leaves");
        let next = queue.waiting.pop_front();
        if next.is_none() {
            queue.in_drive -= 1;
        }
        next
    }

    /// Returns the number of commands that wait at the host for a queue entry.
    pub fn waiting(&self) -> usize {
        self.queues.iter().map(|q| q.waiting.len()).sum()
    }

    /// Drops all commands and transfers; the drive accepts new commands from `now` on.
    pub fn power_up(&mut self, now: Nanos) {
        self.queues.fill(SubmissionQueue::default());
        self.firmware_free = now;
        self.link_free.fill(now);
    }

    /// Decodes a command, which takes the firmware `longer_by` longer than usual, and returns the
    /// time when the command is ready.
    #[inline]
    pub fn decode(&mut self, now: Nanos, longer_by: Nanos) -> Nanos {
        self.firmware_free = self.firmware_free.max(now) + self.command_time + longer_by;
        self.firmware_free + self.latency
    }

    /// Decodes a command that occupies the firmware for `rest` after the command is ready.
    #[inline]
    pub fn decode_before(&mut self, now: Nanos, rest: Nanos) -> Nanos {
        let ready = self.decode(now, Nanos::ZERO);
        self.firmware_free += rest;
        ready
    }

    /// Returns the total busy time of the link, summed over both directions.
    pub fn link_busy(&self) -> Nanos {
        self.link_busy
    }

    /// Blocks the firmware for `duration`, during which commands wait. Returns the end time.
    pub fn stall(&mut self, now: Nanos, duration: Nanos) -> Nanos {
        self.firmware_free = self.firmware_free.max(now) + duration;
        self.firmware_free
    }

    /// Returns the time until which the firmware is busy.
    #[inline]
    pub fn firmware_free(&self) -> Nanos {
        self.firmware_free
    }

    /// Transfers a write's command and data to the drive, starting no earlier than `from`; returns
    /// the end time.
    #[inline]
    pub fn receive(&mut self, from: Nanos, bytes: u32) -> Nanos {
        self.carry(TO_DRIVE, from, self.link.command, bytes)
    }

    /// Transfers read data to the host, starting no earlier than `from`; if `last`, also transfers
    /// the command's own frames. Returns the end time.
    #[inline]
    pub fn send(&mut self, from: Nanos, bytes: u32, last: bool) -> Nanos {
        let overhead = if last { self.link.command } else { Nanos::ZERO };
        self.carry(TO_HOST, from, overhead, bytes)
    }

    #[inline]
    fn carry(&mut self, direction: usize, from: Nanos, overhead: Nanos, bytes: u32) -> Nanos {
        let lane = match self.link.duplex {
            Duplex::Half => TO_DRIVE,
            Duplex::Full => direction,
        };
        let (length, time) = &mut self.carried[direction];
        if *length != bytes {
            (*length, *time) = (bytes, self.link.bandwidth.time_for(u64::from(bytes)));
        }
        let duration = overhead + *time;
        self.link_busy += duration;
        let end = self.link_free[lane].max(from) + duration;
        self.link_free[lane] = end;
        end
    }
}
