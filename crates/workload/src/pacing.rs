//! Pacing, which determines when a thread issues its next I/O.
//!
//! A job with a rate is an *open* loop. Arrivals are fixed in advance and do not wait for the
//! drive, and response times are measured from the intended arrival, so a stall appears in every
//! I/O that it delays. Measuring from the issue time instead is known as coordinated omission. All
//! other jobs are *closed* loops: a thread issues an I/O whenever it has fewer I/Os outstanding
//! than its queue depth.
//!
//! The T threads of a job divide its rate. Linear arrivals: the job's arrival number i is at time i
//! / rate and belongs to thread i mod T. Poisson arrivals: each thread is a Poisson process with
//! rate / T, and together they form one process with the full rate. If the rate is in bytes per
//! second, each I/O advances the schedule by the time that its bytes take at that rate.
//!
//! Think time: after every n I/Os, the thread waits until its outstanding I/Os complete, idles, and
//! continues (like fio's `thinktime`). Think time counts completions; completions that a pause
//! waits for count towards the next pause. A thread may pause when its queue was full, or after an
//! I/O that leaves room in the queue (fio's `thinktime_blocks_type=complete`). In an open loop, no
//! I/O arrives while the thread is idle. I/Os that came due meanwhile arrive when the thread
//! continues, so that the rate catches up. If the rate ignores think time, the schedule is shifted:
//! its next I/O is due when the thread continues.
//!
//! Reads and writes with separate rates each follow a separate schedule. If both are late, the
//! job's mix selects the next operation, as in fio; otherwise, the operation that is due first
//! comes next.
//!
//! A job that replays a log or a model is an open loop with the times of the log or model.
//!
//! Known deviations: Rates are stored exactly in millionths. Linear arrivals are therefore exact
//! rationals rounded down to nanoseconds, and never drift. Poisson gaps use the platform's `ln`
//! function. The schedules are validated by exact arrival times after 10^6 I/Os, and by the mean,
//! the variance and a Kolmogorov-Smirnov test of the gaps.

use writecliff_base::Prng;
use writecliff_host_interface::Operation;

use crate::generator::{ARRIVALS_LABEL, thread_random};
use crate::io_log::arrivals_ns;
use crate::spec::{Arrival, JobSpec};

/// Nanoseconds per second, in millionths, which is the numerator for rates in millionths.
const NUMERATOR: u128 = 1_000_000_000 * 1_000_000;

/// Schedule of one thread.
#[derive(Clone, Debug)]
pub struct ThreadPacing {
    /// Start of the thread, relative to the start of the step. No arrival is earlier than this
    /// time.
    pub start_ns: u64,
    think_ns: u64,
    think_after: u64,
    /// Number of I/Os that count towards the next pause.
    counted: u64,
    schedule: Option<Schedule>,
    /// Schedule of writes, if they have a separate schedule.
    writes: Option<Schedule>,
    mix: Prng,
    reads: f64,
    moves_schedule: bool,
    /// End of the last think time, relative to the start of the step.
    idle_until_ns: u64,
}

/// Arrival schedule of an open loop: the next I/O arrives at `ns + rest / denominator`.
#[derive(Clone, Debug)]
struct Schedule {
    ns: u64,
    /// First arrival, relative to the start of the thread.
    first_ns: u64,
    gaps: Gaps,
    /// Shortest mean time between two I/Os.
    gap_ns: u64,
}

#[derive(Clone, Debug)]
enum Gaps {
    Linear(Linear),
    Poisson(Box<Poisson>),
    Logged(Logged),
}

/// Endlessly repeated arrivals of a log.
#[derive(Clone, Debug)]
struct Logged {
    times_ns: Vec<u64>,
    next: usize,
}

/// Advances in exact steps of `whole + part / denominator` nanoseconds (Bresenham's line
/// algorithm).
#[derive(Clone, Debug)]
struct Linear {
    rest: u64,
    denominator: u64,
    per_byte: bool,
    /// Number of threads T; each thread takes every T-th arrival.
    factor: u128,
    /// Cached step for the last length, because most jobs have one size and 128-bit division is
    /// slow.
    length: u32,
    whole: u64,
    part: u64,
}

#[derive(Clone, Debug)]
struct Poisson {
    random: Prng,
    /// Fraction of a nanosecond carried over to the next arrival.
    rest: f64,
    /// Mean time between arrivals of this thread in ns, per I/O or per byte.
    mean_ns: f64,
    per_byte: bool,
}

