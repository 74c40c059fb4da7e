//! Timed simulation: a host with threads and queues drives a simulated drive in virtual time.
//!
//! A closed-loop thread keeps its queue depth outstanding. An open-loop thread follows its
//! schedule. The thread issues an I/O at the intended arrival, or as soon as its queue has a free
//! slot; response times are always measured from the intended arrival.

mod batching;
mod finish;
mod flushes;
mod ramps;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use writecliff_base::Nanos;
use writecliff_host_interface::{CommandTable, Completion, Operation};
use writecliff_measure::batches::Batches;
use writecliff_measure::schedule::ScheduleFit;
use writecliff_measure::series::{Cell, IntervalSeries};
use writecliff_measure::{Histogram, OPERATIONS, OperationOutcome};
use writecliff_workload::{IoRequest, SERIES_ROWS_KEPT, SpecError, WorkloadSpec};

use self::batching::IntervalCounters;
use self::flushes::{Flushes, Stage};
use crate::device::{Counters, DriveModel};
use crate::flow::Flows;
use crate::host::{self, Job, Load, Thread};
use crate::outcome::{Observer, StepOutcome, StepProgress};
use crate::watch::{Verdict, Watch};

/// Number of completions between two calls of the observer.
const LOOK_EVERY: u64 = 1 << 17;

#[derive(Clone, Copy)]
struct Outstanding {
    thread: u32,
    operation: Operation,
    stage: Stage,
    bytes: u32,
    issued_ns: u64,
    arrival_ns: u64,
}

impl Outstanding {
    /// Returns the entry of an issued request, with its issue and arrival times.
    #[inline]
    fn of(request: &IoRequest, thread: u32, (issued_ns, arrival_ns): (u64, u64)) -> Self {
        let (operation, bytes) = (request.op, request.length);
        let stage = if operation == Operation::Flush { Stage::Flush } else { Stage::Io };
        Self { thread, operation, stage, bytes, issued_ns, arrival_ns }
    }
}

struct Run {
    jobs: Vec<Job>,
    threads: Vec<Thread>,
    flows: Flows,
    /// Results by job and operation. I/O counts, bytes and moments of service times exclude the
    /// open interval of the series.
    results: Vec<[OperationOutcome; OPERATIONS]>,
    /// Fits of the ages of open-loop I/Os, by job.
    schedules: Vec<ScheduleFit>,
    flushes: Flushes,
    outstanding: CommandTable<Outstanding, u32>,
    /// Threads to wake, by wake-up time and thread number.
    timers: BinaryHeap<Reverse<(u64, u32)>>,
    series: IntervalSeries,
    batches: Batches,
    /// End of the open interval or the open batch, whichever is earlier.
    due_ns: u64,
    start_ns: u64,
    ios: u64,
    /// Time of the observer's last call, and the I/Os completed by then.
    looked: (u64, u64),
    /// Completed I/Os at which the observer is called next.
    look_at: u64,
    stopping: bool,
    /// Time when the series became too long, which ends the run with an error.
    series_full_ns: Option<u64>,
    counters: IntervalCounters,
    /// Drive counters at the end of the last ramp.
    before: Option<Counters>,
}

/// Runs `spec` on the drive until all jobs have ended. The drive continues from its current state
/// and is not quiesced afterwards, so steps follow each other without a gap.
pub fn run<D: DriveModel>(
    drive: &mut D,
    spec: &WorkloadSpec,
    observer: &mut dyn Observer,
) -> Result<StepOutcome, SpecError> {
    let spec = host::checked(spec, drive)?;
    let before = (drive.counters(), drive.data_placement_status());
    let mut run = Run::new(drive, &spec)?;
    run.start(drive);
    let interrupted = host::drive(drive, &mut run, observer).is_break();
    run.finish(drive, before, interrupted).map_err(|length_ns| spec.series_too_long(length_ns))
}

