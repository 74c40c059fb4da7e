//! Drive model that processes host commands through queues, link, controller and banks.

use std::io::{Read, Write};

use serde::{Deserialize, Serialize};
use writecliff_base::codec::CodecError;
use writecliff_base::saved_state::{self, RestoreError};
use writecliff_base::{Bytes, Nanos, counters, ensure, saved};
use writecliff_host_interface::{
    Command, Completion, Drive, EventLoop, Frontend, Meters, Operation,
};

use crate::config::ScmConfig;
use crate::media::{Media, MediaCounters, Served};

/// Simulated drive. Commands are submitted in time order; `step` runs to the next completion.
pub struct Scm {
    pub(crate) config: ScmConfig,
    /// Event loop of the drive. State of a read: the time when its first data are available.
    pub(crate) core: EventLoop<Nanos, ScmEvent>,
    pub(crate) media: Media,
    pub(crate) host: ScmHostCounters,
}

saved! { Scm { core, host, media } check is_possible }

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ScmEvent {
    /// A command has reached the controller: a read is decoded, or other commands' data are there.
    Ready(u16),
    /// The memory has served the whole command.
    Served(u16),
    Completed(u16),
}

/// Host traffic since the drive was new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScmHostCounters {
    /// Bytes written by the host.
    pub write_bytes: u64,
    /// Bytes read by the host.
    pub read_bytes: u64,
}

/// Counters since the drive was new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScmCounters {
    /// Host traffic.
    pub host: ScmHostCounters,
    /// Traffic of the memory banks.
    pub media: MediaCounters,
}

counters! { |c: ScmCounters|
    Integer "media_write_bytes" Bytes: c.media.write_bytes, "bytes written to storage-class memory";
    Integer "media_read_bytes" Bytes: c.media.read_bytes, "bytes read from storage-class memory";
    Integer "partial_units" Count: c.media.partial_units,
        "units of storage-class memory that were read before a partial write";
}

impl Scm {
    /// Returns a new drive at time 0.
    pub fn new(config: ScmConfig) -> Self {
        let controller = &config.controller;
        // `media` adds the controller time per command, because the controller issues the accesses.
        let frontend = Frontend::new(&config.link, Nanos::ZERO, controller.latency);
        Self {
            core: EventLoop::new(frontend),
            media: Media::new(&config.media, controller),
            host: ScmHostCounters::default(),
            config,
        }
    }

    /// Returns the drive configuration.
    pub fn config(&self) -> &ScmConfig {
        &self.config
    }

    /// Returns the counters since the drive was new.
    pub fn counters(&self) -> ScmCounters {
        ScmCounters { host: self.host, media: self.media.counters }
    }

    fn is_possible(&mut self) -> bool {
        self.media.counters.write_bytes >= self.host.write_bytes
    }

    fn begin(&mut self, command: Command) {
        let decoded = self.core.frontend.decode(self.core.now, Nanos::ZERO);
        let number = self.core.insert(command, Nanos::ZERO);
        let ready = match command.operation {
            Operation::Read => decoded,
            Operation::Write => self.core.frontend.receive(decoded, command.length),
            Operation::Trim | Operation::Flush => self.core.frontend.receive(decoded, 0),
        };
        self.core.schedule(ready, ScmEvent::Ready(number));
    }

    /// Passes a command to the controller. A flush has nothing to wait for because completed writes
    /// are already in the memory. A trim has no effect: unused space does not benefit the drive.
    fn ready(&mut self, number: u16) {
        let (command, _) = *self.core.in_flight(number);
        let (offset, length) = (command.offset, u64::from(command.length));
        let Served { first, last } = match command.operation {
            Operation::Read => {
                self.host.read_bytes += length;
                self.media.read(self.core.now, offset, length)
            }
            Operation::Write => {
                self.host.write_bytes += length;
                self.media.write(self.core.now, offset, length)
            }
            Operation::Trim | Operation::Flush => {
                let done = self.media.pass(self.core.now);
                Served { first: done, last: done }
            }
        };
        debug_assert!(first <= last, "the last part is served before the first");
        debug_assert!(last >= self.core.now, "served in the past");
        self.core.in_flight(number).1 = first;
        self.core.schedule(last, ScmEvent::Served(number));
    }

