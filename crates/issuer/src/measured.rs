//! Results of an issue.

use writecliff_measure::series::{Cell, Columns, IntervalSeries, WholeDrive};
use writecliff_measure::{Histogram, OPERATIONS, OperationOutcome, ScheduleFit};
use writecliff_workload::{Operation, SERIES_ROWS_KEPT};

use crate::io::{Io, IoFailure};

/// Delays between due times and issue times.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    /// Delay of each I/O.
    pub each: Histogram,
    /// Number of I/Os that waited for the completion of other I/Os.
    pub waited: u64,
    /// Number of due I/Os that were never issued before the end of their job or a stop.
    pub left: u64,
    /// Due time of the last issued I/O.
    pub intended_ns: u64,
    /// Time of the last issued I/O.
    pub length_ns: u64,
}

/// Time window in which a job may issue I/Os, and its other end conditions.
#[derive(Clone, Copy, Debug, Default)]
pub struct JobTime {
    /// Job start, relative to the start of the issue. Start of the measurement; earlier I/Os belong
    /// to a ramp and are not measured.
    pub start_ns: u64,
    /// End of the job; `None` if a number of bytes or I/Os ends it.
    pub deadline_ns: Option<u64>,
    /// Ends the job before its deadline.
    pub bytes: Option<u64>,
    /// Ends the job before its deadline.
    pub ios: Option<u64>,
    /// `true` if all other jobs end with this job.
    pub ends_all: bool,
}

/// Results of a job.
#[derive(Clone, Debug)]
pub struct JobMeasured {
    /// Results by operation: read, write and trim.
    pub operations: [OperationOutcome; OPERATIONS],
    /// Results of the job's flushes.
    pub flush: OperationOutcome,
    /// Fit of the ages of the job's I/Os, which reveals a growing backlog.
    pub schedule: ScheduleFit,
    /// Job start, relative to the start of the issue.
    pub began_ns: u64,
    /// Time from the job's start to the later of its deadline and its last completion. If another
    /// condition ended the job before the deadline, the time ends at the last completion.
    pub elapsed_ns: u64,
    last_completion_ns: u64,
    ramp_bytes: u64,
}

impl JobMeasured {
    fn new(time: JobTime) -> Self {
        let open =
            || OperationOutcome { response: Some(Histogram::new()), ..OperationOutcome::default() };
        let began_ns = time.start_ns;
        Self {
            operations: std::array::from_fn(|_| open()),
            flush: OperationOutcome::default(),
            schedule: ScheduleFit::default(),
            began_ns,
            elapsed_ns: 0,
            last_completion_ns: began_ns,
            ramp_bytes: 0,
        }
    }

    fn total(&self, of: fn(&OperationOutcome) -> u64) -> u64 {
        self.operations.iter().map(of).sum()
    }

    /// Returns `true` if the job ended because of its bytes or I/Os.
    fn is_done(&self, time: JobTime) -> bool {
        time.ios.is_some_and(|most| self.total(|operation| operation.ios) >= most)
            || time.bytes.is_some_and(|most| {
                self.ramp_bytes + self.total(|operation| operation.bytes) >= most
            })
    }
}

/// Results of an issue.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Monotonic clock time at the start of the issue.
    pub started_ns: u64,
    /// Time until the last I/O had completed and the last job had ended.
    pub elapsed_ns: u64,
    /// Results by job, in the order of [`crate::Issue::jobs`].
    pub jobs: Vec<JobMeasured>,
    /// Delays between due times and issue times.
    pub lateness: Lateness,
    /// Time series of all jobs.
    pub intervals: Columns,
    /// First failed I/O; `None` if none failed.
    pub failure: Option<IoFailure>,
    /// Number of failed I/Os.
    pub failures: u64,
    /// Number of I/Os in flight when the issue was abandoned.
    pub abandoned: u64,
    /// Maximum number of I/Os in flight.
    pub in_flight_max: u32,
    /// `true` if the memory of the I/Os was pinned; otherwise, the kernel pinned it for each I/O.
    pub is_pinned: bool,
}

pub(crate) struct Collector {
    pub(crate) measured: Measured,
    pub(crate) ios: u64,
    pub(crate) bytes: u64,
    times: Vec<JobTime>,
    series: IntervalSeries,
}

