//! Request generator, which determines the operation, address and length of a thread's next I/O.
//!
//! Random numbers are drawn only for actual choices. Operation and size share one 64-bit draw (32
//! bits each, so fractions are exact to 2^-32), and uniform addresses take one more draw. All
//! thresholds are precomputed.

use std::cell::RefCell;
use std::rc::Rc;

use writecliff_base::{Bytes, Lpn, Prng, SLOT_BYTES, StreamId};
use writecliff_host_interface::{Content, Operation};

use self::course::Course;
use crate::address::{AddressGenerator, SizeClass};
use crate::check::{Limits, SpecError};
use crate::host_zones::{ZoneUser, Zones};
use crate::spec::{BlockSize, JobSpec};

mod course;

/// Label of the random generator for operations and addresses. A thread derives all its random
/// generators from the workload's seed and such labels.
const OPERATIONS_LABEL: u64 = 0;
pub(crate) const ARRIVALS_LABEL: u64 = 1;

/// A request to a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoRequest {
    /// Operation of the request.
    pub op: Operation,
    /// Offset of the first byte, relative to the start of the device.
    pub offset: u64,
    /// Length in bytes.
    pub length: u32,
    /// Content of the data, for writes.
    pub content: Content,
    /// Stream or placement identifier of a write.
    pub stream: StreamId,
}

/// Endless sequence of requests of one thread; the runner decides when the thread stops.
#[derive(Clone, Debug)]
pub struct ThreadGenerator {
    random: Prng,
    addresses: AddressGenerator,
    /// First size class, which is often the only one.
    class: SizeClass,
    mix: Mix,
    offset: u64,
    contents: Contents,
    stream: StreamId,
    flush: FlushEvery,
    /// `true` if all I/Os are independent draws, without flushes, duplicate data or dependencies
    /// (`Course`).
    is_plain: bool,
    course: Option<Box<Course>>,
    zones: Option<Box<ZoneUser>>,
}

/// Mix of operations and sizes, which are both selected by thresholds on one random draw.
#[derive(Clone, Debug)]
struct Mix {
    /// Operation of the job, if there is only one.
    single: Option<Operation>,
    /// Thresholds out of 2^32: draws below the first threshold are reads, draws below the second
    /// are trims, and all others are writes.
    read_below: u64,
    trim_below: u64,
    /// Upper threshold of each size class out of 2^32; empty if there is only one class.
    sizes: Vec<(u64, SizeClass)>,
}

/// Content of writes: data with a single compressibility. Some writes duplicate the thread's last
/// unique write, like fio's `dedupe_percentage` in the mode `repeat`.
#[derive(Clone, Copy, Debug)]
struct Contents {
    fresh: Content,
    /// Threshold out of 2^32 for duplicates; if it is 0, no random number is drawn.
    repeats_below: u64,
    /// Offset and length of the write to duplicate.
    original: Option<(u64, u32)>,
}

impl Contents {
    fn new(job: &JobSpec) -> Self {
        Self {
            fresh: Content::compressible(job.compressible_pct),
            repeats_below: out_of_two_to_32(job.duplicate_pct / 100.0),
            original: None,
        }
    }

    /// Draws the content of a write. A write that is longer than the original, or not aligned to
    /// mapping units, cannot be a duplicate.
    fn draw(&mut self, random: &mut Prng, offset: u64, length: u32) -> Content {
        let repeats = random.next_u64() >> 32 < self.repeats_below;
        match self.original {
            Some((first, longest)) if repeats && length <= longest && in_slots(offset) => {
                Content { same_as: Lpn((first / SLOT_BYTES) as u32), ..self.fresh }
            }
            _ => {
                self.original = in_slots(offset).then_some((offset, length));
                self.fresh
            }
        }
    }
}

fn in_slots(offset: u64) -> bool {
    offset.is_multiple_of(SLOT_BYTES)
}

#[derive(Clone, Copy, Debug)]
struct FlushEvery {
    /// Number of writes between flushes; 0 if the job does not flush.
    writes: u64,
    left: u64,
}