impl Run {
    fn new<D: DriveModel>(drive: &mut D, spec: &WorkloadSpec) -> Result<Self, SpecError> {
        let start_ns = drive.now().0;
        let cells: Vec<Cell> = (0..spec.jobs.len() as u32)
            .flat_map(|job| (0..OPERATIONS as u8).map(move |operation| Cell { job, operation }))
            .collect();
        let capacity = drive.capacity();
        let open = |job: &Job| job.is_open.then(Histogram::new);
        let mut jobs: Vec<Job> = spec.jobs.iter().map(|job| Job::new(job, start_ns)).collect();
        let all_end_ns = jobs.iter().filter(|job| job.ends_all).filter_map(|job| job.deadline_ns);
        if let Some(end_ns) = all_end_ns.min() {
            end_all(&mut jobs, end_ns);
        }
        let mut threads = host::threads(&spec.jobs, capacity, spec.seed)?;
        for (index, (job, spec_of_job)) in jobs.iter_mut().zip(&spec.jobs).enumerate() {
            job.watch = Watch::of(spec_of_job, index, spec.interval_ns);
            if let Some(depth) = job.watch.as_ref().and_then(|watch| watch.first_depth()) {
                set_depth(&mut threads, index, depth);
            }
        }
        let flows = Flows::new(&spec.jobs, threads.iter().map(|thread| thread.job));
        for thread in &mut threads {
            thread.is_plain = !flows.is_used()
                && thread.pacing.is_closed_without_pauses()
                && jobs[thread.job].cycle.is_none()
                && !spec.jobs[thread.job].dsync;
        }
        let result = |job: &Job| {
            std::array::from_fn(|_| OperationOutcome { response: open(job), ..Default::default() })
        };
        Ok(Self {
            results: jobs.iter().map(result).collect(),
            schedules: vec![ScheduleFit::default(); jobs.len()],
            flushes: Flushes::new(&spec.jobs),
            flows,
            threads,
            jobs,
            outstanding: CommandTable::default(),
            timers: BinaryHeap::new(),
            series: IntervalSeries::new(start_ns, spec.interval_ns, &cells, SERIES_ROWS_KEPT),
            batches: Batches::new(
                start_ns,
                cells.len() + spec.jobs.len(),
                batching::written(drive),
            ),
            due_ns: 0,
            start_ns,
            ios: 0,
            looked: (start_ns, 0),
            look_at: LOOK_EVERY,
            stopping: false,
            series_full_ns: None,
            counters: IntervalCounters::of(drive),
            before: None,
        })
    }

    fn start<D: DriveModel>(&mut self, drive: &mut D) {
        for index in 0..self.threads.len() {
            let begins = self.start_ns.saturating_add(self.threads[index].pacing.start_ns);
            if begins > self.start_ns {
                self.sleep(index, begins);
            } else {
                self.issue(drive, index, self.start_ns);
            }
        }
        if self.outstanding.in_flight() == 0 {
            // No I/O has started, so the drive's idle time starts now.
            drive.idle_until(Nanos(self.start_ns));
        }
    }

    #[inline(never)]
    fn completed_otherwise<D: DriveModel>(&mut self, drive: &mut D, tag: u32, now: u64) {
        let io = self.outstanding.get(tag);
        let outstanding = *io;
        let job = self.threads[outstanding.thread as usize].job;
        if outstanding.stage == Stage::Io {
            self.count(drive, tag, &outstanding, now);
        } else if self.flushes.ends_stage(drive, (tag, io), job, now) {
            return;
        }
        let thread = &mut self.threads[outstanding.thread as usize];
        if outstanding.operation != Operation::Flush {
            let was_full = thread.pause.is_none() && thread.outstanding == thread.queue_depth;
            let pause = thread.pacing.pause_after_completion(outstanding.operation, was_full);
            thread.pause = thread.pause.or(pause);
        }
        thread.outstanding -= 1;
        self.jobs[job].outstanding -= 1;
        self.outstanding.remove(tag);
        self.issue_after(drive, outstanding.thread as usize, now);
    }

