//! Ramps: the initial phase of a job, which is not measured.
//!
//! A ramp ends, as in fio, with the first I/O of the job that completes after the ramp time. That
//! I/O and all I/Os outstanding at that time belong to the ramp. Addresses continue, and the job's
//! volume is counted from the start of the ramp. The job's duration, I/O count and rate schedule
//! restart.

use std::cmp::Reverse;

use writecliff_measure::OPERATIONS;

use super::flushes::Stage;
use super::{Run, end_all};
use crate::device::DriveModel;

impl Run {
    pub(super) fn end_ramp<D: DriveModel>(&mut self, drive: &D, index: usize, now: u64) {
        assert!(self.jobs[index].ramp_end_ns.is_some(), "a ramp ends once");
        self.discard_ramp(drive, index, now);
        for io in self.outstanding.iter_mut() {
            let counts = matches!(io.stage, Stage::Io | Stage::Flush);
            if counts && self.threads[io.thread as usize].job == index {
                io.stage = Stage::Ramp;
            }
        }
        let job = &mut self.jobs[index];
        job.ios_left = job.ios_total.unwrap_or(u64::MAX);
        job.deadline_ns = job.duration_ns.map(|duration| now.saturating_add(duration));
        if let (true, Some(end_ns)) = (job.ends_all, job.deadline_ns) {
            end_all(&mut self.jobs, end_ns);
        }
        self.restart_schedules(index, now);
    }

    /// Discards the results of jobs that ended during their ramps. Returns a warning for each job.
    pub(super) fn discard_unfinished_ramps<D: DriveModel>(&mut self, drive: &D) -> Vec<String> {
        let mut warnings = Vec::new();
        for index in 0..self.jobs.len() {
            if self.jobs[index].ramp_end_ns.is_some() {
                self.discard_ramp(drive, index, self.jobs[index].last_completion_ns);
                let name = &self.jobs[index].name;
                warnings.push(format!(
                    "job '{name}' ended during its ramp: none of its I/Os were measured"
                ));
            }
        }
        warnings
    }

    fn discard_ramp<D: DriveModel>(&mut self, drive: &D, index: usize, now: u64) {
        self.series.clear(index * OPERATIONS..(index + 1) * OPERATIONS);
        self.measure_afresh(drive, index, now);
        self.before = Some(drive.counters());
        let job = &mut self.jobs[index];
        job.ramp_end_ns = None;
        job.began_ns = now;
    }

    /// Restarts a job's schedules, and wakes threads that slept until their next arrival.
    fn restart_schedules(&mut self, index: usize, now: u64) {
        for (number, thread) in self.threads.iter_mut().enumerate() {
            if thread.job != index {
                continue;
            }
            thread.ios = 0;
            if !thread.pacing.is_open() {
                continue;
            }
            thread.pacing.restart(now - self.start_ns);
            let Some((arrival, request)) = &mut thread.next else { continue };
            let due = thread.pacing.next_arrival_ns(request.op, request.length).unwrap_or(0);
            *arrival = self.start_ns.saturating_add(due);
            if thread.asleep {
                let number = number as u32;
                self.timers.retain(|Reverse((_, other))| *other != number);
                self.timers.push(Reverse((*arrival, number)));
            }
        }
    }
}
