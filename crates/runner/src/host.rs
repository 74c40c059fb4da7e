//! The host: its loop in virtual time, and jobs and their threads, with their outstanding I/Os and
//! next actions.

use std::ops::ControlFlow;

use writecliff_base::{Bytes, Nanos, StreamId};
use writecliff_host_interface::{Command, Completion, Content, Drive, Operation};
use writecliff_workload::{
    IoRequest, JobSpec, Limits, SpecError, ThreadGenerator, ThreadPacing, WorkloadSpec,
};

use crate::device::DriveModel;
use crate::outcome::{Observer, StepProgress};
use crate::watch::{EndedBy, Watch};

/// A load on a drive of type `D`, which has issued its first commands.
pub(crate) trait Load<D> {
    /// Handles the completion of a command.
    fn completed(&mut self, drive: &mut D, completion: Completion);

    /// Returns the time of the load's next action that does not wait for a completion; `u64::MAX`
    /// if there is none.
    #[inline]
    fn wakes_ns(&self) -> u64 {
        u64::MAX
    }

    /// Performs the action that is due at `now_ns`.
    fn wake(&mut self, _drive: &mut D, _now_ns: u64) {}

    /// Returns `true` if the load has no outstanding commands and issues no more.
    fn is_done(&self) -> bool;

    /// Returns `true` if the observer must be called.
    fn is_looked_at(&self) -> bool;

    /// Returns the progress for the observer, until the next call.
    fn progress(&mut self, drive: &D) -> StepProgress;

    /// Issues no further commands, and needs no observer.
    fn stop(&mut self);
}

/// Drives `drive` with `load` to the end of the load, or until the observer stops it; outstanding
/// commands then complete.
#[inline]
pub(crate) fn drive<D: Drive, L: Load<D>>(
    drive: &mut D,
    load: &mut L,
    observer: &mut dyn Observer,
) -> ControlFlow<()> {
    let mut verdict = ControlFlow::Continue(());
    loop {
        let wakes_ns = load.wakes_ns();
        match drive.step(Nanos(wakes_ns)) {
            Some(completion) => load.completed(drive, completion),
            None if wakes_ns == u64::MAX => return verdict,
            None => load.wake(drive, wakes_ns),
        }
        if load.is_looked_at() {
            verdict = observer.look(&load.progress(drive));
            if verdict.is_break() {
                load.stop();
            }
        }
        if load.is_done() {
            return verdict;
        }
    }
}

/// Number of requests drawn per batch.
const BATCH: usize = 32;

/// Requests of a thread, generated one or two batches early and announced to the drive, so that
/// their map entries are in the cache when they are needed. Batching lets the address translations
/// (TLB misses) of the announcements overlap. The generation time does not affect the requests.
pub(crate) struct Requests {
    generator: ThreadGenerator,
    /// Two batches: when one is used up, it is regenerated while the other is in use.
    drawn: [IoRequest; 2 * BATCH],
    next: usize,
    /// `true` if requests are generated when they are issued, and not announced.
    on_demand: bool,
}

impl Requests {
    fn new(mut generator: ThreadGenerator, is_steered: bool) -> Self {
        let on_demand = is_steered || generator.is_shared();
        let none = IoRequest {
            op: Operation::Flush,
            offset: 0,
            length: 0,
            content: Content::INCOMPRESSIBLE,
            stream: StreamId(0),
        };
        let drawn = std::array::from_fn(|_| if on_demand { none } else { generator.next() });
        // Without batching, each request is the last of its batch.
        let next = if on_demand { BATCH - 1 } else { 0 };
        Self { generator, drawn, next, on_demand }
    }

    #[inline]
    pub(crate) fn next<D: DriveModel>(&mut self, drive: &D) -> IoRequest {
        debug_assert!(self.next < 2 * BATCH);
        let request = self.drawn[self.next % (2 * BATCH)];
        self.next += 1;
        if self.next.is_multiple_of(BATCH) {
            return self.draw(drive).unwrap_or(request);
        }
        request
    }

    /// Regenerates the batch before `next`. Without batching, generates and returns a single
    /// request.
    #[cold]
    fn draw<D: DriveModel>(&mut self, drive: &D) -> Option<IoRequest> {
        if self.on_demand {
            self.next = BATCH - 1;
            return Some(self.generator.next());
        }
        let used = &mut self.drawn[self.next - BATCH..self.next];
        self.generator.fill(used);
        for request in used {
            drive.announce(request.offset);
        }
        self.next %= 2 * BATCH;
        None
    }
}