    /// Counts a completed I/O.
    fn count<D: DriveModel>(&mut self, drive: &D, tag: u32, io: &Outstanding, now: u64) {
        let thread = &mut self.threads[io.thread as usize];
        let job = thread.job;
        thread.ios += 1;
        self.ios += 1;
        self.jobs[job].last_completion_ns = now;
        debug_assert!(io.arrival_ns <= io.issued_ns, "an I/O is issued before it arrives");
        let service = now - io.issued_ns;
        if now > self.due_ns && self.end_periods(drive, job, now) {
            return;
        }
        let cell = job * OPERATIONS + io.operation as usize;
        self.series.record(cell, u64::from(io.bytes), service);
        let result = &mut self.results[job][io.operation as usize];
        result.service.record_bucket(service);
        if let Some(spent) = drive.time_by_cause() {
            let spent = self.flushes.with_spent(tag, *spent);
            result.causes.get_or_insert_default().record(service, &spent);
        }
        if let Some(response) = &mut result.response {
            let age_ns = now - io.arrival_ns;
            response.record(age_ns);
            self.series.record_response(cell, age_ns);
            self.schedules[job].record(io.arrival_ns - self.start_ns, age_ns);
        }
    }

    /// Adds the figures of the open interval to the results. This function must be called before
    /// the interval is closed.
    fn add_open_interval(&mut self) {
        let results = self.results.iter_mut().flatten();
        for (result, (bytes, latencies)) in results.zip(self.series.open_cells()) {
            result.ios += latencies.count();
            result.bytes += bytes;
            result.service.add_moments(latencies);
        }
    }

    /// Issues a thread's next requests after a completion.
    fn issue_after<D: DriveModel>(&mut self, drive: &mut D, thread: usize, now: u64) {
        let job = &self.jobs[self.threads[thread].job];
        if job.ends_all && job.outstanding == 0 && !job.may_issue(now) {
            end_all(&mut self.jobs, now);
            self.timers.clear(); // All timers belong to threads of ended jobs.
        }
        self.issue(drive, thread, now);
    }

    /// Closes the intervals and batches that end before `now`, when an I/O of a job completes.
    /// Returns `true` if the I/O ends the job's ramp, and therefore belongs to the ramp.
    #[cold]
    fn end_periods<D: DriveModel>(&mut self, drive: &D, job: usize, now: u64) -> bool {
        if now > self.batches.end_ns() {
            let totals = batching::totals(&self.results, &self.series, &self.flushes);
            self.batches.close(now, totals, batching::written(drive));
        }
        if self.series.is_due(now) {
            self.end_intervals(drive, now);
        }
        let ends_ramp = self.jobs[job].ramp_end_ns.is_some_and(|end| now > end);
        if ends_ramp {
            self.end_ramp(drive, job, now);
        }
        let ramps = self.jobs.iter().filter_map(|job| job.ramp_end_ns);
        self.due_ns = ramps.fold(self.series.end_ns().min(self.batches.end_ns()), u64::min);
        ends_ramp
    }

    fn end_intervals<D: DriveModel>(&mut self, drive: &D, now: u64) {
        if !self.series.has_room(now) {
            (self.series_full_ns, self.stopping) = (self.series_full_ns.or(Some(now)), true);
            self.timers.clear();
            return;
        }
        self.add_open_interval();
        let counters = &mut self.counters;
        self.series.advance(now, |end| counters.next(drive, end));
        for index in 0..self.jobs.len() {
            let job = &mut self.jobs[index];
            if job.ended_by.is_some() {
                continue;
            }
            let Some(watch) = &mut job.watch else { continue };
            match watch.judge(self.series.columns(), &self.results[index]) {
                Verdict::Continue => {}
                Verdict::Depth(depth) => set_depth(&mut self.threads, index, depth),
                Verdict::Afresh(depth) => {
                    set_depth(&mut self.threads, index, depth);
                    job.began_ns = self.series.opened_ns();
                    self.measure_afresh(drive, index, now);
                }
                Verdict::End(reason) => {
                    (job.ended_by, job.deadline_ns) = (Some(reason), Some(now));
                }
            }
        }
    }

    /// Discards the results of a job.
    fn measure_afresh<D: DriveModel>(&mut self, drive: &D, job: usize, now: u64) {
        self.schedules[job] = ScheduleFit::default();
        for result in &mut self.results[job] {
            let response = result.response.as_ref().map(|_| Histogram::new());
            *result = OperationOutcome { response, ..Default::default() };
        }
        self.flushes.clear(job);
        let totals = batching::totals(&self.results, &self.series, &self.flushes);
        self.batches.restart(now, totals, batching::written(drive));
    }

