//! Threads that wait for a rate schedule or think time, not only for completions.

use writecliff_host_interface::Operation;

use super::Run;
use crate::device::DriveModel;

impl Run {
    /// Starts a thread's pause once the thread has no outstanding I/Os. As in fio, the pause after
    /// the last I/O of a job belongs to the job.
    pub(super) fn pause(&mut self, index: usize, now: u64) {
        let thread = &mut self.threads[index];
        let Some(pause) = thread.pause.filter(|_| thread.outstanding == 0) else { return };
        thread.pause = None;
        let ends = now.saturating_add(pause);
        thread.pacing.idle_until(ends - self.start_ns);
        let job = &mut self.jobs[thread.job];
        if job.may_issue(now) && job.may_issue(ends) {
            self.sleep(index, ends);
        } else {
            let ends = job.deadline_ns.map_or(ends, |deadline| ends.min(deadline));
            job.last_completion_ns = job.last_completion_ns.max(ends);
        }
    }

    /// Issues the due requests of a thread that follows a schedule.
    pub(super) fn issue_by_schedule<D: DriveModel>(
        &mut self,
        drive: &mut D,
        index: usize,
        now: u64,
    ) {
        while self.threads[index].outstanding < self.threads[index].queue_depth {
            let thread = &mut self.threads[index];
            if thread.pause.is_some() {
                self.pause(index, now);
                return;
            }
            let (arrival, request) = if let Some(next) = thread.next {
                next
            } else {
                let request = thread.next_request(drive, now - self.start_ns);
                // A flush belongs to the preceding write because the rate counts I/Os.
                let due = if request.op == Operation::Flush {
                    now - self.start_ns
                } else {
                    thread.pacing.next_arrival_ns(request.op, request.length).unwrap_or(0)
                };
                (self.start_ns.saturating_add(due), request)
            };
            thread.next = Some((arrival, request));
            let job = &self.jobs[thread.job];
            if !job.may_issue(now.max(arrival)) {
                return;
            }
            if arrival > now {
                self.sleep(index, arrival);
                return;
            }
            thread.next = None;
            if request.op != Operation::Flush {
                let is_full = thread.outstanding + 1 == thread.queue_depth;
                thread.pause = thread.pacing.pause_after_issue(request.op, is_full);
            }
            self.submit(drive, index, &request, now, arrival);
        }
    }
}
