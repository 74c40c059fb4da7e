//! Background work while the host is idle.

use writecliff_base::Nanos;

use super::Ssd;
use crate::attribution::Recorder;
use crate::event::{Lane, SsdEvent};
use crate::front::Front;

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
}
