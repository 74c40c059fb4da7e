//! The drive: processes host commands through queues, link, controller and banks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};
use writecliff_base::counters;
use writecliff_base::{Bytes, Nanos};
use writecliff_host_interface::{
    Command, CommandTable, Completion, Drive, Frontend, Operation, Status,
};

use crate::config::ScmConfig;
use crate::media::{Media, MediaCounters, Served};

/// A simulated drive of storage-class memory. Commands must be submitted in time order; `step`
/// advances to the next completion.
pub struct Scm {
    pub(crate) config: ScmConfig,
    pub(crate) frontend: Frontend,
    commands: CommandTable<InFlight>,
    events: BinaryHeap<Reverse<(Nanos, u64, ScmEvent)>>,
    /// Number of events scheduled so far; events at the same time run in the order in which they
    /// were scheduled.
    scheduled: u64,
    pub(crate) now: Nanos,
    pub(crate) media: Media,
    pub(crate) host: HostCounters,
}

/// A command inside the drive.
#[derive(Clone, Copy)]
struct InFlight {
    command: Command,
    /// When the first data of a read are there.
    first: Nanos,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ScmEvent {
    /// A command has reached the controller: a read is decoded, others have come with their data.
    Ready(u16),
    /// The memory has served all of a command.
    Served(u16),
    Completed(u16),
}

/// Host traffic since the drive was new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostCounters {
    pub write_bytes: u64,
    pub read_bytes: u64,
}

/// Counters since the drive was new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScmCounters {
    pub host_write_bytes: u64,
    pub host_read_bytes: u64,
    pub media: MediaCounters,
}

counters! { |c: ScmCounters|
    Integer "media_write_bytes" Bytes: c.media.write_bytes, "written to storage-class memory";
    Integer "media_read_bytes" Bytes: c.media.read_bytes, "read from storage-class memory";
    Integer "partial_units" Count: c.media.partial_units,
        "units of storage-class memory that were read before a write of a part of them";
}

impl Scm {
    pub fn new(config: ScmConfig) -> Self {
        let controller = &config.controller;
        Self {
            // The controller's time per command is that of `media`, where accesses are issued.
            frontend: Frontend::new(&config.link, Nanos::ZERO, controller.latency),
            commands: CommandTable::default(),
            events: BinaryHeap::new(),
            scheduled: 0,
            now: Nanos::ZERO,
            media: Media::new(&config.media, controller),
            host: HostCounters::default(),
            config,
        }
    }

    pub fn config(&self) -> &ScmConfig {
        &self.config
    }

    pub fn counters(&self) -> ScmCounters {
        ScmCounters {
            host_write_bytes: self.host.write_bytes,
            host_read_bytes: self.host.read_bytes,
            media: self.media.counters,
        }
    }

    fn schedule(&mut self, at: Nanos, event: ScmEvent) {
        self.events.push(Reverse((at, self.scheduled, event)));
        self.scheduled += 1;
    }

    fn begin(&mut self, command: Command) {
        let decoded = self.frontend.decode(self.now, Nanos::ZERO);
        let number = self.commands.insert(InFlight { command, first: Nanos::ZERO });
        let ready = match command.operation {
            Operation::Read => decoded,
            Operation::Write => self.frontend.receive(decoded, command.length),
            Operation::Trim | Operation::Flush => self.frontend.receive(decoded, 0),
        };
        self.schedule(ready, ScmEvent::Ready(number));
    }

    /// Passes a command on to the controller. A flush has nothing to wait for, because completed
    /// writes are in the memory; nor does a trim, because space that holds nothing is of no use.
    fn ready(&mut self, number: u16) {
        let command = self.commands.get(number).command;
        let (offset, length) = (command.offset, u64::from(command.length));
        let Served { first, last } = match command.operation {
            Operation::Read => {
                self.host.read_bytes += length;
                self.media.read(self.now, offset, length)
            }
            Operation::Write => {
                self.host.write_bytes += length;
                self.media.write(self.now, offset, length)
            }
            Operation::Trim | Operation::Flush => {
                let done = self.media.pass(self.now);
                Served { first: done, last: done }
            }
        };
        self.commands.get(number).first = first;
        self.schedule(last, ScmEvent::Served(number));
    }