impl ThreadPacing {
    /// Creates the schedule of thread `thread_index` of job `job_index` in a workload with seed
    /// `seed`. The job must have passed [`crate::WorkloadSpec::check`].
    pub fn new(job: &JobSpec, seed: u64, job_index: u32, thread_index: u32) -> Self {
        let rate = job.rate_iops.or(job.rate_bytes_per_s);
        let mut random = thread_random(seed, job_index, thread_index, ARRIVALS_LABEL);
        let at_rate = |rate: f64, random: &Prng| match job.arrival {
            Arrival::Linear => Schedule::linear(job, rate, thread_index),
            Arrival::Poisson => Schedule::poisson(job, rate, random.clone()),
        };
        let share = job.rate_read_pct.map(|pct| pct / 100.0);
        let schedule = rate.map(|rate| at_rate(share.map_or(rate, |share| rate * share), &random));
        let writes = rate.zip(share).map(|(rate, share)| {
            random.next_u64(); // Writes use a different sequence of gaps from reads.
            at_rate(rate * (1.0 - share), &random)
        });
        let logged = job.log.as_ref().filter(|log| !log.times_ns.is_empty());
        let schedule = schedule
            .or_else(|| logged.map(|log| Schedule::logged(arrivals_ns(log))))
            .or_else(|| {
                let model = job.model.as_ref()?;
                Some(Schedule::logged(arrivals_ns(&model.expand(0))))
            });
        let mut pacing = Self {
            start_ns: job.start_delay_ns,
            think_ns: job.think_ns,
            think_after: job.think_after_ios,
            counted: 0,
            schedule,
            writes,
            mix: random,
            reads: job.read_pct / 100.0,
            moves_schedule: job.rate_ignores_think,
            idle_until_ns: 0,
        };
        for schedule in pacing.schedule.iter_mut().chain(&mut pacing.writes) {
            schedule.first_ns = schedule.ns;
            schedule.ns = schedule.ns.saturating_add(job.start_delay_ns);
        }
        pacing
    }

    /// Returns `true` if the job is an open loop, whose arrivals follow a rate.
    pub fn is_open(&self) -> bool {
        self.schedule.is_some()
    }

    /// Returns `true` if the job is a closed loop whose threads never pause.
    pub fn is_closed_without_pauses(&self) -> bool {
        self.schedule.is_none() && self.think_ns == 0
    }

    /// Returns the operation of the next I/O at time `now_ns` of the step, if reads and writes have
    /// separate schedules.
    #[inline]
    pub fn next_operation(&mut self, now_ns: u64) -> Option<Operation> {
        let (reads, writes) = self.schedule.as_ref().zip(self.writes.as_ref())?;
        let both_are_due = reads.ns.max(writes.ns) <= now_ns;
        let is_write =
            if both_are_due { self.mix.unit() >= self.reads } else { writes.ns < reads.ns };
        Some(if is_write { Operation::Write } else { Operation::Read })
    }

    /// Returns the intended arrival of the thread's next I/O, relative to the start of the step,
    /// and advances its schedule by an I/O of `length` bytes. Returns `None` in a closed loop.
    #[inline]
    pub fn next_arrival_ns(&mut self, operation: Operation, length: u32) -> Option<u64> {
        let idle_until_ns = self.idle_until_ns;
        let schedule = self.schedule_of(operation)?;
        let arrival = schedule.ns;
        schedule.advance(length);
        Some(arrival.max(idle_until_ns))
    }

    fn schedule_of(&mut self, operation: Operation) -> Option<&mut Schedule> {
        match operation {
            Operation::Write if self.writes.is_some() => self.writes.as_mut(),
            _ => self.schedule.as_mut(),
        }
    }

    /// Returns `Some(ns)` to request a pause, in which case the caller must wait until all
    /// outstanding I/Os of the thread complete, idle for `ns`, and call [`Self::idle_until`]. This
    /// function must be called once for each issued I/O; `is_full` is `true` if the I/O filled the
    /// queue.
    #[inline]
    pub fn pause_after_issue(&mut self, operation: Operation, is_full: bool) -> Option<u64> {
        if self.think_ns == 0 || is_full { None } else { self.pause_if_counted(operation) }
    }

    /// Requests pauses, like [`Self::pause_after_issue`]. This function must be called once for
    /// each completed I/O; `was_full` is `true` if the queue was full and the thread was not about
    /// to pause.
    #[inline]
    pub fn pause_after_completion(&mut self, operation: Operation, was_full: bool) -> Option<u64> {
        if self.think_ns == 0 {
            return None;
        }
        self.counted += 1;
        if was_full { self.pause_if_counted(operation) } else { None }
    }

    fn pause_if_counted(&mut self, operation: Operation) -> Option<u64> {
        if self.counted < self.think_after {
            return None;
        }
        self.counted = 0;
        let think_ns = self.think_ns;
        if self.moves_schedule
            && let Some(schedule) = self.schedule_of(operation)
        {
            // The next I/O is due at the end of the pause rather than one gap after the last I/O.
            let gap_ns = if schedule.gap_ns <= think_ns { schedule.gap_ns } else { 0 };
            schedule.ns = schedule.ns.saturating_add(think_ns - gap_ns);
        }
        Some(think_ns)
    }

