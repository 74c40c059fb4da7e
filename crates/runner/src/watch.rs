//! End conditions of a job that depend on measurements, and the search for a queue depth. Both are
//! evaluated at the ends of intervals of the series (`writecliff_workload::SteadyEnd`,
//! `LatencyTarget`, `LeastRate`).

mod depth_search;
mod steady;

use writecliff_base::{Nanos, words};
use writecliff_measure::series::Columns;
use writecliff_measure::{OPERATIONS, OperationOutcome};
use writecliff_workload::{JobSpec, LeastRate};

use self::depth_search::DepthSearch;
use self::steady::Steadiness;

/// Time after which a rate below the minimum is checked, as in fio.
const SETTLED_NS: u64 = 2_000_000_000;

words! {
    /// Condition that ended a job early, with its name in results.
    pub enum EndedBy {
        /// The job's figure became steady; see `SteadyEnd`.
        SteadyState = "steady_state",
        /// The queue depth for the latency target was determined; see `LatencyTarget`.
        LatencyTarget = "latency_target",
        /// An operation was slower than its minimum rate; see `LeastRate`.
        LeastRate = "least_rate",
    }
}

/// Consequence of an interval for the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Continue,
    Depth(u32),
    /// Restart the measurement at this queue depth.
    Afresh(u32),
    End(EndedBy),
}

/// Activity of a job's operation in an interval.
#[derive(Clone, Copy, Debug, Default)]
struct Activity {
    ios: u64,
    bytes: u64,
    latency_sum_ns: f64,
}

/// Measured end conditions of one job.
pub(crate) struct Watch {
    job: usize,
    start: Nanos,
    interval_ns: u64,
    /// Number of evaluated rows of the series.
    rows: usize,
    steady: Option<Steadiness>,
    search: Option<DepthSearch>,
    least: Vec<Least>,
}

/// Minimum rate, and the activity in the cycle so far.
struct Least {
    spec: LeastRate,
    done: Activity,
    since_ns: u64,
}

impl Watch {
    /// Returns the measured end conditions of a job; `None` if it has none.
    pub(crate) fn of(spec: &JobSpec, job: usize, interval_ns: u64) -> Option<Box<Self>> {
        let least = |&spec: &LeastRate| Least { spec, done: Activity::default(), since_ns: 0 };
        let none = spec.until_steady.is_none()
            && spec.latency_target.is_none()
            && spec.least_rates.is_empty();
        (!none).then(|| {
            Box::new(Self {
                job,
                start: Nanos(spec.start_delay_ns.saturating_add(spec.ramp_ns)),
                interval_ns,
                rows: 0,
                steady: spec.until_steady.map(Steadiness::new),
                search: spec.latency_target.map(|t| DepthSearch::new(t, spec.queue_depth)),
                least: spec.least_rates.iter().map(least).collect(),
            })
        })
    }

    /// Returns the initial queue depth.
    pub(crate) fn first_depth(&self) -> Option<u32> {
        self.search.as_ref().map(|search| search.depth)
    }

    /// Evaluates the intervals that have ended since the last call; `results` are the job's
    /// results.
    pub(crate) fn judge(
        &mut self,
        series: &Columns,
        results: &[OperationOutcome; OPERATIONS],
    ) -> Verdict {
        assert!(self.rows <= series.end_ns.len(), "rows that were judged are gone");
        while self.rows < series.end_ns.len() {
            let end_ns = series.end_ns[self.rows];
            let mut activity = [Activity::default(); OPERATIONS];
            while self.rows < series.end_ns.len() && series.end_ns[self.rows] == end_ns {
                self.add_row(series, &mut activity);
                self.rows += 1;
            }
            if end_ns < self.start.0.saturating_add(self.interval_ns) {
                continue; // The job has not started, or has run for less than an interval.
            }
            let verdict = self.judge_interval(end_ns - self.start.0, &activity, results);
            if verdict != Verdict::Continue {
                return verdict;
            }
        }
        Verdict::Continue
    }

    fn add_row(&self, series: &Columns, activity: &mut [Activity; OPERATIONS]) {
        let row = self.rows;
        if series.job[row] as usize != self.job {
            return;
        }
        let ios = series.ios[row];
        let latency_sum_ns = if ios > 0 { series.latency_mean_ns[row] * ios as f64 } else { 0.0 };
        let bytes = series.bytes[row];
        activity[series.operation[row] as usize] = Activity { ios, bytes, latency_sum_ns };
    }

    fn judge_interval(
        &mut self,
        since_start_ns: u64,
        activity: &[Activity; OPERATIONS],
        results: &[OperationOutcome; OPERATIONS],
    ) -> Verdict {
        if self.least.iter_mut().any(|least| least.is_missed(since_start_ns, activity)) {
            return Verdict::End(EndedBy::LeastRate);
        }
        let all = activity.iter().fold(Activity::default(), |sum, activity| Activity {
            ios: sum.ios + activity.ios,
            bytes: sum.bytes + activity.bytes,
            latency_sum_ns: sum.latency_sum_ns + activity.latency_sum_ns,
        });
        if let Some(steady) = &mut self.steady
            && steady.is_attained(since_start_ns, self.interval_ns, &all)
        {
            return Verdict::End(EndedBy::SteadyState);
        }
        match &mut self.search {
            Some(search) => search.judge(self.interval_ns, results),
            None => Verdict::Continue,
        }
    }
}

impl Least {
    fn is_missed(&mut self, now_ns: u64, activity: &[Activity; OPERATIONS]) -> bool {
        let activity = activity[self.spec.operation as usize];
        self.done.ios += activity.ios;
        self.done.bytes += activity.bytes;
        let passed_ns = now_ns - self.since_ns;
        if passed_ns < self.spec.cycle_ns {
            return false;
        }
        let seconds = passed_ns as f64 / 1e9;
        let done = std::mem::take(&mut self.done);
        self.since_ns = now_ns;
        let slow = |least: Option<f64>, done: u64| {
            least.is_some_and(|least| (done as f64 / seconds) < least)
        };
        now_ns > SETTLED_NS
            && (slow(self.spec.iops, done.ios) || slow(self.spec.bytes_per_s, done.bytes))
    }
}
