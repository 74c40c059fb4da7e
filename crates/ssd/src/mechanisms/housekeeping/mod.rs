//! Background firmware work: section `[housekeeping]` of a device file.
//!
//! The section has four optional mechanisms. Each mechanism affects a different portion of a
//! drive's latency tail, or the variation of its throughput from second to second:
//!
//! | mechanism | delays |
//! |---|---|
//! | media work (refresh of disturbed blocks, metadata) at intervals of time | reads of one die |
//! | journal and checkpoints of the mapping, by what is written to flash | one die; all commands |
//! | hiccups: an internal task that delays a command | that command |
//! | patrol reads, from time to time (`patrol.rs`) | the firmware, a little for some time |
//!
//! The drive's seed determines all random choices. The time and die of each media operation are
//! functions of the operation's number, so an idle drive needs no events. When a command arrives,
//! the drive computes which operations are still running.

use writecliff_base::random::nth;
use writecliff_base::{Nanos, Prng, counters, counts, saved};

use crate::mechanisms::{Mechanism, Numbered, steps};
use crate::{DeviceConfig, FlashOperation, Lane, Recorder, Ssd};

mod patrol;
mod section;

pub use patrol::{Patrol, PatrolConfig};
pub use section::{Hiccups, HousekeepingConfig, MediaWork, PerWritten};

const SEED_LABEL: u64 = 0x484f_5553_454b;

counts! {
    /// Counters since the drive was new.
    pub struct HousekeepingCounters {
        /// Media operations while commands were in flight; others are not simulated.
        media_operations,
        /// Programs of a mapping journal page.
        journal_programs,
        checkpoints,
        /// Commands with additional controller latency.
        hiccups,
    }
}

// The checkpoint interval shrinks with the drive scale.
counters! { |c: HousekeepingCounters|
    Integer "checkpoints" Count of_any_size: c.checkpoints,
        "checkpoints of the mapping (`[housekeeping]`)";
}

/// Number of bytes to program until work is due.
#[derive(Clone, Copy, Debug)]
struct Countdown {
    each: PerWritten,
    left: u64,
}

saved! { Countdown { left } }

impl Countdown {
    fn of(each: PerWritten) -> Self {
        Self { each, left: each.interval.0 }
    }

    /// Counts `bytes` programmed; returns the time of the work if it has become due.
    fn count(&mut self, bytes: u64) -> Option<Nanos> {
        if bytes < self.left {
            self.left -= bytes;
            return None;
        }
        let interval = self.each.interval.0;
        self.left = interval - (bytes - self.left) % interval;
        debug_assert!((1..=interval).contains(&self.left), "the next work is too far away");
        Some(self.each.time)
    }
}

/// Runtime state of the section.
#[derive(Default)]
pub struct Housekeeping {
    media: Option<MediaWork>,
    journal: Option<Countdown>,
    checkpoint: Option<Countdown>,
    checkpoint_stops_writes: bool,
    hiccups: Option<Hiccups>,
    patrol: Option<Patrol>,
    dies: u32,
    unit_bytes: u64,
    /// Seeds of the numbered random draws for media work and hiccups.
    salts: [u64; 2],
    /// Number of the next media operation.
    next_media: u64,
    /// `true` if the event of that operation is scheduled.
    media_scheduled: bool,
    commands: u64,
    pub(crate) counters: HousekeepingCounters,
}

saved! {
    Housekeeping {
        salts, next_media, media_scheduled, commands, (journal), (checkpoint), counters, (patrol),
    }
}

impl Housekeeping {
    /// Returns the state of a new drive; `None` if the device file has no such section.
    pub fn of(config: &DeviceConfig) -> Option<Box<Self>> {
        let section = config.sections.housekeeping.as_ref()?;
        let mut random = Prng::derive(config.ftl.seed, SEED_LABEL);
        Some(Box::new(Self {
            media: section.media,
            journal: section.journal.map(Countdown::of),
            checkpoint: section.checkpoint.map(Countdown::of),
            checkpoint_stops_writes: section.checkpoint_stops_writes,
            hiccups: section.hiccups,
            patrol: section.patrol.map(|patrol| Patrol::new(patrol, config.ftl.seed)),
            dies: config.geometry.dies,
            unit_bytes: config.geometry.unit_bytes(),
            salts: std::array::from_fn(|_| random.next_u64()),
            ..Self::default()
        }))
    }

