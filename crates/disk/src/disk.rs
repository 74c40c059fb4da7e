//! Hard disk model that processes host commands through queues, caches and media accesses.

mod schedule;

use std::collections::VecDeque;
use std::io::{Read, Write};

use serde::{Deserialize, Serialize};
use writecliff_base::codec::CodecError;
use writecliff_base::saved_state::{self, RestoreError};
use writecliff_base::{Bytes, Nanos, SECTOR_BYTES, counters, ensure, saved};
use writecliff_host_interface::{
    Command, Completion, Drive, EventLoop, Frontend, Meters, Operation,
};

use crate::config::{DiskConfig, ImpossibleDisk};
use crate::dirty::WriteCache;
use crate::flash_cache::FlashCache;
use crate::mechanics::{Extent, Mechanics, MechanicsCounters};
use crate::reads::Reads;
use schedule::{Task, Work};

/// Simulated hard disk. Commands are submitted in time order; `step` runs to the next completion.
pub struct Disk {
    pub(crate) config: DiskConfig,
    /// Event loop. State of a command: `true` for a write with reserved space in the write cache.
    pub(crate) core: EventLoop<bool, DiskEvent>,
    pub(crate) mechanics: Mechanics,
    pub(crate) reads: Reads,
    pub(crate) dirty: WriteCache,
    pub(crate) flash: Option<FlashCache>,
    /// Writes waiting for space in the write cache, with the time when firmware processed them.
    write_waiting: VecDeque<(u16, Nanos)>,
    /// Commands waiting for a media access, in arrival order.
    queue: Vec<Task>,
    /// The media access in progress, and its end time.
    pub(crate) work: Option<(Work, Nanos)>,
    /// Time when the arm last became idle.
    pub(crate) idle_since: Nanos,
    /// Pending flushes, each with the number of the first write that it does not wait for.
    flushes: Vec<(u16, u64)>,
    pub(crate) write_cache: bool,
    pub(crate) host: DiskHostCounters,
}

saved! {
    Disk { core, mechanics, reads, dirty, idle_since, write_cache, host, work } check resume
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DiskEvent {
    /// Firmware has processed a read.
    ReadReady(u16),
    /// A write, trim or flush has arrived with its data.
    Arrived(u16),
    /// The media access in progress has finished.
    WorkDone,
    Completed(u16),
}

/// Host traffic and cache hits since the drive was new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskHostCounters {
    /// Bytes written by the host.
    pub write_bytes: u64,
    /// Bytes read by the host.
    pub read_bytes: u64,
    /// Reads served from DRAM.
    pub cache_hits: u64,
    /// Reads served from the flash cache of a hybrid disk.
    pub flash_hits: u64,
}

/// Counters since the drive was new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskCounters {
    /// Host traffic and cache hits.
    pub host: DiskHostCounters,
    /// Counters of media accesses.
    pub arm: MechanicsCounters,
}

counters! { |c: DiskCounters|
    Integer "cache_hits" Count: c.host.cache_hits,
        "reads served from the DRAM cache of a hard disk";
    Integer "flash_hits" Count: c.host.flash_hits,
        "reads served from the flash cache of a hybrid disk";
    Integer "media_accesses" Count: c.arm.accesses,
        "media accesses of a hard disk for commands and cached writes";
    Integer "media_retries" Count: c.arm.retries, "revolutions lost to retries of media accesses";
    Integer "recalibrations" Count: c.arm.recalibrations, "servo recalibrations of a hard disk";
}

/// Read data that the link sends after the access; it sends all other data during the access.
const BURST_BYTES: u64 = 64 << 10;

impl Disk {
    /// Returns a new disk at time 0, or an error if its mechanics are impossible.
    pub fn new(config: DiskConfig) -> Result<Self, ImpossibleDisk> {
        let (controller, capacity) = (&config.controller, config.user_capacity.0);
        let frontend = Frontend::new(&config.link, controller.command_time, controller.latency);
        Ok(Self {
            core: EventLoop::new(frontend),
            mechanics: Mechanics::new(&config)?,
            reads: Reads::new(config.cache.size.0 / 2, config.cache.segments, capacity),
            dirty: WriteCache::new(&config.cache),
            flash: config.flash_cache.as_ref().map(|flash| FlashCache::new(flash, capacity)),
            write_waiting: VecDeque::new(),
            queue: Vec::new(),
            work: None,
            idle_since: Nanos::ZERO,
            flushes: Vec::new(),
            write_cache: config.cache.write_cache,
            host: DiskHostCounters::default(),
            config,
        })
    }