    /// Sends the answer. Data of a read of several banks are sent while the rest is read.
    fn served(&mut self, number: u16) {
        let InFlight { command, first } = *self.commands.get(number);
        let length = if command.operation == Operation::Read { command.length } else { 0 };
        let bandwidth = self.config.link.bandwidth;
        let rest = u64::from(length).min(self.config.media.interleave.0);
        let early = bandwidth.time_for(u64::from(length) - rest);
        let from = self.now.saturating_sub(early).max(first);
        let sent = self.frontend.send(from, length, true);
        self.schedule(sent.max(self.now + bandwidth.time_for(rest)), ScmEvent::Completed(number));
    }

    fn complete(&mut self, number: u16) -> Completion {
        let done = self.commands.remove(number).command;
        if let Some((next, _)) = self.frontend.leave(&done) {
            self.begin(next);
        }
        Completion {
            at: self.now,
            tag: done.tag,
            operation: done.operation,
            status: Status::Success,
        }
    }

    pub(crate) fn outstanding(&self) -> usize {
        self.commands.in_flight() + self.frontend.waiting()
    }
}

impl Drive for Scm {
    fn capacity(&self) -> Bytes {
        self.config.user_capacity
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn submit(&mut self, at: Nanos, command: Command) {
        debug_assert!(at >= self.now);
        debug_assert!(command.offset.is_multiple_of(512) && command.length.is_multiple_of(512));
        debug_assert!(command.offset + u64::from(command.length) <= self.config.user_capacity.0);
        self.now = at;
        if self.frontend.enter(&command, at) {
            self.begin(command);
        }
    }

    fn step(&mut self, limit: Nanos) -> Option<Completion> {
        while let Some(&Reverse((time, _, event))) = self.events.peek() {
            if time > limit {
                return None;
            }
            self.events.pop();
            self.now = time;
            match event {
                ScmEvent::Ready(number) => self.ready(number),
                ScmEvent::Served(number) => self.served(number),
                ScmEvent::Completed(number) => return Some(self.complete(number)),
            }
        }
        None
    }

    fn next_event(&self) -> Option<Nanos> {
        self.events.peek().map(|&Reverse((time, ..))| time)
    }

    fn idle_until(&mut self, time: Nanos) {
        assert_eq!(self.outstanding(), 0);
        self.now = self.now.max(time);
    }

    /// Has no effect: the host must have no outstanding commands, so the drive has no work.
    fn quiesce(&mut self) {
        assert_eq!(self.outstanding(), 0);
    }

    /// The fast-forward clock: counts a write. Nothing else of the drive depends on it.
    fn fast_forward(&mut self, command: &Command) {
        if command.operation == Operation::Write {
            self.host.write_bytes += u64::from(command.length);
            self.media.count_write(command.offset, u64::from(command.length));
        }
    }

    /// Returns `false`, because the drive has no volatile write cache.
    fn write_cache(&self) -> bool {
        false
    }

    /// Has no effect: a write completes when its data are in the memory.
    fn set_write_cache(&mut self, _: bool) {}

    fn host_write_bytes(&self) -> u64 {
        self.host.write_bytes
    }

    fn check_invariants(&self) -> Result<(), String> {
        let ensure = |holds: bool, what: &str| if holds { Ok(()) } else { Err(what.to_owned()) };
        ensure(self.outstanding() == 0, "host commands are outstanding")?;
        ensure(self.events.is_empty(), "events are left without host commands")?;
        ensure(self.media.busy_until() <= self.now, "the memory is busy without host commands")?;
        let media = &self.media.counters;
        ensure(media.write_bytes >= self.host.write_bytes, "less was written than the host wrote")
    }

    fn lose_die(&mut self, _: u32) -> Result<(), String> {
        Err("a drive of storage-class memory loses no die".to_owned())
    }
}