pub(crate) struct Thread {
    pub job: usize,
    pub requests: Requests,
    pub pacing: ThreadPacing,
    pub outstanding: u32,
    pub queue_depth: u32,
    /// Next request of an open loop, and its intended arrival.
    pub next: Option<(u64, IoRequest)>,
    /// Pause that starts once the thread has no outstanding I/Os.
    pub pause: Option<u64>,
    /// `true` if a timer will wake the thread.
    pub asleep: bool,
    /// `true` if the timed simulation may replace each completed request with another immediately:
    /// the loop is closed, and only the end of the job holds requests back.
    pub is_plain: bool,
    pub ios: u64,
}

impl Thread {
    /// Returns the next request at time `now_ns` of the step. If reads and writes have separate
    /// rates, the request has the operation that is due.
    #[inline]
    pub(crate) fn next_request<D: DriveModel>(&mut self, drive: &D, now_ns: u64) -> IoRequest {
        if let Some(operation) = self.pacing.next_operation(now_ns) {
            self.requests.generator.steer(operation);
        }
        self.requests.next(drive)
    }

    /// Returns the next request of an open loop and its intended arrival in device time. The
    /// request remains the next one until `next` is cleared.
    pub(crate) fn next_arrival<D: DriveModel>(
        &mut self,
        drive: &D,
        start_ns: u64,
        now: u64,
    ) -> (u64, IoRequest) {
        if let Some(next) = self.next {
            return next;
        }
        let since_start = now - start_ns;
        let request = self.next_request(drive, since_start);
        // A flush belongs to the preceding write because the rate counts I/Os.
        let due = if request.op == Operation::Flush {
            since_start
        } else {
            self.pacing.next_arrival_ns(request.op, request.length).unwrap_or(0)
        };
        *self.next.insert((start_ns.saturating_add(due), request))
    }
}

/// End conditions of a job, and what remains until each condition.
pub(crate) struct Job {
    pub name: String,
    /// Start of the time covered by the results, in device time.
    pub began_ns: u64,
    /// Earliest end of the ramp in device time; `None` once the ramp has ended.
    pub ramp_end_ns: Option<u64>,
    /// Duration from the end of the ramp.
    pub duration_ns: Option<u64>,
    /// Deadline in device time; `None` during a ramp.
    pub deadline_ns: Option<u64>,
    /// Bytes and I/Os that the job may still issue; `u64::MAX` if there is no limit.
    pub bytes_left: u64,
    pub ios_left: u64,
    pub bytes_total: Option<u64>,
    pub ios_total: Option<u64>,
    /// Number of outstanding I/Os.
    pub outstanding: u64,
    pub last_completion_ns: u64,
    pub is_open: bool,
    /// Bursts, and the pauses between bursts.
    pub cycle: Option<Cycle>,
    /// End conditions that depend on measurements; `None` in fast-forward.
    pub watch: Option<Box<Watch>>,
    /// `true` if all jobs end with this job.
    pub ends_all: bool,
    pub ended_by: Option<EndedBy>,
}

/// Bursts of I/O with pauses, relative to the job's start.
pub(crate) struct Cycle {
    begin: Nanos,
    burst: Nanos,
    period: Nanos,
}

impl Cycle {
    fn of(spec: &JobSpec, start_ns: u64) -> Option<Self> {
        (spec.pause_ns > 0).then(|| Self {
            begin: Nanos(start_ns.saturating_add(spec.start_delay_ns)),
            burst: Nanos(spec.burst_ns),
            period: Nanos(spec.burst_ns.saturating_add(spec.pause_ns)),
        })
    }

    /// Returns the start of the next burst during a pause.
    fn next_burst_ns(&self, now_ns: u64) -> Option<u64> {
        let since = (now_ns - self.begin.0) % self.period.0;
        (since >= self.burst.0).then(|| now_ns + (self.period.0 - since))
    }
}

