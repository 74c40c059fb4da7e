//! Validates workloads, both independently of a drive and for a given drive.

mod addresses;
mod host_zones;
pub(crate) mod memory;

use thiserror::Error;
use writecliff_base::located::LocatedError;
use writecliff_base::{Bytes, SECTOR_BYTES};

use crate::address::AddressGenerator;
use crate::io_log;
use crate::segments::SegmentMap;
use crate::spec::{Arrival, BlockSize, JobSpec, Pattern, SegmentSpec, WorkloadSpec};

/// Maximum block size, which exceeds the limits of all drives and kernels, and keeps lengths within
/// 32 bits.
const BLOCK_MAX: u64 = 1 << 30;
const THREADS_MAX: u32 = 4096;
const QUEUE_DEPTH_MAX: u32 = 65_536;
/// Minimum rate; rates are stored exactly in millionths, see `pacing`.
pub(crate) const RATE_MIN: f64 = 1e-3;
pub(crate) const RATE_MAX: f64 = 1e12;
/// Minimum rate of reads or writes with a separate schedule; rates are stored in millionths.
const PART_MIN: f64 = 1e-6;
/// Maximum number of segments, far above the 2048 of the PTS; each segment takes 8 bytes per
/// thread.
const SEGMENTS_MAX: u64 = 1 << 20;
const THETA_MAX: f64 = 10.0;
/// Maximum number of files; each file has a position for each operation and thread.
const FILES_MAX: u32 = 1 << 20;
/// Maximum weight, which keeps products of weights and I/O counts exact.
const FLOW_MAX: u64 = 1 << 20;
/// Tolerance for rounded percentages, for example 33.3 + 33.3 + 33.4.
const PERCENT_SLACK: f64 = 1e-6;

/// Returns the workload limits by name, for the reference page.
pub fn limits() -> [(&'static str, u64); 10] {
    [
        ("jobs", memory::JOBS_MAX as u64),
        ("threads", u64::from(THREADS_MAX)),
        ("queue_depth", u64::from(QUEUE_DEPTH_MAX)),
        ("threads_bytes", memory::THREADS_BYTES_MAX),
        ("series_rows", memory::SERIES_ROWS_MAX),
        ("block_bytes", BLOCK_MAX),
        ("segments", SEGMENTS_MAX),
        ("files", u64::from(FILES_MAX)),
        ("zones", host_zones::ZONES_MAX),
        ("regions", addresses::REGIONS_MAX),
    ]
}

/// Workload error.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SpecError {
    /// Error at a line of a workload file.
    #[error(transparent)]
    Located(#[from] LocatedError),
    /// Invalid JSON, or JSON that does not encode a workload.
    #[error("workload: {0}")]
    Json(String),
    /// Error that does not concern a single job.
    #[error("workload: {0}")]
    Workload(String),
    /// Invalid value of a job.
    #[error("job '{job}': {}: {}", problem.key, problem.message)]
    #[allow(missing_docs, reason = "job name and problem")]
    Job { job: String, problem: Problem },
}

impl SpecError {
    /// Suggests a correction if one is known.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Located(error) => error.hint.as_deref(),
            Self::Job { problem, .. } => problem.hint,
            Self::Json(_) | Self::Workload(_) => None,
        }
    }
}

/// One invalid value of a job. `key` is the value's key in a TOML file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Key in a TOML file.
    pub key: &'static str,
    /// Problem with the value, and the accepted values.
    pub message: String,
    /// Suggested correction; `None` if none is known.
    pub hint: Option<&'static str>,
}

/// Limits that a drive imposes on workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Capacity that the host can address.
    pub capacity: Bytes,
    /// Number of streams, including the default stream 0; at least 1.
    pub streams: u16,
}

pub(crate) type Check = Result<(), Problem>;

pub(crate) fn problem(key: &'static str, message: String) -> Problem {
    Problem { key, message, hint: None }
}

/// Returns the problem of the first condition that is true: `KEY if CONDITION => "message";`.
macro_rules! reject {
    ($($key:tt if $wrong:expr => $message:literal $(, $argument:expr)*;)*) => {$(
        if $wrong {
            return Err($crate::check::problem($key, format!($message $(, $argument)*)));
        }
    )*};
}
pub(crate) use reject;

impl WorkloadSpec {
    /// Checks all properties that do not depend on the drive.
    pub fn check(&self) -> Result<(), SpecError> {
        if self.jobs.is_empty() {
            return Err(SpecError::Workload("it has no jobs; add at least one".to_owned()));
        }
        if self.interval_ns == 0 {
            return Err(SpecError::Workload(
                "the series interval is 0; it must be above 0".to_owned(),
            ));
        }
        self.check_memory()?;
        host_zones::check_shared(&self.jobs)?;
        self.jobs.iter().try_for_each(|job| {
            let whole = job.check().and_then(|()| job.check_ends_by_result(self.interval_ns));
            whole.map_err(|problem| job.error(problem))
        })
    }