    fn sleep(&mut self, thread: usize, until_ns: u64) {
        debug_assert!(!self.threads[thread].asleep, "a thread has one timer");
        self.threads[thread].asleep = true;
        self.timers.push(Reverse((until_ns, thread as u32)));
    }

    /// Issues all I/Os that a thread may issue at `now`.
    #[inline]
    fn issue<D: DriveModel>(&mut self, drive: &mut D, index: usize, now: u64) {
        if self.stopping || self.threads[index].asleep {
            return;
        }
        if self.threads[index].pacing.is_open() {
            self.issue_by_schedule(drive, index, now);
        } else if self.flows.is_used() {
            self.issue_in_flows(drive, index, now);
        } else {
            self.issue_closed::<false, D>(drive, index, now);
        }
    }

    /// Issues requests of this thread, and of threads that were held until this thread had issued
    /// more.
    #[cold]
    fn issue_in_flows<D: DriveModel>(&mut self, drive: &mut D, index: usize, now: u64) {
        self.issue_closed::<true, D>(drive, index, now);
        while let Some(thread) = self.flows.released() {
            if !self.threads[thread].asleep {
                self.issue_closed::<true, D>(drive, thread, now);
            }
        }
    }

    #[inline]
    fn issue_closed<const FLOWS: bool, D: DriveModel>(
        &mut self,
        drive: &mut D,
        index: usize,
        now: u64,
    ) {
        while self.threads[index].outstanding < self.threads[index].queue_depth {
            let thread = &mut self.threads[index];
            let job = &self.jobs[thread.job];
            if !job.may_issue(now) {
                self.flows.leave(index);
                self.pause(index, now);
                return;
            }
            if FLOWS && self.flows.holds(index) {
                return;
            }
            if let Some(burst) = job.paused_until(now) {
                // A pause that lasts until the job ends requires no wake-up.
                if job.may_issue(burst) {
                    self.sleep(index, burst);
                } else {
                    self.flows.leave(index);
                }
                return;
            }
            if thread.pause.is_some() {
                self.pause(index, now);
                return;
            }
            let request = thread.requests.next(drive);
            if request.op != Operation::Flush {
                let is_full = thread.outstanding + 1 == thread.queue_depth;
                thread.pause = thread.pacing.pause_after_issue(request.op, is_full);
                if FLOWS {
                    self.flows.count(index);
                }
            }
            self.submit(drive, index, &request, now, now);
        }
    }