    /// Returns the die and the start, at a random time in interval `n`, of media operation `n`.
    fn media_operation(&self, work: MediaWork, n: u64) -> (u32, Nanos) {
        let draw = nth(self.salts[0], n);
        let share = |of: u64, draw: u64| ((u128::from(of) * u128::from(draw as u32)) >> 32) as u64;
        let at = Nanos(n * work.interval.0 + share(work.interval.0, draw >> 32));
        (share(u64::from(self.dies), draw) as u32, at)
    }

    /// Returns the die and the start of the next media operation that has not ended at `now`.
    pub fn next_media(&mut self, now: Nanos) -> Option<(u32, Nanos)> {
        let work = self.media?;
        // All operations up to this number have finished.
        let over = now.saturating_sub(work.time).0 / work.interval.0;
        self.next_media = self.next_media.max(over);
        loop {
            let operation = self.media_operation(work, self.next_media);
            if operation.1 + work.time > now {
                return Some(operation);
            }
            self.next_media += 1;
        }
    }

    /// Schedules the next media operation, and starts the operations that should already be
    /// running. An operation that started during idle time occupies its die for its remaining time.
    #[cold]
    fn schedule_media<R: Recorder>(&mut self, drive: &mut Ssd<R>) {
        let now = drive.storage.backend.now;
        let Some(work) = self.media else { return };
        while let Some((die, at)) = self.next_media(now) {
            if at > now {
                self.media_scheduled = true;
                drive.storage.backend.queue.push(Lane::DieLong, at, Self::event(0));
                return;
            }
            self.next_media += 1;
            self.counters.media_operations += 1;
            debug_assert!(die < self.dies, "no die of the drive");
            let upkeep = FlashOperation::upkeep(at + work.time - now, work.suspendable);
            drive.storage.backend.work(die as usize, upkeep);
        }
    }
}

/// Stops the firmware from processing commands for `time`, starting at `at`.
fn stall_firmware<R: Recorder>(drive: &mut Ssd<R>, at: Nanos, time: Nanos) {
    let until = drive.commands.frontend.stall(at, time);
    drive.storage.backend.recorder.firmware_stalled(until - time, until);
}

impl Mechanism for Housekeeping {
    const STEPS: u8 = steps::COMMANDS | steps::PROGRAMS;

    fn of(config: &DeviceConfig) -> Option<Box<Self>> {
        Self::of(config)
    }

    /// Charges firmware time for the patrol reads that have become due.
    fn before_command<R: Recorder>(&mut self, drive: &mut Ssd<R>) {
        let Some(patrol) = &mut self.patrol else { return };
        let time = patrol.config.time;
        while let Some(at) =
            patrol.due(drive.storage.backend.now, drive.commands.frontend.firmware_free())
        {
            stall_firmware(drive, at, time);
        }
    }

    /// Starts the schedule of media operations, unless the next operation is already scheduled.
    fn command_begins<R: Recorder>(&mut self, drive: &mut Ssd<R>) {
        if !self.media_scheduled {
            self.schedule_media(drive);
        }
    }

    /// Returns the randomly drawn delay of a command by an internal controller task.
    fn command_delay(&mut self) -> Nanos {
        let Some(hiccups) = self.hiccups else { return Nanos::ZERO };
        let draw = (nth(self.salts[1], self.commands) >> 11) as f64 / (1_u64 << 53) as f64;
        self.commands += 1;
        if draw >= hiccups.probability {
            return Nanos::ZERO;
        }
        self.counters.hiccups += 1;
        hiccups.time
    }

    /// Counts a programmed unit, and writes a journal page or a checkpoint if one is due.
    #[cold]
    fn programmed<R: Recorder>(&mut self, drive: &mut Ssd<R>) {
        if let Some(time) = self.journal.as_mut().and_then(|work| work.count(self.unit_bytes)) {
            let die = self.counters.journal_programs % u64::from(self.dies);
            self.counters.journal_programs += 1;
            drive.storage.backend.work(die as usize, FlashOperation::upkeep(time, true));
        }
        if let Some(time) = self.checkpoint.as_mut().and_then(|work| work.count(self.unit_bytes)) {
            self.counters.checkpoints += 1;
            let now = drive.storage.backend.now;
            match &mut drive.mechanisms.mapping_core {
                Some(core) if self.checkpoint_stops_writes => core.stall(now, time),
                _ => stall_firmware(drive, now, time),
            }
        }
    }

    /// Starts the media operation that is due. Operations during idle time are not simulated; the
    /// next command computes which of them are still running.
    fn due<R: Recorder>(&mut self, drive: &mut Ssd<R>, _: u16) -> bool {
        self.media_scheduled = false;
        if drive.commands.in_flight() > 0 {
            self.schedule_media(drive);
        }
        false
    }

    fn powered_up(&mut self) {
        self.media_scheduled = false;
    }
}