    /// Checks that the workload can run on a drive with these limits.
    pub fn validate(&self, limits: &Limits) -> Result<(), SpecError> {
        self.check()?;
        self.jobs.iter().try_for_each(|job| job.validate(limits))
    }
}

impl JobSpec {
    fn error(&self, problem: Problem) -> SpecError {
        SpecError::Job { job: self.name.clone(), problem }
    }

    /// Checks that the job can run on a drive with these limits.
    pub fn validate(&self, limits: &Limits) -> Result<(), SpecError> {
        self.check()
            .and_then(|()| self.resolved(limits.capacity).fits(limits))
            .map_err(|problem| self.error(problem))
    }

    pub(crate) fn check(&self) -> Check {
        self.check_mix()?;
        self.check_sizes()?;
        self.check_range()?;
        addresses::check(self)?;
        self.check_course()?;
        host_zones::check(self)?;
        self.check_pace()?;
        self.check_end()
    }

    fn check_mix(&self) -> Check {
        for (key, pct) in [
            ("read", self.read_pct),
            ("trim", self.trim_pct),
            ("sequential_read", self.sequential_read_pct),
            ("sequential_write", self.sequential_write_pct),
            ("compressible", self.compressible_pct),
            ("duplicates", self.duplicate_pct),
        ] {
            reject! { key if !(0.0..=100.0).contains(&pct) => "{pct} % is outside 0 % to 100 %"; }
        }
        let (reads, trims, threads, depth) =
            (self.read_pct, self.trim_pct, self.threads, self.queue_depth);
        reject! {
            "trim" if reads + trims > 100.0 + PERCENT_SLACK =>
                "{reads} % reads and {trims} % trims are more than 100 %";
            "threads" if !(1..=THREADS_MAX).contains(&threads) =>
                "{threads} is outside 1 to {THREADS_MAX}";
            "queue_depth" if !(1..=QUEUE_DEPTH_MAX).contains(&depth) =>
                "{depth} is outside 1 to {QUEUE_DEPTH_MAX}";
        }
        Ok(())
    }

    fn check_sizes(&self) -> Check {
        check_blocks("block_sizes", &self.block_sizes, self.align_bytes)?;
        for (key, blocks) in [("writes", &self.writes), ("trims", &self.trims)] {
            let Some(blocks) = blocks else { continue };
            check_blocks(key, &blocks.block_sizes, blocks.align_bytes)?;
            reject! {
                key if self.segments.is_some() =>
                    "segments of the active range need one list of block sizes";
            }
        }
        Ok(())
    }

    fn check_range(&self) -> Check {
        whole_sectors("offset", self.offset_bytes)?;
        whole_sectors("range", self.range_bytes.unwrap_or(0))?;
        whole_sectors("thread_stride", self.thread_stride_bytes)?;
        for (key, pct, bytes, top) in [
            ("offset", self.offset_pct, self.offset_bytes > 0, 100.0),
            ("range", self.range_pct, self.range_bytes.is_some(), 100.0),
            ("volume", self.volume_pct, self.volume_bytes.is_some(), 1e6),
        ] {
            let Some(pct) = pct else { continue };
            reject! {
                key if bytes => "given in bytes and in percent";
                key if !(0.0..=top).contains(&pct) => "{pct} % is outside 0 % to {top} %";
            }
        }
        let Some(SegmentSpec { count, .. }) = self.segments else { return Ok(()) };
        reject! {
            "segments" if count == 0 => "the count 0 is below 1";
            "segments" if count > SEGMENTS_MAX => "the count {count} is above {SEGMENTS_MAX}";
            "segments" if self.hole_bytes != 0 || self.files != 1 =>
                "segments of the active range need sequences without holes and files";
        }
        Ok(())
    }