/// Returns the random generator for one purpose (`part`: operations or arrivals) of a thread.
pub(crate) fn thread_random(seed: u64, job: u32, thread: u32, part: u64) -> Prng {
    assert!(thread < 1 << 16, "the label of thread {thread} would be that of another job");
    // Threads are limited to 4096 and the job count is far below 2^16, so labels are unique.
    Prng::derive(seed, part << 48 | u64::from(job) << 16 | u64::from(thread))
}

fn out_of_two_to_32(share: f64) -> u64 {
    debug_assert!((0.0..=1.0 + 1e-6).contains(&share), "a share of {share}");
    (share * 2_f64.powi(32)).round() as u64
}

impl Mix {
    fn new(job: &JobSpec, classes: &[SizeClass]) -> Self {
        let read_below = out_of_two_to_32(job.read_pct / 100.0);
        let trim_below = out_of_two_to_32((job.read_pct + job.trim_pct) / 100.0);
        assert!(read_below <= trim_below, "trims are above reads");
        let full = 1 << 32;
        let single = match (read_below, trim_below) {
            (read, _) if read >= full => Some(Operation::Read),
            (0, 0) => Some(Operation::Write),
            (0, trim) if trim >= full => Some(Operation::Trim),
            _ => None,
        };
        let sizes = Self::thresholds(&job.block_sizes, classes);
        Self { single, read_below, trim_below, sizes }
    }

    /// Returns the upper threshold of each size class out of 2^32; empty if there is only one
    /// class.
    fn thresholds(block_sizes: &[BlockSize], classes: &[SizeClass]) -> Vec<(u64, SizeClass)> {
        assert_eq!(block_sizes.len(), classes.len(), "each block size has a class");
        if classes.len() == 1 {
            return Vec::new();
        }
        let total: f64 = block_sizes.iter().map(|size| size.weight).sum();
        let upto = block_sizes.iter().scan(0.0, |upto, size| {
            *upto += size.weight;
            Some(out_of_two_to_32(*upto / total))
        });
        let upto: Vec<_> = upto.zip(classes.iter().copied()).collect();
        assert!(upto.last().is_none_or(|&(below, _)| below == 1 << 32), "shares add up to one");
        upto
    }

    #[inline]
    fn draw<'a>(&'a self, random: &mut Prng, only: &'a SizeClass) -> (Operation, &'a SizeClass) {
        if let (Some(operation), true) = (self.single, self.sizes.is_empty()) {
            return (operation, only);
        }
        let (operation, for_size) = self.draw_operation(random);
        let class = self.sizes.iter().find(|(below, _)| for_size < *below);
        (operation, class.map_or(only, |(_, class)| class))
    }

    /// Draws an operation, and 32 bits that select its size.
    #[inline]
    fn draw_operation(&self, random: &mut Prng) -> (Operation, u64) {
        let draw = random.next_u64();
        let (for_operation, for_size) = (draw >> 32, draw & 0xffff_ffff);
        // Use an index rather than a branch, because branch predictors cannot predict a random mix.
        let above = usize::from(for_operation >= self.read_below)
            + usize::from(for_operation >= self.trim_below);
        let mixed = [Operation::Read, Operation::Trim, Operation::Write][above];
        (self.single.unwrap_or(mixed), for_size)
    }
}

impl ThreadGenerator {
    /// Creates the generator of thread `thread_index` of job `job_index` in a workload with seed
    /// `seed`, on a drive of capacity `device_capacity`. Returns the errors of
    /// [`JobSpec::validate`].
    pub fn new(
        job: &JobSpec,
        device_capacity: Bytes,
        seed: u64,
        job_index: u32,
        thread_index: u32,
    ) -> Result<Self, SpecError> {
        job.validate(&Limits { capacity: device_capacity, streams: u16::MAX })?;
        let job = job.resolved(device_capacity);
        let range = job.range_on(device_capacity);
        let (addresses, classes) =
            AddressGenerator::new(&job, range, thread_index).map_err(SpecError::Workload)?;
        let course = Course::of(&job, &classes, range.0);
        let label = u64::from(job_index) << 16 | u64::from(thread_index);
        let zones = ZoneUser::new(&job, device_capacity, range, label).map(Box::new);
        let counted = job.flush_every_writes > 0 || job.duplicate_pct > 0.0;
        Ok(Self {
            random: thread_random(seed, job_index, thread_index, OPERATIONS_LABEL),
            addresses,
            class: classes.common[0],
            mix: Mix::new(&job, &classes.common),
            offset: job.offset_bytes,
            contents: Contents::new(&job),
            stream: StreamId(job.stream),
            flush: FlushEvery { writes: job.flush_every_writes, left: job.flush_every_writes },
            is_plain: !counted && course.is_none() && zones.is_none(),
            course,
            zones,
        })
    }