    /// Returns the configuration of the disk.
    pub fn config(&self) -> &DiskConfig {
        &self.config
    }

    /// Returns the counters since the disk was new.
    pub fn counters(&self) -> DiskCounters {
        DiskCounters { host: self.host, arm: self.mechanics.counted }
    }

    fn begin(&mut self, command: Command) {
        let ready = self.core.frontend.decode(self.core.now, Nanos::ZERO);
        let number = self.core.insert(command, false);
        match command.operation {
            Operation::Read => self.core.schedule(ready, DiskEvent::ReadReady(number)),
            Operation::Write => {
                self.write_waiting.push_back((number, ready));
                self.admit_writes();
            }
            Operation::Trim | Operation::Flush => {
                let at = self.core.frontend.receive(ready, 0);
                self.core.schedule(at, DiskEvent::Arrived(number));
            }
        }
    }

    fn complete(&mut self, number: u16) -> Completion {
        let (completion, next) = self.core.complete(number);
        if let Some(next) = next {
            self.begin(next);
        }
        completion
    }

    /// Starts the data transfer of waiting writes while the cache has space.
    fn admit_writes(&mut self) {
        while let Some(&(number, ready)) = self.write_waiting.front() {
            let command = self.core.in_flight(number).0;
            if self.write_cache && !self.dirty.reserve(u64::from(command.length) / SECTOR_BYTES) {
                return;
            }
            self.core.in_flight(number).1 = self.write_cache;
            self.write_waiting.pop_front();
            let at = self.core.frontend.receive(ready.max(self.core.now), command.length);
            self.core.schedule(at, DiskEvent::Arrived(number));
        }
    }

    fn extent(&self, command: &Command) -> Extent {
        let first = command.offset / SECTOR_BYTES;
        self.mechanics.extent(first, first + u64::from(command.length) / SECTOR_BYTES - 1)
    }

    /// Serves a read from a cache, or queues it for a media access.
    fn read_ready(&mut self, number: u16) -> Option<u16> {
        let (command, _) = *self.core.in_flight(number);
        debug_assert_eq!(command.operation, Operation::Read);
        let extent = self.extent(&command);
        let (first, last) = (extent.first, extent.last);
        self.host.read_bytes += u64::from(command.length);
        let is_cached = self.dirty.holds(first, last)
            || self.reads.hit(self.core.now, first, last, &self.mechanics);
        let from_flash = self.flash.as_mut().filter(|_| !is_cached);
        let flash_time = from_flash.and_then(|flash| flash.read(first, last));
        self.host.cache_hits += u64::from(is_cached);
        self.host.flash_hits += u64::from(flash_time.is_some());
        if is_cached || flash_time.is_some() {
            let from = self.core.now + flash_time.unwrap_or_default();
            let at = self.core.frontend.send(from, command.length, true);
            self.core.schedule(at, DiskEvent::Completed(number));
        } else {
            self.enqueue(number, extent, false);
        }
        None
    }

    /// Processes a command that has arrived with its data, and returns it if it is complete.
    fn arrived(&mut self, number: u16) -> Option<u16> {
        let (command, cached) = *self.core.in_flight(number);
        match command.operation {
            Operation::Write => {
                let extent = self.extent(&command);
                self.host.write_bytes += u64::from(command.length);
                self.invalidate(&extent);
                if !cached {
                    self.enqueue(number, extent, true);
                    return None;
                }
                self.dirty.insert(extent);
                self.admit_writes();
                self.start_next();
                Some(number)
            }
            Operation::Flush if !self.is_written(self.dirty.next) => {
                self.flushes.push((number, self.dirty.next));
                self.start_next();
                None
            }
            // TRIM has no benefit for a hard disk.
            Operation::Flush | Operation::Trim | Operation::Read => Some(number),
        }
    }