    /// Checks the keys for addresses that are neither purely random nor purely sequential.
    fn check_course(&self) -> Check {
        let sequential = self.pattern == Pattern::Sequential;
        let plain = self.run_ios == 1
            && self.segments.is_none()
            && !self.trim_first
            && self.host_zones.is_none()
            && self.log.is_none()
            && self.model.is_none();
        let of_operations = self.sequential_read_pct > 0.0 || self.sequential_write_pct > 0.0;
        reject! {
            "run_ios" if self.run_ios == 0 => "0 is not above 0";
            "run_ios" if self.run_ios > 1 && sequential =>
                "runs need a random pattern";
            "run_ios" if self.run_ios > 1 && self.segments.is_some() =>
                "runs would leave the segments of the active range";
            "mix" if self.continues() && (sequential || !plain) =>
                "sequential shares need random addresses without runs, segments, zones, trims \
                 first, logs and models";
            "block_sizes" if of_operations && self.has_ordered_sizes() =>
                "sequential shares are given for operations and block sizes; remove one of them";
        }
        whole_sectors("start", self.start_bytes)?;
        whole_sectors("start", self.write_start_bytes.unwrap_or(0))?;
        let begins = self.start_bytes > 0 || self.write_start_bytes.is_some();
        let one_way = self.hole_bytes == 0 && self.files == 1 && !self.one_position;
        let striding = self.hole_bytes != 0 || self.files > 1;
        let hole = self.hole_bytes.unsigned_abs();
        reject! {
            "start" if begins && (!sequential || !one_way) =>
                "it needs a sequential job without holes and files";
        }
        whole_sectors("hole", hole)?;
        reject! { "hole" if hole > 0 && !sequential => "holes need a sequential pattern"; }
        whole_sectors("hole_after", self.hole_after_bytes)?;
        reject! {
            "hole_after" if self.hole_after_bytes > 0 && self.hole_bytes <= 0 =>
                "it needs a hole";
            "files" if !(1..=FILES_MAX).contains(&self.files) =>
                "{} is outside 1 to {FILES_MAX}", self.files;
            "files" if self.files > 1 && !sequential => "several files need a sequential pattern";
            "one_position" if self.one_position && !sequential =>
                "it needs a sequential pattern";
            "align" if striding && self.align_bytes.is_some() =>
                "not together with holes or files";
            "trim_first" if self.trim_first && (self.read_pct != 0.0 || self.trim_pct != 0.0) =>
                "each block is trimmed and written; leave read and trim out";
            "streams" if !self.streams.is_empty() && self.stream != 0 =>
                "stream and streams are both given; remove one of them";
        }
        self.check_log()
    }

    /// Checks I/Os that replace generated I/Os.
    fn check_log(&self) -> Check {
        let rated = self.rate_iops.is_some() || self.rate_bytes_per_s.is_some();
        if let Some(model) = &self.model {
            let has_range = self.range_bytes.is_some() || self.range_pct.is_some();
            reject! {
                "model" if self.threads != 1 =>
                    "a model supports only one thread; set threads to 1";
                "model" if rated || self.log.is_some() =>
                    "a model has its own times and addresses; leave rate and log out";
                "model" if has_range || self.host_zones.is_some() =>
                    "a model has its own range; leave range and host_zones out";
            }
            model.check().map_err(|message| problem("model", message))?;
        }
        let Some(log) = &self.log else { return Ok(()) };
        reject! {
            "log" if self.threads != 1 => "a log belongs to one thread";
            "log" if rated => "a log has its own times; leave the rate out";
        }
        io_log::check(log)
    }

    fn check_ends_by_result(&self, interval_ns: u64) -> Check {
        self.until_steady.map_or(Ok(()), |end| end.check(interval_ns))?;
        self.latency_target.map_or(Ok(()), |target| target.check(interval_ns))?;
        self.least_rates.iter().try_for_each(|least| least.check(interval_ns))
    }

    fn check_pace(&self) -> Check {
        for rate in [self.rate_iops, self.rate_bytes_per_s].into_iter().flatten() {
            reject! {
                "rate" if !(RATE_MIN..=RATE_MAX).contains(&rate) =>
                    "{rate} per second is outside {RATE_MIN} to {RATE_MAX}";
            }
            let smaller_part = self.rate_read_pct.map(|pct| rate * pct.min(100.0 - pct) / 100.0);
            reject! {
                "rate_read" if smaller_part.is_some_and(|part| part > 0.0 && part < PART_MIN) =>
                    "a part of the rate is below {PART_MIN} per second";
            }
        }
        let (iops, bytes) = (self.rate_iops.is_some(), self.rate_bytes_per_s.is_some());
        let is_open = iops || bytes;
        let is_part = |pct: f64| pct > 0.0 && pct < 100.0;
        let shares_rate = self.rate_read_pct.is_some();
        let has_parts = self.rate_read_pct.is_none_or(is_part) && is_part(self.read_pct);
        let (burst, pause) = (self.burst_ns > 0, self.pause_ns > 0);
        let absent = if burst { "pause" } else { "burst" };
        reject! {
            "rate" if iops && bytes => "given in I/Os and in bytes per second";
            "arrival" if self.arrival != Arrival::Linear && !is_open =>
                "poisson arrivals require a rate";
            "rate_read" if shares_rate && !is_open => "shares of a rate need a rate";
            "rate_read" if shares_rate && !has_parts =>
                "shares of a rate need reads and writes, each above 0 %";
            "rate_read" if shares_rate && self.trim_pct != 0.0 =>
                "trims have no share of a rate";
            "rate_ignores_think" if self.rate_ignores_think && (!is_open || self.think_ns == 0) =>
                "it needs a rate and a think time";
            "think_after_ios" if self.think_after_ios == 0 => "0 is not above 0";
            absent if burst != pause => "burst and pause must both be above 0 or both be absent";
            "pause" if pause && is_open => "a job with a rate cannot have bursts and pauses";
            "flow_weight" if self.flow_weight > 0 && is_open =>
                "the rates already determine the shares of the jobs; remove flow_weight";
            "flow_weight" if self.flow_weight > FLOW_MAX =>
                "{} is above {FLOW_MAX}", self.flow_weight;
            "flow_group" if self.flow_group > 0 && self.flow_weight == 0 =>
                "it needs a flow_weight";
            "dsync" if self.dsync && self.flush_every_writes > 0 =>
                "each write is flushed already; leave flush_every_writes out";
        }
        Ok(())
    }