    /// Shares the zones among the workload's threads, if the job has zones; `first` contains the
    /// zones of the first thread.
    pub fn share_zones(&mut self, first: &mut Option<Rc<RefCell<Zones>>>) {
        if let Some(zones) = &mut self.zones {
            zones.share(first);
        }
    }

    /// Sets the operation of all further requests. The job must not have trims.
    pub fn steer(&mut self, operation: Operation) {
        debug_assert!(matches!(operation, Operation::Read | Operation::Write));
        debug_assert_eq!(self.mix.read_below, self.mix.trim_below, "trims would be lost");
        self.mix.single = Some(operation);
    }

    /// Returns `true` if requests depend on the times of other threads, so that they must not be
    /// generated early.
    pub fn is_shared(&self) -> bool {
        self.zones.is_some()
    }

    /// Returns the next request. The sequence never ends.
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "an endless iterator would wrap each request"
    )]
    pub fn next(&mut self) -> IoRequest {
        if self.is_plain {
            return self.draw();
        }
        self.next_of_others()
    }

    /// Fills `requests` with the next requests.
    pub fn fill(&mut self, requests: &mut [IoRequest]) {
        if !self.is_plain {
            requests.fill_with(|| self.next_of_others());
            return;
        }
        // A local copy lets the compiler keep the generator state in registers.
        let mut random = self.random.clone();
        requests.fill_with(|| self.draw_from(&mut random));
        self.random = random;
    }

    fn draw(&mut self) -> IoRequest {
        let mut random = self.random.clone();
        let request = self.draw_from(&mut random);
        self.random = random;
        request
    }

    #[expect(clippy::inline_always)]
    #[inline(always)]
    fn draw_from(&mut self, random: &mut Prng) -> IoRequest {
        let (op, class) = self.mix.draw(random, &self.class);
        let offset = self.offset + self.addresses.next(random, class, op);
        self.request(op, offset, class.length)
    }

    #[inline]
    fn request(&self, op: Operation, offset: u64, length: u32) -> IoRequest {
        IoRequest { op, offset, length, content: self.contents.fresh, stream: self.stream }
    }

    fn next_of_others(&mut self) -> IoRequest {
        if self.flush.writes > 0 && self.flush.left == 0 {
            self.flush.left = self.flush.writes;
            return self.request(Operation::Flush, 0, 0);
        }
        let mut request = match &mut self.course {
            None => self.draw(),
            Some(course) => {
                if let Some(replay) = &mut course.replay {
                    return replay.next(self.contents.fresh, self.stream);
                }
                let (op, offset, length) =
                    course.next(&mut self.random, &self.mix, &self.class, &mut self.addresses);
                self.request(op, self.offset + offset, length)
            }
        };
        debug_assert!(request.length > 0, "an I/O without data");
        if let Some(zones) = &mut self.zones {
            zones.place(&mut request);
        }
        if request.op == Operation::Write {
            self.count_write(&mut request);
        }
        request
    }

    /// Counts a write and sets its content and stream.
    fn count_write(&mut self, request: &mut IoRequest) {
        let of_course = self.course.as_mut().and_then(|course| course.stream(&mut self.random));
        request.stream = of_course.unwrap_or(self.stream);
        // If flushes are disabled, the counter wraps below 0, but its value is then unused.
        self.flush.left = self.flush.left.wrapping_sub(1);
        if self.contents.repeats_below > 0 {
            request.content = self.contents.draw(&mut self.random, request.offset, request.length);
        }
    }
}

#[cfg(test)]
mod tests;