    fn invalidate(&mut self, extent: &Extent) {
        if let Some(head) = self.reads.head(self.core.now, &self.mechanics.layout) {
            self.mechanics.move_to(head);
            self.reads.stop(self.core.now, &self.mechanics.layout);
        }
        self.reads.written(extent.first, extent.last);
        if let Some(flash) = &mut self.flash {
            flash.written(extent.first, extent.last);
        }
    }
}

impl Drive for Disk {
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
            let done = match event {
                DiskEvent::ReadReady(number) => self.read_ready(number),
                DiskEvent::Arrived(number) => self.arrived(number),
                DiskEvent::WorkDone => self.work_done(),
                DiskEvent::Completed(number) => Some(number),
            };
            if let Some(number) = done {
                return Some(self.complete(number));
            }
        }
        None
    }

    fn next_event(&self) -> Option<Nanos> {
        self.core.next_event()
    }

    /// Idles until `time`, without outstanding commands; the drive may write back cached data.
    fn idle_until(&mut self, time: Nanos) {
        let lost = self.step(time);
        assert!(lost.is_none(), "completion without a command");
        self.core.now = self.core.now.max(time);
    }

    fn quiesce(&mut self) {
        assert_eq!(self.core.outstanding(), 0);
        let lost = self.step(Nanos::MAX);
        assert!(lost.is_none(), "completion without a command");
        assert!(
            self.work.is_none() && self.dirty.writes.is_empty(),
            "cached writes are not on the media"
        );
        assert!(self.queue.is_empty() && self.write_waiting.is_empty() && self.flushes.is_empty());
        assert!(self.core.next_event().is_none(), "an event without a command");
    }

    /// Applies a write's effect on the state, without its timing (for fast-forwarding). Only the
    /// caches have state that affects later commands. The drive must be idle.
    fn fast_forward(&mut self, command: &Command) {
        if command.operation == Operation::Write {
            self.host.write_bytes += u64::from(command.length);
            let extent = self.extent(command);
            self.invalidate(&extent);
        }
    }

    fn write_cache(&self) -> bool {
        self.write_cache
    }

    /// Enables or disables the write cache, without which a write completes on the media.
    fn set_write_cache(&mut self, enabled: bool) {
        self.write_cache = enabled;
    }

    fn meters(&self, _: Nanos) -> Meters {
        Meters { host_write_bytes: self.host.write_bytes, ..Meters::default() }
    }

    fn check_invariants(&self) -> Result<(), String> {
        let no_host = "although no host commands are outstanding";
        ensure!(self.core.outstanding() == 0, "host commands are outstanding");
        ensure!(self.queue.is_empty(), "the media queue is not empty {no_host}");
        let writes_back = self.work.is_some() || self.dirty.writes.is_empty();
        ensure!(writes_back, "cached writes are not being written back");
        let moving = match &self.work {
            Some((Work::Destage { extent, .. }, _)) => extent.sectors(),
            _ => 0,
        };
        self.dirty.check(moving)?;
        self.reads.check()?;
        self.flash.as_ref().map_or(Ok(()), FlashCache::check)
    }

    fn refuses_trim(&self) -> Option<&'static str> {
        Some("the drive is a hard disk and does not support TRIM")
    }

    fn lose_die(&mut self, _: u32) -> Result<(), String> {
        Err("a hard disk has no dies".to_owned())
    }

    fn save_to(&self, out: &mut dyn Write) -> Result<(), CodecError> {
        assert_eq!(self.core.outstanding(), 0);
        let mut out = saved_state::begin(out, &self.config.canonical, self)?;
        if let Some(flash) = &self.flash {
            flash.save(&mut out)?;
        }
        out.finish().map(|_| ())
    }

    fn restore_from(&mut self, input: &mut dyn Read) -> Result<(), RestoreError> {
        assert_eq!(self.core.outstanding(), 0);
        let canonical = self.config.canonical.clone();
        let mut input = saved_state::open(input, &canonical, self)?;
        if let Some(flash) = &mut self.flash {
            flash.restore(&mut input)?;
        }
        Ok(input.end()?)
    }
}
