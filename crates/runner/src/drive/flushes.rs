//! Host flushes: their latencies by job, and writes that include a flush.
//!
//! A flush that a job sends after some of its writes has a separate latency, as in section `sync`
//! of fio's results. A write with `O_DSYNC` completes with the flush that follows it, so the write
//! latency includes this flush.

use writecliff_base::Nanos;
use writecliff_host_interface::{Command, Operation, TimeByCause};
use writecliff_measure::OperationOutcome;
use writecliff_workload::JobSpec;

use super::Outstanding;
use crate::device::DriveModel;

/// Role of an outstanding command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// An I/O, which is counted when the command completes.
    Io,
    /// A write that is followed by a flush when the command completes.
    BeforeFlush,
    /// A flush sent by the job.
    Flush,
    /// A command issued during the job's ramp, which is not counted.
    Ramp,
}

/// Measured flushes of all jobs.
pub(super) struct Flushes {
    of_jobs: Vec<OfJob>,
    /// Time by cause of writes whose flush is outstanding, by tag.
    spent: Vec<(u32, TimeByCause)>,
}

#[derive(Default)]
struct OfJob {
    outcome: OperationOutcome,
    follow_writes: bool,
}

impl Flushes {
    pub(super) fn new(jobs: &[JobSpec]) -> Self {
        let of_job = |job: &JobSpec| OfJob { follow_writes: job.dsync, ..OfJob::default() };
        Self { of_jobs: jobs.iter().map(of_job).collect(), spent: Vec::new() }
    }

    /// Returns `true` if each write of the job includes a flush.
    #[inline]
    pub(super) fn follow_writes_of(&self, job: usize) -> bool {
        self.of_jobs[job].follow_writes
    }

    /// Discards the measured flushes of a job.
    pub(super) fn clear(&mut self, job: usize) {
        self.of_jobs[job].outcome = OperationOutcome::default();
    }

    /// Returns the flush results of each job so far.
    pub(super) fn outcomes(&self) -> impl Iterator<Item = &OperationOutcome> + Clone {
        self.of_jobs.iter().map(|of_job| &of_job.outcome)
    }

    /// Returns the flush results of each job; `None` for a job without flushes.
    pub(super) fn into_outcomes(self) -> impl Iterator<Item = Option<OperationOutcome>> {
        let outcomes = self.of_jobs.into_iter().map(|of_job| of_job.outcome);
        outcomes.map(|outcome| (outcome.ios > 0).then_some(outcome))
    }

    /// Returns the time by cause of an I/O: the time of its last command, `spent`, plus the time of
    /// the write before its flush.
    pub(super) fn with_spent(&mut self, tag: u32, mut spent: TimeByCause) -> TimeByCause {
        if let Some(position) = self.spent.iter().position(|(of, _)| *of == tag) {
            let (_, of_write) = self.spent.swap_remove(position);
            spent.0.iter_mut().zip(of_write.0).for_each(|(sum, time)| *sum += time);
        }
        spent
    }

    /// Counts a completed flush of `job`. Sends the flush of a completed write and returns `true`:
    /// the write remains outstanding with the same tag.
    #[cold]
    pub(super) fn ends_stage<D: DriveModel>(
        &mut self,
        drive: &mut D,
        (tag, io): (u32, &mut Outstanding),
        job: usize,
        now: u64,
    ) -> bool {
        debug_assert_ne!(io.stage, Stage::Io, "an I/O counts when it completes");
        if io.stage == Stage::BeforeFlush {
            if let Some(spent) = drive.time_by_cause() {
                self.spent.push((tag, *spent));
            }
            io.stage = Stage::Io;
            let flush = Command::new(Operation::Flush, 0, 0);
            drive.submit(Nanos(now), Command { queue: io.thread, tag, ..flush });
            return true;
        }
        if io.stage == Stage::Ramp {
            return false;
        }
        let outcome = &mut self.of_jobs[job].outcome;
        let service = now - io.issued_ns;
        outcome.ios += 1;
        outcome.service.record(service);
        if let Some(spent) = drive.time_by_cause() {
            outcome.causes.get_or_insert_default().record(service, spent);
        }
        false
    }
}