impl Job {
    pub(crate) fn new(spec: &JobSpec, start_ns: u64) -> Self {
        let began_ns = start_ns.saturating_add(spec.start_delay_ns);
        let deadline_ns = spec.duration_ns.map(|duration| began_ns.saturating_add(duration));
        Self {
            name: spec.name.clone(),
            began_ns,
            ramp_end_ns: (spec.ramp_ns > 0).then(|| began_ns.saturating_add(spec.ramp_ns)),
            duration_ns: spec.duration_ns,
            deadline_ns: deadline_ns.filter(|_| spec.ramp_ns == 0),
            bytes_left: spec.volume_bytes.unwrap_or(u64::MAX),
            ios_left: spec.ios.unwrap_or(u64::MAX),
            bytes_total: spec.volume_bytes,
            ios_total: spec.ios,
            outstanding: 0,
            last_completion_ns: start_ns,
            is_open: spec.is_open(),
            cycle: Cycle::of(spec, start_ns),
            watch: None,
            ends_all: spec.ends_all,
            ended_by: None,
        }
    }

    /// Returns the start of the next burst if the job is in a pause.
    #[inline]
    pub(crate) fn paused_until(&self, now_ns: u64) -> Option<u64> {
        self.cycle.as_ref().and_then(|cycle| cycle.next_burst_ns(now_ns))
    }

    /// Returns `true` if the job may issue another I/O at `now`.
    #[inline]
    pub(crate) fn may_issue(&self, now_ns: u64) -> bool {
        self.deadline_ns.is_none_or(|d| now_ns < d) && self.bytes_left > 0 && self.ios_left > 0
    }

    #[inline]
    pub(crate) fn count_issue(&mut self, bytes: u32) {
        debug_assert!(self.bytes_left > 0 && self.ios_left > 0, "the job has ended");
        self.bytes_left = self.bytes_left.saturating_sub(u64::from(bytes));
        self.ios_left -= 1;
    }

    /// Returns the job's progress towards its nearest end, 0 to 1.
    pub(crate) fn fraction(&self, start_ns: u64, now_ns: u64) -> f64 {
        let share = |left: u64, total: Option<u64>| match total {
            Some(total) if total > 0 => 1.0 - left as f64 / total as f64,
            _ => 0.0,
        };
        debug_assert!(self.bytes_total.is_none_or(|total| self.bytes_left <= total));
        debug_assert!(self.ios_total.is_none_or(|total| self.ios_left <= total));
        let time = self.deadline_ns.map_or(0.0, |deadline| {
            (now_ns - start_ns) as f64 / (deadline - start_ns).max(1) as f64
        });
        let volume = share(self.bytes_left, self.bytes_total);
        let ios = share(self.ios_left, self.ios_total);
        time.max(volume).max(ios).min(1.0)
    }
}

/// Resolves and validates the workload for this drive.
pub(crate) fn checked<D: DriveModel>(
    spec: &WorkloadSpec,
    drive: &D,
) -> Result<WorkloadSpec, SpecError> {
    let capacity = drive.capacity();
    spec.validate(&Limits { capacity, streams: drive.streams() })?;
    if let Some(why) = drive.refuses_trim()
        && let Some(job) = spec.jobs.iter().find(|job| job.trims_blocks())
    {
        return Err(SpecError::Workload(format!("job '{}' trims; {why}", job.name)));
    }
    Ok(spec.resolved(capacity))
}

/// Returns the threads of all jobs, ordered by job and thread number.
pub(crate) fn threads(
    jobs: &[JobSpec],
    capacity: Bytes,
    seed: u64,
) -> Result<Vec<Thread>, SpecError> {
    let mut threads = Vec::new();
    let mut zones = None;
    for (index, spec) in jobs.iter().enumerate() {
        for thread in 0..spec.threads {
            let mut generator = ThreadGenerator::new(spec, capacity, seed, index as u32, thread)?;
            generator.share_zones(&mut zones);
            threads.push(Thread {
                job: index,
                requests: Requests::new(generator, spec.rate_read_pct.is_some()),
                pacing: ThreadPacing::new(spec, seed, index as u32, thread),
                outstanding: 0,
                queue_depth: spec.queue_depth,
                next: None,
                pause: None,
                asleep: false,
                is_plain: false,
                ios: 0,
            });
        }
    }
    Ok(threads)
}

/// Converts a request to a drive command. Each thread uses a separate submission queue, as on
/// actual hosts.
#[inline]
pub(crate) fn command(request: &IoRequest, queue: u32, tag: u32) -> Command {
    let IoRequest { op: operation, offset, length, content, stream } = *request;
    debug_assert!(length > 0 || operation == Operation::Flush, "an I/O without data");
    Command { operation, offset, length, content, stream, queue, tag }
}
