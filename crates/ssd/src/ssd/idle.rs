//! Background work while the host is idle.

use writecliff_base::Nanos;

use super::Ssd;
use crate::attribution::Recorder;
use crate::event::{Lane, SsdEvent};
use crate::front::Front;
use crate::mechanisms::Mechanisms;

/// Program units per die in one burst of the front's work: enough to keep the die busy until the
/// next check, but few enough that a command does not wait long.
const BURST_UNITS: u32 = 4;

impl<R: Recorder> Ssd<R> {
    pub(crate) fn schedule_idle_check(&mut self, at: Nanos) {
        if !self.idle_check_scheduled && !self.quiescing && self.wants_idle_time() {
            self.idle_check_scheduled = true;
            self.backend.queue.push(Lane::DieLong, at, SsdEvent::IdleCheck);
        }
    }

    /// Folds and garbage-collects in the background while the host is idle, about one read group of
    /// each die at a time.
    pub(crate) fn idle_check(&mut self) {
        self.idle_check_scheduled = false;
        if self.commands.in_flight() > 0 || self.quiescing {
            return;
        }
        let now = self.backend.now;
        let due = self.last_activity + self.config.controller.idle_delay;
        if now < due {
            self.schedule_idle_check(due);
            return;
        }
        if self.backend.is_quiet() && !self.work_in_front() {
            for _ in 0..self.config.geometry.dies {
                let sink = &mut self.front.sink(&mut self.backend);
                if !self.ftl.gc_in_background(sink) {
                    return;
                }
            }
        }
        self.schedule_idle_check(now + self.config.timing.program_mean());
    }

    /// Lets the front work on a burst of slots; returns `false` if it had no work.
    fn work_in_front(&mut self) -> bool {
        let geometry = &self.config.geometry;
        let burst = i64::from(BURST_UNITS * geometry.dies * geometry.slots_per_program_unit);
        let burst = burst.min(self.buffer_free);
        let done = self.front.idle_work(burst, &mut self.ftl, &mut self.backend);
        self.buffer_free -= done.unwrap_or(0);
        done.is_some()
    }

    /// Returns `true` if there is work to do in idle time.
    #[inline]
    fn wants_idle_time(&self) -> bool {
        self.ftl.needs_background_gc() || self.front.wants_idle_time()
    }

    /// Completes all work in progress. All completions must have been taken before; the host must
    /// have nothing outstanding.
    pub fn quiesce(&mut self) {
        assert_eq!(self.commands.in_flight() + self.frontend.waiting(), 0);
        self.quiescing = true;
        self.work_until(Nanos::MAX);
        self.quiescing = false;
        self.idle_check_scheduled = false;
        self.backend.settle();
        self.last_activity = self.backend.now;
        if let Some(ecc) = &mut self.backend.ecc {
            ecc.before_untimed(self.ftl.counters().host_slots);
        }
    }

    /// Leaves the drive idle until `time`; it may garbage-collect in the background meanwhile. The
    /// host must have nothing outstanding.
    ///
    /// If the drive has not completed a command since it was opened, filled on the fast-forward
    /// clock or quiesced, its idle delay counts from then.
    pub fn idle_until(&mut self, time: Nanos) {
        let due = self.last_activity + self.config.controller.idle_delay;
        self.schedule_idle_check(due.max(self.backend.now));
        while let Some(at) = Mechanisms::next_work(self, time) {
            self.work_until(at);
            self.backend.now = self.backend.now.max(at);
            let has_worked = Mechanisms::work(self, at);
            assert!(has_worked, "a mechanism has no work at the time that it has named");
        }
        self.work_until(time);
        self.backend.now = self.backend.now.max(time);
    }
}