    fn check_end(&self) -> Check {
        let ends =
            [("duration", self.duration_ns), ("volume", self.volume_bytes), ("ios", self.ios)];
        for (key, end) in ends {
            reject! { key if end == Some(0) => "0 would end the job before it starts"; }
        }
        if ends.iter().all(|(_, end)| end.is_none()) && self.volume_pct.is_none() {
            let hint = Some("set duration, volume or ios");
            return Err(Problem {
                hint,
                ..problem("duration", "the job has no stop condition".to_owned())
            });
        }
        Ok(())
    }

    /// Checks that the drive has the addresses and streams that a resolved job uses.
    fn fits(&self, limits: &Limits) -> Check {
        let (capacity, offset) = (limits.capacity, Bytes(self.offset_bytes));
        reject! {
            "offset" if offset >= capacity =>
                "{offset} is beyond the end of the drive of {capacity}";
        }
        let room = capacity.0 - offset.0;
        let range = self.range_on(capacity);
        let largest = self.all_block_sizes().map(|size| size.bytes).max().unwrap_or(0);
        reject! {
            "range" if range.0 > room =>
                "{range} from offset {offset} exceeds the drive of {capacity}";
            "range" if largest > range.0 =>
                "{range} is smaller than a block of {}", Bytes(largest);
        }
        let aligns = self.writes.iter().chain(&self.trims).filter_map(|blocks| blocks.align_bytes);
        for align in self.align_bytes.into_iter().chain(aligns).map(Bytes) {
            reject! { "align" if align > range => "{align} is larger than the range of {range}"; }
        }
        host_zones::fit(self, capacity)?;
        if let Some(log) = &self.log {
            io_log::fits(log, limits)?;
        }
        if let Some(range) = self.model.as_ref().map(|model| Bytes(model.range_bytes)) {
            reject! {
                "model" if range.0 > room =>
                    "its range of {range} from offset {offset} exceeds the drive of {capacity}";
            }
        }
        if self.segments.is_some() {
            SegmentMap::new(self, range).map_err(|message| problem("segments", message))?;
        }
        AddressGenerator::new(self, range, 0).map_err(|message| problem("addresses", message))?;
        for &stream in self.streams.iter().chain([&self.stream]) {
            reject! {
                "stream" if stream >= limits.streams =>
                    "stream {stream} does not exist; the drive has {} streams", limits.streams;
            }
        }
        Ok(())
    }
}

fn check_blocks(key: &'static str, sizes: &[BlockSize], align: Option<u64>) -> Check {
    reject! { key if sizes.is_empty() => "the list is empty"; }
    for &BlockSize { bytes, weight, sequential_pct } in sizes {
        whole_sectors(key, bytes)?;
        let size = Bytes(bytes);
        reject! {
            key if !(1..=BLOCK_MAX).contains(&bytes) =>
                "{size} is outside 512 B to {}", Bytes(BLOCK_MAX);
            key if !weight.is_finite() || weight <= 0.0 =>
                "the weight {weight} of {size} is not above 0";
            key if !(0.0..=100.0).contains(&sequential_pct) =>
                "{sequential_pct} % is outside 0 % to 100 %";
        }
    }
    if let Some(align) = align {
        whole_sectors("align", align)?;
        reject! { "align" if align == 0 => "0 is not above 0"; }
    }
    Ok(())
}

pub(crate) fn whole_sectors(key: &'static str, bytes: u64) -> Check {
    reject! {
        key if !bytes.is_multiple_of(SECTOR_BYTES) =>
            "{} is not a multiple of {SECTOR_BYTES} bytes", Bytes(bytes);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
