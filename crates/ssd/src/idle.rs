//! Idle time and background work of a drive.

use writecliff_base::Nanos;

use crate::write_buffer::WriteBuffer;
use crate::{DeviceConfig, Lane, Recorder, SsdEvent, Storage};

/// The idle time of a drive. After the idle delay, checks start steps of background work.
#[derive(Default)]
pub(crate) struct IdleTime {
    delay: Nanos,
    /// Time between two checks.
    interval: Nanos,
    pub(crate) last_activity: Nanos,
    /// `true` if the event of the next check is in the queue.
    pub(crate) is_scheduled: bool,
    /// `true` while the drive completes its work in progress and starts no background work.
    is_quiescing: bool,
}

impl IdleTime {
    pub(crate) fn of(config: &DeviceConfig) -> Self {
        let (delay, interval) = (config.controller.idle_delay, config.timing.program_mean());
        Self { delay, interval, ..Self::default() }
    }

    /// Schedules the check at the end of the idle delay, which started with the last activity.
    pub(crate) fn wait<R: Recorder>(&mut self, storage: &mut Storage<R>) {
        let due = self.last_activity + self.delay;
        self.schedule(due.max(storage.backend.now), storage);
    }

    /// Starts the idle time when the last command has completed.
    pub(crate) fn begin<R: Recorder>(&mut self, storage: &mut Storage<R>) {
        debug_assert!(self.last_activity <= storage.backend.now, "activity in the future");
        self.last_activity = storage.backend.now;
        self.wait(storage);
    }

    fn schedule<R: Recorder>(&mut self, at: Nanos, storage: &mut Storage<R>) {
        if !self.is_scheduled && !self.is_quiescing && storage.wants_idle_time() {
            self.is_scheduled = true;
            debug_assert!(at >= storage.backend.now, "a check in the past");
            storage.backend.queue.push(Lane::DieLong, at, SsdEvent::IdleCheck);
        }
    }

    /// Handles a check: does background work if the idle delay is over.
    pub(crate) fn check<R: Recorder>(
        &mut self,
        storage: &mut Storage<R>,
        buffer: &mut WriteBuffer,
        has_commands: bool,
    ) {
        debug_assert!(self.is_scheduled, "a check that was not scheduled");
        self.is_scheduled = false;
        if has_commands || self.is_quiescing {
            return;
        }
        let now = storage.backend.now;
        if now < self.last_activity + self.delay {
            return self.wait(storage);
        }
        if storage.backend.is_quiet() {
            let Some(used) = storage.work_when_idle(buffer.free) else { return };
            debug_assert!(used <= buffer.free.max(0), "idle work takes free space");
            buffer.release(-used);
        }
        self.schedule(now + self.interval, storage);
    }

    /// Suppresses background work until [`Self::quiesced`] is called.
    pub(crate) fn quiesce(&mut self) {
        assert!(!self.is_quiescing, "`quiesce` was called twice");
        self.is_quiescing = true;
    }

    /// Ends [`Self::quiesce`] when all work has finished and the queue is empty.
    pub(crate) fn quiesced(&mut self, now: Nanos) {
        assert!(self.is_quiescing, "`quiesced` was called without `quiesce`");
        self.is_quiescing = false;
        self.restart(now);
    }

    /// Restarts the idle time at `now` without a scheduled check.
    pub(crate) fn restart(&mut self, now: Nanos) {
        self.is_scheduled = false;
        self.last_activity = now;
    }
}