    /// Restarts the schedules at `ns`, relative to the start of the step.
    pub fn restart(&mut self, ns: u64) {
        for schedule in self.schedule.iter_mut().chain(&mut self.writes) {
            schedule.ns = ns.saturating_add(schedule.first_ns);
        }
    }

    /// Delays all arrivals until `ns`, the end of a pause, relative to the start of the step.
    pub fn idle_until(&mut self, ns: u64) {
        debug_assert!(ns >= self.idle_until_ns, "pauses follow each other");
        self.idle_until_ns = ns;
    }
}

impl Schedule {
    fn linear(job: &JobSpec, rate: f64, thread: u32) -> Self {
        let per_byte = job.rate_bytes_per_s.is_some();
        let mut line = Linear {
            rest: 0,
            denominator: (rate * 1e6).round() as u64,
            per_byte,
            factor: 1,
            length: 0,
            whole: 0,
            part: 0,
        };
        // Thread t starts with the job's arrival number t. For byte rates, arrivals are counted in
        // average block sizes.
        let bytes = if per_byte { job.mean_block_bytes().round() as u128 } else { 1 };
        let phase = NUMERATOR * u128::from(thread) * bytes;
        let ns = u64::try_from(phase / u128::from(line.denominator)).unwrap_or(u64::MAX);
        line.rest = (phase % u128::from(line.denominator)) as u64;
        line.factor = u128::from(job.threads);
        line.set_length(smallest_bytes(job));
        let gap_ns = line.whole;
        Self { ns, first_ns: 0, gaps: Gaps::Linear(line), gap_ns }
    }

    fn poisson(job: &JobSpec, rate: f64, random: Prng) -> Self {
        let per_byte = job.rate_bytes_per_s.is_some();
        let mean_ns = 1e9 * f64::from(job.threads) / rate;
        let poisson = Poisson { random, rest: 0.0, mean_ns, per_byte };
        let gaps = Gaps::Poisson(Box::new(poisson));
        let mut schedule = Self { ns: 0, first_ns: 0, gaps, gap_ns: 0 };
        // The arrival process is stationary, so the first arrival also follows a random gap.
        schedule.advance(job.mean_block_bytes().round() as u32);
        schedule
    }

    fn logged(times_ns: Vec<u64>) -> Self {
        debug_assert!(times_ns.is_sorted(), "arrivals would go back");
        let ns = times_ns[0];
        let gaps = Gaps::Logged(Logged { times_ns, next: 0 });
        Self { ns, first_ns: 0, gaps, gap_ns: 0 }
    }

    #[inline]
    fn advance(&mut self, length: u32) {
        let step = match &mut self.gaps {
            Gaps::Linear(line) => line.step(length),
            Gaps::Poisson(poisson) => poisson.step(length),
            Gaps::Logged(logged) => logged.step(),
        };
        self.ns = self.ns.saturating_add(step);
    }
}

fn smallest_bytes(job: &JobSpec) -> u32 {
    job.all_block_sizes().map(|size| size.bytes).min().unwrap_or(0) as u32
}

impl Linear {
    #[inline]
    fn step(&mut self, length: u32) -> u64 {
        if self.per_byte && length != self.length {
            self.set_length(length);
        }
        debug_assert!(self.rest < self.denominator && self.part < self.denominator);
        self.rest += self.part;
        if self.rest < self.denominator {
            return self.whole;
        }
        self.rest -= self.denominator;
        self.whole + 1
    }

    #[cold]
    fn set_length(&mut self, length: u32) {
        let units = if self.per_byte { u128::from(length) } else { 1 };
        let numerator = NUMERATOR * self.factor * units;
        self.length = length;
        self.whole = u64::try_from(numerator / u128::from(self.denominator)).unwrap_or(u64::MAX);
        self.part = (numerator % u128::from(self.denominator)) as u64;
    }
}

impl Logged {
    /// Advances to the next I/O; after the last I/O, advances to the first I/O of the next pass, at
    /// its own time.
    fn step(&mut self) -> u64 {
        let now = self.times_ns[self.next];
        self.next += 1;
        self.times_ns.get(self.next).map_or_else(
            || {
                self.next = 0;
                self.times_ns[0]
            },
            |next| next - now,
        )
    }
}

impl Poisson {
    #[inline]
    fn step(&mut self, length: u32) -> u64 {
        let units = if self.per_byte { f64::from(length) } else { 1.0 };
        // `unit` is in [0, 1), so the argument of the logarithm is in (0, 1].
        let gap = -(1.0 - self.random.unit()).ln() * self.mean_ns * units + self.rest;
        let whole = gap.floor();
        self.rest = gap - whole;
        debug_assert!(whole >= 0.0, "an arrival {gap} ns after the one before");
        whole as u64
    }
}

#[cfg(test)]
mod tests;
