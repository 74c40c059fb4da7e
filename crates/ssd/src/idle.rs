//! Idle time of a drive, and its work in it.

use writecliff_base::Nanos;

use crate::attribution::Recorder;
use crate::config::DeviceConfig;
use crate::event::{Lane, SsdEvent};
use crate::storage::Storage;
use crate::write_buffer::WriteBuffer;

/// Since when a drive is idle. After the idle delay it works in the background, from check to
/// check.
pub(crate) struct IdleTime {
    delay: Nanos,
    /// From check to check.
    interval: Nanos,
    pub(crate) last_activity: Nanos,
    /// `true` if the event of the next check is in the queue.
    pub(crate) is_scheduled: bool,
    /// `true` while the drive only completes what it has begun.
    is_quiescing: bool,
}

impl IdleTime {
    pub(crate) fn of(config: &DeviceConfig) -> Self {
        Self {
            delay: config.controller.idle_delay,
            interval: config.timing.program_mean(),
            last_activity: Nanos::ZERO,
            is_scheduled: false,
            is_quiescing: false,
        }
    }

    /// Starts to wait for the delay, which has begun with the last activity or `since`.
    pub(crate) fn wait<R: Recorder>(&mut self, storage: &mut Storage<R>) {
        let due = self.last_activity + self.delay;
        self.schedule(due.max(storage.backend.now), storage);
    }

    /// The last command has completed.
    pub(crate) fn begin<R: Recorder>(&mut self, storage: &mut Storage<R>) {
        debug_assert!(self.last_activity <= storage.backend.now, "activity in the future");
        self.last_activity = storage.backend.now;
        self.wait(storage);
    }

    fn schedule<R: Recorder>(&mut self, at: Nanos, storage: &mut Storage<R>) {
        if !self.is_scheduled && !self.is_quiescing && storage.wants_idle_time() {
            self.is_scheduled = true;
            storage.backend.queue.push(Lane::DieLong, at, SsdEvent::IdleCheck);
        }
    }

    /// Works in the background if the delay is over.
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
            let Some(used) = storage.work_when_idle(buffer.free()) else { return };
            buffer.release(-used);
        }
        self.schedule(now + self.interval, storage);
    }

    /// The drive completes what it has begun, without more work.
    pub(crate) fn quiesce(&mut self) {
        assert!(!self.is_quiescing, "quiesced while quiescing");
        self.is_quiescing = true;
    }

    /// All work has ended, and the queue is empty.
    pub(crate) fn quiesced(&mut self, now: Nanos) {
        assert!(self.is_quiescing, "see quiesce");
        self.is_quiescing = false;
        self.restart(now);
    }

    /// Starts at `now` without a scheduled check.
    pub(crate) fn restart(&mut self, now: Nanos) {
        self.is_scheduled = false;
        self.last_activity = now;
    }
}
