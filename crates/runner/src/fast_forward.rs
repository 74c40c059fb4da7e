//! Fast-forward: applies the requests of a workload without timing, in the order that a fair host
//! would issue them. Fast-forward is used for preconditioning; only the drive's counters are
//! measured.
//!
//! Closed-loop threads take turns. In each turn, a thread issues as many I/Os as its queue depth,
//! which is its share of the I/Os on a drive that serves queues fairly. Open-loop threads follow
//! their schedules.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use writecliff_host_interface::Operation;
use writecliff_measure::batches::BatchColumns;
use writecliff_measure::series::Columns;
use writecliff_workload::{SpecError, WorkloadSpec};

use crate::device::DriveModel;
use crate::flow::Flows;
use crate::host::{self, Job, Thread};
use crate::outcome::{JobOutcome, Observer, StepOutcome, StepProgress};
use crate::overflow;

/// Number of requests between two calls of the observer.
const LOOK_EVERY: u64 = 1 << 20;

/// Fast-forwards the drive through `spec`. Jobs must end by volume or number of I/Os.
pub fn run<D: DriveModel>(
    drive: &mut D,
    spec: &WorkloadSpec,
    observer: &mut dyn Observer,
) -> Result<StepOutcome, SpecError> {
    let capacity = drive.capacity();
    let spec = host::checked(spec, drive)?;
    for job in &spec.jobs {
        if job.volume_bytes.is_none() && job.ios.is_none() {
            return Err(SpecError::Workload(format!(
                "job '{}' has only a time limit, which fast-forward does not support: give it a \
                 volume",
                job.name
            )));
        }
    }
    let rated = spec.jobs.iter().filter(|j| j.rate_iops.or(j.rate_bytes_per_s).is_some()).count();
    if rated != 0 && rated != spec.jobs.len() {
        let message = "fast-forward requires a rate either for all jobs or for none";
        return Err(SpecError::Workload(message.to_owned()));
    }
    drive.quiesce();
    let before = drive.counters();
    let data_placement_before = drive.data_placement_status();
    let started_ns = drive.now().0;
    let jobs = spec.jobs.iter().map(|job| Job::new(job, 0)).collect();
    let threads = host::threads(&spec.jobs, capacity, spec.seed)?;
    let flows = Flows::new(&spec.jobs, threads.iter().map(|thread| thread.job));
    let (requests, look_at, stop) = (0, LOOK_EVERY, false);
    let mut run = FastForward { drive, jobs, threads, flows, requests, look_at, observer, stop };
    if rated == 0 {
        run.in_turns();
    } else {
        run.by_schedule();
    }
    let (stop, threads) = (run.stop, run.threads);
    drive.end_fast_forward();
    let outcome = |(index, job): (usize, &writecliff_workload::JobSpec)| JobOutcome {
        name: job.name.clone(),
        thread_ios: threads.iter().filter(|t| t.job == index).map(|t| t.ios).collect(),
        queue_depth: job.queue_depth,
        ..JobOutcome::default()
    };
    let data_placement = data_placement_before.zip(drive.data_placement_status());
    Ok(StepOutcome {
        started_ns,
        elapsed_ns: 0,
        jobs: spec.jobs.iter().enumerate().map(outcome).collect(),
        intervals: Columns::default(),
        batches: BatchColumns::default(),
        before,
        after: drive.counters(),
        warnings: overflow::warning(data_placement.as_ref()).into_iter().collect(),
        data_placement,
        interrupted: stop,
    })
}

struct FastForward<'a, D> {
    drive: &'a mut D,
    jobs: Vec<Job>,
    threads: Vec<Thread>,
    flows: Flows,
    requests: u64,
    look_at: u64,
    observer: &'a mut dyn Observer,
    stop: bool,
}

impl<D: DriveModel> FastForward<'_, D> {
    fn in_turns(&mut self) {
        let mut active: Vec<usize> = (0..self.threads.len()).collect();
        while !active.is_empty() && !self.stop {
            active.retain(|&thread| self.turn(thread));
        }
    }

    /// Runs one turn of a thread; returns `false` if its job has ended.
    fn turn(&mut self, index: usize) -> bool {
        for _ in 0..self.threads[index].queue_depth {
            if self.flows.holds(index) {
                return true; // The thread has more I/Os to issue.
            }
            if self.stop || !self.request(index) {
                return false;
            }
        }
        true
    }

    fn by_schedule(&mut self) {
        let mut due: BinaryHeap<Reverse<(u64, usize)>> =
            (0..self.threads.len()).map(|t| Reverse((0, t))).collect();
        while let Some(Reverse((now, index))) = due.pop() {
            if self.stop || !self.request(index) {
                continue;
            }
            let pacing = &mut self.threads[index].pacing;
            let mean = 4096; // Earlier I/O lengths do not affect the order of later requests.
            let operation = pacing.next_operation(0).unwrap_or(Operation::Write);
            let next = pacing.next_arrival_ns(operation, mean).unwrap_or(0);
            debug_assert!(next >= now, "arrivals of a thread go back");
            due.push(Reverse((next, index)));
        }
    }

    /// Executes one request of a thread; returns `false` if its job has ended.
    #[expect(clippy::inline_always, reason = "a function call costs a thirtieth of a request")]
    #[inline(always)]
    fn request(&mut self, index: usize) -> bool {
        let thread = &mut self.threads[index];
        let job = &mut self.jobs[thread.job];
        if !job.may_issue(0) {
            self.flows.leave(index);
            if job.ends_all {
                self.jobs.iter_mut().for_each(|job| job.ios_left = 0);
            }
            return false;
        }
        let request = thread.next_request(self.drive, 0);
        if request.op != Operation::Flush {
            job.count_issue(request.length);
            thread.ios += 1;
            self.flows.count(index);
        }
        self.drive.fast_forward(&host::command(&request, 0, 0));
        self.requests += 1;
        if self.requests == self.look_at {
            self.look();
        }
        true
    }

    fn look(&mut self) {
        self.look_at += LOOK_EVERY;
        let fraction = self.jobs.iter().map(|job| job.fraction(0, 0)).fold(1.0, f64::min);
        let live = StepProgress::untimed(fraction, self.requests, &self.drive.counters());
        self.stop = self.observer.look(&live).is_break();
    }
}