    /// Issues the due requests of a thread that follows a schedule.
    fn issue_by_schedule<D: DriveModel>(&mut self, drive: &mut D, index: usize, now: u64) {
        while self.threads[index].outstanding < self.threads[index].queue_depth {
            let thread = &mut self.threads[index];
            if thread.pause.is_some() {
                self.pause(index, now);
                return;
            }
            let (arrival, request) = thread.next_arrival(drive, self.start_ns, now);
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

    /// Starts a thread's pause once the thread has no outstanding I/Os. As in fio, the pause after
    /// the last I/O of a job belongs to the job.
    fn pause(&mut self, index: usize, now: u64) {
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

    #[inline(never)]
    fn submit<D: DriveModel>(
        &mut self,
        drive: &mut D,
        index: usize,
        request: &IoRequest,
        now: u64,
        arrival_ns: u64,
    ) {
        let thread = &mut self.threads[index];
        debug_assert!(thread.outstanding < thread.queue_depth, "the queue of a thread is full");
        thread.outstanding += 1;
        let job_index = thread.job;
        let job = &mut self.jobs[job_index];
        job.outstanding += 1;
        if request.op != Operation::Flush {
            job.count_issue(request.length);
        }
        debug_assert!(request.offset + u64::from(request.length) <= drive.capacity().0);
        let mut outstanding = Outstanding::of(request, index as u32, (now, arrival_ns));
        if request.op == Operation::Write && self.flushes.follow_writes_of(job_index) {
            outstanding.stage = Stage::BeforeFlush;
        }
        let tag = self.outstanding.insert(outstanding);
        drive.submit(Nanos(now), host::command(request, index as u32, tag));
    }
}

impl<D: DriveModel> Load<D> for Run {
    #[expect(clippy::inline_always, reason = "once for each I/O")]
    #[inline(always)]
    fn completed(&mut self, drive: &mut D, completion: Completion) {
        let (tag, now) = (completion.tag, completion.at.0);
        let io = self.outstanding.get(tag);
        debug_assert!(now >= io.issued_ns, "a command completes before it was issued");
        // The flush of a write with `dsync` has the tag of the write.
        debug_assert!(
            completion.operation == io.operation || completion.operation == Operation::Flush
        );
        let thread = &mut self.threads[io.thread as usize];
        let job = &mut self.jobs[thread.job];
        // In nearly all cases no interval or batch ends and the thread replaces the request, so the
        // number of outstanding requests does not change.
        let is_replaced = io.stage == Stage::Io
            && now <= self.due_ns
            && thread.is_plain
            && thread.outstanding == thread.queue_depth
            && job.may_issue(now)
            && !self.stopping;
        if !is_replaced {
            self.completed_otherwise(drive, tag, now);
            return;
        }
        self.ios += 1;
        thread.ios += 1;
        job.last_completion_ns = now;
        let service = now - io.issued_ns;
        let cell = thread.job * OPERATIONS + io.operation as usize;
        self.series.record(cell, u64::from(io.bytes), service);
        let result = &mut self.results.as_flattened_mut()[cell];
        result.service.record_bucket(service);
        if let Some(spent) = drive.time_by_cause() {
            let spent = self.flushes.with_spent(tag, *spent);
            result.causes.get_or_insert_default().record(service, &spent);
        }
        let request = thread.requests.next(drive);
        if request.op != Operation::Flush {
            job.count_issue(request.length);
        }
        debug_assert!(request.offset + u64::from(request.length) <= drive.capacity().0);
        *io = Outstanding::of(&request, io.thread, (now, now));
        drive.submit(Nanos(now), host::command(&request, io.thread, tag));
    }

    #[inline]
    fn wakes_ns(&self) -> u64 {
        self.timers.peek().map_or(u64::MAX, |Reverse((time, _))| *time)
    }

    fn wake(&mut self, drive: &mut D, now: u64) {
        if let Some(Reverse((time, thread))) = self.timers.pop() {
            debug_assert!(time == now && self.threads[thread as usize].asleep);
            self.threads[thread as usize].asleep = false;
            self.issue(drive, thread as usize, now);
        }
    }

    #[inline]
    fn is_done(&self) -> bool {
        self.outstanding.in_flight() == 0 && self.timers.is_empty()
    }

    #[inline]
    fn is_looked_at(&self) -> bool {
        self.ios >= self.look_at
    }

    #[cold]
    fn progress(&mut self, drive: &D) -> StepProgress {
        let now = drive.now().0;
        let (last_ns, last_ios) = std::mem::replace(&mut self.looked, (now, self.ios));
        self.look_at = self.ios + LOOK_EVERY;
        let seconds = (now - last_ns) as f64 / 1e9;
        debug_assert!(
            now >= last_ns && self.ios >= last_ios,
            "the observer's totals would decrease"
        );
        let fractions = self.jobs.iter().map(|job| job.fraction(self.start_ns, now));
        let c = self.series.columns();
        StepProgress {
            fraction: fractions.fold(1.0, f64::min),
            elapsed_ns: now - self.start_ns,
            ios: self.ios,
            iops: if seconds > 0.0 { (self.ios - last_ios) as f64 / seconds } else { 0.0 },
            waf: c.waf.last().copied().filter(|waf| !waf.is_nan()),
            counters: drive.counters(),
        }
    }

    #[cold]
    fn stop(&mut self) {
        (self.stopping, self.look_at) = (true, u64::MAX);
        self.timers.clear();
    }
}

/// Ends all jobs at `end_ns`, unless they end earlier.
fn end_all(jobs: &mut [Job], end_ns: u64) {
    for job in jobs {
        job.deadline_ns =
            Some(job.deadline_ns.map_or(end_ns, |deadline_ns| deadline_ns.min(end_ns)));
    }
}

fn set_depth(threads: &mut [Thread], job: usize, depth: u32) {
    threads.iter_mut().filter(|t| t.job == job).for_each(|t| t.queue_depth = depth);
}