const UNKNOWN: WholeDrive = WholeDrive { waf: f64::NAN, watts: f64::NAN, celsius: f64::NAN };

impl Collector {
    pub(crate) fn new(times: &[JobTime], interval_ns: u64) -> Self {
        let cells: Vec<Cell> = (0..times.len() as u32)
            .flat_map(|job| (0..OPERATIONS as u8).map(move |operation| Cell { job, operation }))
            .collect();
        let jobs = times.iter().copied().map(JobMeasured::new).collect();
        Self {
            measured: Measured { jobs, ..Measured::default() },
            ios: 0,
            bytes: 0,
            times: times.to_vec(),
            series: IntervalSeries::new(0, interval_ns, &cells, SERIES_ROWS_KEPT),
        }
    }

    /// Counts an I/O of a job; times are relative to the start of the issue.
    pub(crate) fn record(&mut self, io: &Io, job: u32, issue_ns: u64, complete_ns: u64) {
        debug_assert!(io.due_ns <= issue_ns, "an I/O is issued before it is due");
        let service = complete_ns - issue_ns;
        self.measured.elapsed_ns = complete_ns;
        let measured = &mut self.measured.jobs[job as usize];
        measured.last_completion_ns = measured.last_completion_ns.max(complete_ns);
        if io.due_ns < self.times[job as usize].start_ns {
            measured.ramp_bytes += if io.operation == Operation::Flush { 0 } else { io.length };
            return;
        }
        if io.operation == Operation::Flush {
            measured.flush.ios += 1;
            measured.flush.service.record(service);
            return;
        }
        self.ios += 1;
        self.bytes += io.length;
        // A series that is too long is truncated. The run continues, and its totals are complete.
        if self.series.is_due(complete_ns) && self.series.has_room(complete_ns) {
            self.series.advance(complete_ns, |_| UNKNOWN);
        }
        let (job, operation) = (job as usize, io.operation as usize);
        self.series.record(job * OPERATIONS + operation, io.length, service);
        let outcome = &mut measured.operations[operation];
        outcome.ios += 1;
        outcome.bytes += io.length;
        outcome.service.record(service);
        if let Some(response) = &mut outcome.response {
            let age_ns = complete_ns - io.due_ns;
            response.record(age_ns);
            self.series.record_response(job * OPERATIONS + operation, age_ns);
            measured.schedule.record(io.due_ns, age_ns);
        }
    }

    #[inline]
    pub(crate) fn issued(&mut self, io: &Io, issue_ns: u64) {
        let lateness = &mut self.measured.lateness;
        lateness.each.record(issue_ns - io.due_ns);
        lateness.intended_ns = lateness.intended_ns.max(io.due_ns);
        lateness.length_ns = issue_ns;
    }

    /// Returns the results; `stopped` is `true` if not all due I/Os were issued.
    pub(crate) fn finish(self, stopped: bool) -> Measured {
        let mut measured = self.measured;
        for outcome in measured.jobs.iter().flat_map(|job| &job.operations) {
            assert_eq!(outcome.service.count(), outcome.ios, "an I/O without a service time");
            let responses = outcome.response.as_ref().map_or(outcome.ios, Histogram::count);
            assert_eq!(responses, outcome.ios, "an I/O without a response time");
        }
        let counted: u64 = measured.jobs.iter().map(|job| job.total(|outcome| outcome.ios)).sum();
        assert_eq!(counted, self.ios, "I/Os of jobs and of the whole issue");
        let mut jobs: Vec<_> = measured.jobs.iter_mut().zip(&self.times).collect();
        let stopped =
            stopped || jobs.iter().any(|(job, time)| time.ends_all && job.is_done(**time));
        for (job, time) in &mut jobs {
            let deadline_ns = time.deadline_ns.filter(|_| !stopped && !job.is_done(**time));
            let end_ns = deadline_ns.unwrap_or(0).max(job.last_completion_ns);
            job.elapsed_ns = end_ns - job.began_ns;
            measured.elapsed_ns = measured.elapsed_ns.max(end_ns);
        }
        measured.intervals = if self.series.has_room(measured.elapsed_ns) {
            self.series.finish(measured.elapsed_ns, |_| UNKNOWN)
        } else {
            self.series.columns().clone()
        };
        measured
    }
}
