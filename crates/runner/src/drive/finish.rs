//! End of a step: its results and warnings.

use writecliff_base::Nanos;
use writecliff_host_interface::placement::DataPlacementStatus;

use super::{Run, batching};
use crate::device::{Counters, DriveModel};
use crate::host::{Job, Thread};
use crate::outcome::{JobOutcome, StepOutcome};
use crate::overflow;
use crate::watch::EndedBy;

/// Minimum fraction of unmapped reads for which a step gets a warning.
const UNMAPPED_SHARE_MAX: f64 = 0.01;

impl Run {
    /// Finishes a step. The error is the length (in ns) of a step whose series is too long.
    pub(super) fn finish<D: DriveModel>(
        mut self,
        drive: &mut D,
        (before, data_placement): (Counters, Option<DataPlacementStatus>),
        interrupted: bool,
    ) -> Result<StepOutcome, u64> {
        assert_eq!(self.outstanding.in_flight(), 0, "commands are outstanding at the end");
        assert!(self.jobs.iter().all(|job| job.outstanding == 0));
        assert!(self.threads.iter().all(|thread| thread.outstanding == 0));
        let unmeasured = self.discard_unfinished_ramps(drive);
        let deadline = |job: &Job| match job.deadline_ns {
            Some(deadline) if !interrupted && job.may_issue(deadline - 1) => deadline,
            _ => job.last_completion_ns,
        };
        let ends: Vec<u64> =
            self.jobs.iter().map(|job| deadline(job).max(job.last_completion_ns)).collect();
        let end = ends.iter().copied().fold(drive.now().0, u64::max);
        if self.series_full_ns.is_some() || !self.series.has_room(end) {
            return Err(self.series_full_ns.unwrap_or(end) - self.start_ns);
        }
        drive.idle_until(Nanos(end));
        let mut warnings = unmet_rates(&self.jobs, &self.threads);
        warnings.extend(unmeasured);
        warnings.extend(unmapped_reads(&before, &drive.counters()));
        let data_placement = data_placement.zip(drive.data_placement_status());
        warnings.extend(overflow::warning(data_placement.as_ref()));
        let totals = batching::totals(&self.results, &self.series, &self.flushes);
        let batches = self.batches.finish(end, totals, batching::written(drive));
        self.add_open_interval();
        for result in self.results.iter().flatten() {
            assert_eq!(result.service.count(), result.ios, "an I/O without a service time");
            let responses = result.response.as_ref().map(writecliff_measure::Histogram::count);
            assert!(
                responses.is_none_or(|count| count == result.ios),
                "a response time is missing"
            );
        }
        let (drive, counters) = (&*drive, &mut self.counters);
        let intervals = self.series.finish(end, |end| counters.next(drive, end));
        let counted: u64 = self.results.iter().flatten().map(|result| result.ios).sum();
        assert!(intervals.ios.iter().sum::<u64>() >= counted, "an I/O is in no interval");
        let thread_ios = |job: usize| {
            self.threads.iter().filter(|t| t.job == job).map(|t| t.ios).collect::<Vec<u64>>()
        };
        let results = self.results.into_iter().zip(self.flushes.into_outcomes());
        let jobs = self.jobs.iter().zip(results).zip(&ends).enumerate();
        let jobs = jobs.map(|(index, ((job, (operations, flush)), &job_end))| JobOutcome {
            name: job.name.clone(),
            began_ns: job.began_ns - self.start_ns,
            elapsed_ns: job_end.saturating_sub(job.began_ns),
            operations: operations.map(|result| (result.ios > 0).then_some(result)),
            flush,
            thread_ios: thread_ios(index),
            ended_by: job.ended_by,
            queue_depth: self.threads.iter().find(|t| t.job == index).map_or(0, |t| t.queue_depth),
            adherence: self.schedules[index].adherence(),
        });
        Ok(StepOutcome {
            started_ns: self.start_ns,
            elapsed_ns: end - self.start_ns,
            jobs: jobs.collect(),
            intervals,
            batches,
            before: self.before.unwrap_or(before),
            after: drive.counters(),
            data_placement,
            warnings,
            interrupted,
        })
    }
}

/// Returns warnings about jobs below their minimum rate, and about open loops that ended behind
/// their schedule, because their response times do not include the worst cases.
fn unmet_rates(jobs: &[Job], threads: &[Thread]) -> Vec<String> {
    let mut warnings = Vec::new();
    for (index, job) in jobs.iter().enumerate() {
        if job.ended_by == Some(EndedBy::LeastRate) {
            warnings.push(format!("job '{}' ended: it fell below its minimum rate", job.name));
        }
        let Some(deadline) = job.deadline_ns else { continue };
        let lag = |t: &Thread| t.next.map_or(0, |(due, _)| deadline.saturating_sub(due));
        let lag_ns = threads.iter().filter(|t| t.job == index).map(lag).max().unwrap_or(0);
        if lag_ns > 0 {
            warnings.push(format!(
                "job '{}' ended {:.3} s behind its schedule: the drive did not keep up with the \
                 rate, and I/Os that were due but never issued have no response time",
                job.name,
                lag_ns as f64 / 1e9
            ));
        }
    }
    warnings
}

/// Returns a warning about reads of unmapped addresses, which do not access flash and are not
/// representative of the drive.
fn unmapped_reads(before: &Counters, after: &Counters) -> Option<String> {
    let read = after.host_read_bytes() - before.host_read_bytes();
    let unmapped = after.unmapped_read_bytes() - before.unmapped_read_bytes();
    let share = unmapped as f64 / read.max(1) as f64;
    (share > UNMAPPED_SHARE_MAX).then(|| {
        format!(
            "{:.0} % of the data read had never been written (or was trimmed), so these reads did \
             not access flash: write the range first",
            100.0 * share.min(1.0)
        )
    })
}