    /// Sends the response. A read of several banks sends data while later data are being read.
    fn served(&mut self, number: u16) {
        let (command, first) = *self.core.in_flight(number);
        debug_assert!(first <= self.core.now, "served before its first part");
        let length = if command.operation == Operation::Read { command.length } else { 0 };
        let bandwidth = self.config.link.bandwidth;
        let rest = u64::from(length).min(self.config.media.interleave.0);
        let early = bandwidth.time_for(u64::from(length) - rest);
        let from = self.core.now.saturating_sub(early).max(first);
        let sent = self.core.frontend.send(from, length, true);
        let at = sent.max(self.core.now + bandwidth.time_for(rest));
        self.core.schedule(at, ScmEvent::Completed(number));
    }

    fn complete(&mut self, number: u16) -> Completion {
        let (completion, next) = self.core.complete(number);
        if let Some(next) = next {
            self.begin(next);
        }
        completion
    }
}

impl Drive for Scm {
    fn capacity(&self) -> Bytes {
        self.config.user_capacity
    }

    fn now(&self) -> Nanos {
        self.core.now
    }

    fn submit(&mut self, at: Nanos, command: Command) {
        if self.core.enter(at, &command, self.config.user_capacity) {
            self.begin(command);
        }
    }

    fn step(&mut self, limit: Nanos) -> Option<Completion> {
        while let Some(event) = self.core.take_event(limit) {
            match event {
                ScmEvent::Ready(number) => self.ready(number),
                ScmEvent::Served(number) => self.served(number),
                ScmEvent::Completed(number) => return Some(self.complete(number)),
            }
        }
        None
    }

    fn next_event(&self) -> Option<Nanos> {
        self.core.next_event()
    }

    fn idle_until(&mut self, time: Nanos) {
        assert_eq!(self.core.outstanding(), 0);
        self.core.now = self.core.now.max(time);
    }

    /// Has no effect: without outstanding commands, the drive has no work.
    fn quiesce(&mut self) {
        assert_eq!(self.core.outstanding(), 0);
        assert!(self.core.next_event().is_none(), "an event without a command");
    }

    /// Counts a write in fast-forward. No other drive state depends on the write.
    fn fast_forward(&mut self, command: &Command) {
        if command.operation == Operation::Write {
            self.host.write_bytes += u64::from(command.length);
            self.media.count_write(command.offset, u64::from(command.length));
        }
    }

    /// Returns `false` because the drive has no volatile write cache.
    fn write_cache(&self) -> bool {
        false
    }

    /// The call has no effect because a write completes when its data are in the memory.
    fn set_write_cache(&mut self, _: bool) {}

    fn meters(&self, _: Nanos) -> Meters {
        Meters { host_write_bytes: self.host.write_bytes, ..Meters::default() }
    }

    fn check_invariants(&self) -> Result<(), String> {
        let no_host = "although no host commands are outstanding";
        ensure!(self.core.outstanding() == 0, "host commands are outstanding");
        ensure!(self.core.next_event().is_none(), "events are scheduled {no_host}");
        let is_idle = self.media.busy_until() <= self.core.now;
        ensure!(is_idle, "the memory is busy {no_host}");
        let covers_host = self.media.counters.write_bytes >= self.host.write_bytes;
        ensure!(covers_host, "the memory has written fewer bytes than the host");
        Ok(())
    }

    fn lose_die(&mut self, _: u32) -> Result<(), String> {
        Err("a drive with storage-class memory has no dies".to_owned())
    }

    fn save_to(&self, out: &mut dyn Write) -> Result<(), CodecError> {
        assert_eq!(self.core.outstanding(), 0);
        saved_state::begin(out, &self.config.canonical, self)?.finish().map(|_| ())
    }

    fn restore_from(&mut self, input: &mut dyn Read) -> Result<(), RestoreError> {
        assert_eq!(self.core.outstanding(), 0);
        let canonical = self.config.canonical.clone();
        Ok(saved_state::open(input, &canonical, self)?.end()?)
    }
}
