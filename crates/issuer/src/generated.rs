//! I/Os of a workload whose jobs have rates: requests of the simulator's host, merged by time.
//!
//! Threads that wait for a free queue entry generate no later requests meanwhile, as in the
//! simulator, so the generated requests do not depend on the drive.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use writecliff_base::Bytes;
use writecliff_workload::{
    IoRequest, JobSpec, Operation, SpecError, ThreadGenerator, ThreadPacing, WorkloadSpec,
};

use crate::feed::Feeder;
use crate::io::{Io, Lane};
use crate::measured::JobTime;

struct Thread {
    job: usize,
    generator: ThreadGenerator,
    pacing: ThreadPacing,
    /// Due time of the thread's latest I/O.
    due_ns: u64,
    next: IoRequest,
}

/// Remaining work of a job, and the job's end time.
struct Left {
    deadline_ns: u64,
    bytes: Option<u64>,
    ios: Option<u64>,
    /// Remaining I/Os, counted from the end of the ramp.
    ios_total: Option<u64>,
    /// End of the ramp; `None` once it has passed.
    ramp_end_ns: Option<u64>,
    ends_all: bool,
}

/// I/Os of a workload, in time order.
pub struct Generated {
    threads: Vec<Thread>,
    /// Threads, ordered by the due time of their next I/O.
    order: BinaryHeap<Reverse<(u64, u32)>>,
    jobs: Vec<Left>,
    end_ns: u64,
}

/// Returns a lane for each thread of each job.
pub fn lanes(spec: &WorkloadSpec) -> Vec<Lane> {
    let each = spec.jobs.iter().enumerate().flat_map(|(number, job)| {
        let lane = Lane {
            job: number as u32,
            depth: job.queue_depth,
            compressible_pct: job.compressible_pct,
            dsync: job.dsync,
            deadline_ns: deadline_ns(job),
        };
        std::iter::repeat_n(lane, job.threads as usize)
    });
    each.collect()
}

/// Returns the next request, of the operation that is due if operations have separate rates.
fn steered(generator: &mut ThreadGenerator, pacing: &mut ThreadPacing) -> IoRequest {
    if let Some(operation) = pacing.next_operation(0) {
        generator.steer(operation);
    }
    generator.next()
}

/// Returns the start and end of each job.
pub fn times(spec: &WorkloadSpec) -> Vec<JobTime> {
    let last_ns = spec.jobs.iter().filter(|job| job.ends_all).filter_map(deadline_ns).min();
    let time = |job: &JobSpec| JobTime {
        start_ns: start_ns(job),
        deadline_ns: deadline_ns(job).into_iter().chain(last_ns).min(),
        bytes: job.volume_bytes,
        ios: job.ios,
        ends_all: job.ends_all,
    };
    spec.jobs.iter().map(time).collect()
}

/// Returns the time when a job starts to measure.
fn start_ns(job: &JobSpec) -> u64 {
    job.start_delay_ns.saturating_add(job.ramp_ns)
}

fn deadline_ns(job: &JobSpec) -> Option<u64> {
    job.duration_ns.map(|length| start_ns(job).saturating_add(length))
}

impl Generated {
    /// Creates the I/Os of a workload, whose jobs all have rates, for a drive of this capacity.
    pub fn new(spec: &WorkloadSpec, capacity: Bytes) -> Result<Self, SpecError> {
        let spec = spec.resolved(capacity);
        let mut generated = Self {
            threads: Vec::new(),
            order: BinaryHeap::new(),
            jobs: Vec::new(),
            end_ns: u64::MAX,
        };
        let mut zones = None;
        for (job, of) in spec.jobs.iter().enumerate() {
            for thread in 0..of.threads {
                let (number, at) = (job as u32, generated.threads.len() as u32);
                let mut generator = ThreadGenerator::new(of, capacity, spec.seed, number, thread)?;
                generator.share_zones(&mut zones);
                let mut pacing = ThreadPacing::new(of, spec.seed, number, thread);
                let next = steered(&mut generator, &mut pacing);
                let Some(due_ns) = pacing.next_arrival_ns(next.op, next.length) else {
                    let text = format!("job '{}' has no rate", of.name);
                    return Err(SpecError::Workload(text));
                };
                generated.order.push(Reverse((due_ns, at)));
                generated.threads.push(Thread { job, generator, pacing, due_ns, next });
            }
            generated.jobs.push(Left {
                deadline_ns: deadline_ns(of).unwrap_or(u64::MAX),
                bytes: of.volume_bytes,
                ios: of.ios,
                ios_total: of.ios,
                ramp_end_ns: (of.ramp_ns > 0).then(|| start_ns(of)),
                ends_all: of.ends_all,
            });
        }
        Ok(generated)
    }

    /// Sends all I/Os to `feeder` until the receiver is dropped.
    pub fn feed(mut self, mut feeder: Feeder) {
        self.all(|io| feeder.add(io));
    }

    /// Restarts the schedules and the I/O count of a job.
    fn end_ramp(&mut self, number: usize) {
        let job = &mut self.jobs[number];
        let ramp_end_ns = job.ramp_end_ns.take().unwrap_or_default();
        job.ios = job.ios_total;
        self.order.retain(|Reverse((_, lane))| self.threads[*lane as usize].job != number);
        for (lane, thread) in self.threads.iter_mut().enumerate() {
            if thread.job == number {
                let Thread { pacing, next, .. } = thread;
                pacing.restart(ramp_end_ns);
                thread.due_ns = pacing.next_arrival_ns(next.op, next.length).unwrap_or(u64::MAX);
                self.order.push(Reverse((thread.due_ns, lane as u32)));
            }
        }
    }
}

impl Iterator for Generated {
    type Item = Io;

    fn next(&mut self) -> Option<Io> {
        loop {
            let Reverse((due_ns, lane)) = self.order.pop()?;
            let thread = &mut self.threads[lane as usize];
            let job = &mut self.jobs[thread.job];
            let ends_ramp = job.ramp_end_ns.is_some_and(|end_ns| due_ns >= end_ns);
            if ends_ramp && job.ios != Some(0) {
                self.end_ramp(self.threads[lane as usize].job);
                continue;
            }
            let is_over = due_ns >= job.deadline_ns || job.bytes == Some(0) || job.ios == Some(0);
            if is_over || due_ns > self.end_ns {
                if is_over && job.ends_all {
                    self.end_ns = self.end_ns.min(due_ns);
                }
                continue;
            }
            let request = thread.next;
            thread.advance();
            self.order.push(Reverse((thread.due_ns, lane)));
            if request.op != Operation::Flush {
                let length = u64::from(request.length);
                job.bytes = job.bytes.map(|bytes| bytes.saturating_sub(length));
                job.ios = job.ios.map(|ios| ios - 1);
            }
            return Some(Io {
                due_ns,
                operation: request.op,
                lane,
                offset: request.offset,
                length: u64::from(request.length),
                repeats: !request.content.same_as.is_none(),
            });
        }
    }
}

impl Thread {
    fn advance(&mut self) {
        self.next = steered(&mut self.generator, &mut self.pacing);
        // A flush belongs to the preceding write because the rate counts I/Os.
        if self.next.op != Operation::Flush {
            let Self { pacing, next, .. } = self;
            self.due_ns = pacing.next_arrival_ns(next.op, next.length).unwrap_or(u64::MAX);
        }
    }
}
