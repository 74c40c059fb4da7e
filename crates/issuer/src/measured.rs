//! What an issue measures.

use writecliff_runner::outcome::{OPERATIONS, OperationOutcome};
use writecliff_runner::series::{Cell, Columns, IntervalSeries, WholeDrive};
use writecliff_runner::{Histogram, ScheduleFit};
use writecliff_workload::Operation;

use crate::io::{Failure, Io};

/// How far an issue kept to its times.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    /// From when each I/O was due until it was issued.
    pub each: Histogram,
    /// I/Os that waited until others were complete.
    pub waited: u64,
    /// I/Os that were due and never issued: they waited until their job's end, or until a stop.
    pub left: u64,
    /// When the last I/O that was issued was due.
    pub intended_ns: u64,
    /// When it was issued, or a later one that had waited for it.
    pub length_ns: u64,
}

/// The results of an issue.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Of the monotonic clock, at the beginning.
    pub started_ns: u64,
    /// Until the last I/O was complete.
    pub elapsed_ns: u64,
    pub jobs: Vec<[OperationOutcome; OPERATIONS]>,
    /// How each job kept to its schedule.
    pub schedules: Vec<ScheduleFit>,
    /// Flushes of each job.
    pub flushes: Vec<OperationOutcome>,
    pub lateness: Lateness,
    pub intervals: Columns,
    pub failure: Option<Failure>,
    pub failures: u64,
    /// I/Os in flight when it was given up.
    pub abandoned: u64,
    /// Most I/Os in flight at a time.
    pub in_flight_max: u32,
    pub is_pinned: bool,
}

/// Collects what is complete.
pub(crate) struct Collector {
    pub(crate) measured: Measured,
    pub(crate) ios: u64,
    pub(crate) bytes: u64,
    series: IntervalSeries,
}

const UNKNOWN: WholeDrive = WholeDrive { waf: f64::NAN, watts: f64::NAN, celsius: f64::NAN };

impl Collector {
    pub(crate) fn new(jobs: u32, interval_ns: u64) -> Self {
        let cells: Vec<Cell> = (0..jobs)
            .flat_map(|job| (0..OPERATIONS as u8).map(move |operation| Cell { job, operation }))
            .collect();
        let open =
            || OperationOutcome { response: Some(Histogram::new()), ..OperationOutcome::default() };
        let each = (0..jobs).map(|_| std::array::from_fn(|_| open())).collect();
        Self {
            measured: Measured {
                jobs: each,
                schedules: vec![ScheduleFit::default(); jobs as usize],
                flushes: vec![OperationOutcome::default(); jobs as usize],
                ..Measured::default()
            },
            ios: 0,
            bytes: 0,
            series: IntervalSeries::new(0, interval_ns, &cells),
        }
    }

    /// Counts an I/O of a job that was issued and completed at these times since the beginning.
    pub(crate) fn record(&mut self, io: &Io, job: u32, issue_ns: u64, complete_ns: u64) {
        let service = complete_ns - issue_ns;
        self.measured.elapsed_ns = complete_ns;
        if io.operation == Operation::Flush {
            let outcome = &mut self.measured.flushes[job as usize];
            outcome.ios += 1;
            outcome.service.record(service);
            return;
        }
        self.ios += 1;
        self.bytes += io.length;
        // A series too long to be kept ends early; the run goes on, and its totals are whole.
        if self.series.is_due(complete_ns) && self.series.has_room(complete_ns) {
            self.series.advance(complete_ns, |_| UNKNOWN);
        }
        let (job, operation) = (job as usize, io.operation as usize);
        self.series.record(job * OPERATIONS + operation, io.length, service);
        let outcome = &mut self.measured.jobs[job][operation];
        outcome.ios += 1;
        outcome.bytes += io.length;
        outcome.service.record(service);
        if let Some(response) = &mut outcome.response {
            let age_ns = complete_ns - io.due_ns;
            response.record(age_ns);
            self.series.record_response(job * OPERATIONS + operation, age_ns);
            self.measured.schedules[job].record(io.due_ns, age_ns);
        }
    }

    /// Notes when an I/O was issued.
    #[inline]
    pub(crate) fn issued(&mut self, io: &Io, issue_ns: u64) {
        let lateness = &mut self.measured.lateness;
        lateness.each.record(issue_ns - io.due_ns);
        lateness.intended_ns = lateness.intended_ns.max(io.due_ns);
        lateness.length_ns = issue_ns;
    }

    pub(crate) fn finish(self) -> Measured {
        let mut measured = self.measured;
        measured.intervals = if self.series.has_room(measured.elapsed_ns) {
            self.series.finish(measured.elapsed_ns, |_| UNKNOWN)
        } else {
            self.series.columns().clone()
        };
        measured
    }
}
