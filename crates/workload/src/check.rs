//! Validates workloads, by themselves and for a given drive.

mod addresses;
mod host_zones;
pub(crate) mod memory;

use thiserror::Error;
use writecliff_base::located::LocatedError;
use writecliff_base::{Bytes, SECTOR_BYTES};

use crate::address::AddressGenerator;
use crate::segments::SegmentMap;
use crate::spec::{Arrival, BlockSize, JobSpec, Pattern, WorkloadSpec};

/// Smallest unit that any host addresses.
/// Exceeds the limits of all drives and kernels, and keeps lengths within 32 bits.
const BLOCK_MAX: u64 = 1 << 30;
const THREADS_MAX: u32 = 4096;
const QUEUE_DEPTH_MAX: u32 = 65_536;
/// Rates are stored exactly in millionths, see `pacing`.
const RATE_MIN: f64 = 1e-3;
const RATE_MAX: f64 = 1e12;
/// Far above the 2048 of the PTS; every segment takes 8 bytes per thread.
const SEGMENTS_MAX: u64 = 1 << 20;
const THETA_MAX: f64 = 10.0;
/// Each file has a position for each operation and thread.
const FILES_MAX: u32 = 1 << 20;
/// Products of weights and I/Os remain exact.
const FLOW_MAX: u64 = 1 << 20;
/// Tolerance for rounded percentages such as 33.3 + 33.3 + 33.4.
const PERCENT_SLACK: f64 = 1e-6;

/// The limits of workloads by name, for their reference.
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

/// Why a workload is invalid.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SpecError {
    #[error(transparent)]
    Located(#[from] LocatedError),
    #[error("workload: {0}")]
    Json(String),
    #[error("workload: {0}")]
    Workload(String),
    #[error("job '{job}': {}: {}", problem.key, problem.message)]
    Job { job: String, problem: Problem },
}

impl SpecError {
    /// Suggests a correction, if one is known.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Located(error) => error.hint.as_deref(),
            Self::Job { problem, .. } => problem.hint,
            Self::Json(_) | Self::Workload(_) => None,
        }
    }
}

/// One invalid value of a job. `key` is its key in a TOML file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub key: &'static str,
    pub message: String,
    pub hint: Option<&'static str>,
}

/// Limits that a drive imposes on workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub capacity: Bytes,
    /// Number of streams, including the default stream 0; at least 1.
    pub streams: u16,
}

pub(crate) type Check = Result<(), Problem>;

fn problem(key: &'static str, message: String) -> Problem {
    Problem { key, message, hint: None }
}

pub(crate) fn ensure(holds: bool, key: &'static str, message: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(problem(key, message())) }
}

impl WorkloadSpec {
    /// Checks everything that does not depend on the drive.
    pub fn check(&self) -> Result<(), SpecError> {
        if self.jobs.is_empty() {
            return Err(SpecError::Workload("it has no jobs".to_owned()));
        }
        if self.interval_ns == 0 {
            return Err(SpecError::Workload("the interval of the series is 0".to_owned()));
        }
        self.check_memory()?;
        self.check_shared_zones()?;
        self.jobs.iter().try_for_each(|job| {
            let whole = job.check().and_then(|()| job.check_ends_by_result(self.interval_ns));
            whole.map_err(|problem| job.error(problem))
        })
    }

    /// Checks whether the workload can run on a drive with these limits.
    pub fn validate(&self, limits: &Limits) -> Result<(), SpecError> {
        self.check()?;
        self.jobs.iter().try_for_each(|job| job.validate(limits))
    }
}

impl JobSpec {
    fn error(&self, problem: Problem) -> SpecError {
        SpecError::Job { job: self.name.clone(), problem }
    }

    /// Checks whether the job can run on a drive with these limits.
    pub fn validate(&self, limits: &Limits) -> Result<(), SpecError> {
        self.check()
            .and_then(|()| self.resolved(limits.capacity).fits(limits))
            .map_err(|problem| self.error(problem))
    }

    pub(crate) fn check(&self) -> Check {
        self.check_mix()?;
        self.check_sizes()?;
        self.check_range()?;
        self.check_addresses()?;
        self.check_course()?;
        self.check_host_zones()?;
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
            ensure((0.0..=100.0).contains(&pct), key, || {
                format!("{pct} % is outside 0 % to 100 %")
            })?;
        }
        ensure(self.read_pct + self.trim_pct <= 100.0 + PERCENT_SLACK, "trim", || {
            format!("{} % reads and {} % trims are more than 100 %", self.read_pct, self.trim_pct)
        })?;
        let (threads, depth) = (self.threads, self.queue_depth);
        ensure((1..=THREADS_MAX).contains(&threads), "threads", || {
            format!("{threads} is outside 1 to {THREADS_MAX}")
        })?;
        ensure((1..=QUEUE_DEPTH_MAX).contains(&depth), "queue_depth", || {
            format!("{depth} is outside 1 to {QUEUE_DEPTH_MAX}")
        })
    }

    fn check_sizes(&self) -> Check {
        check_blocks("block_sizes", &self.block_sizes, self.align_bytes)?;
        for (key, own) in [("writes", &self.writes), ("trims", &self.trims)] {
            let Some(own) = own else { continue };
            check_blocks(key, &own.block_sizes, own.align_bytes)?;
            ensure(self.segments.is_none(), key, || {
                "segments of the active range need one list of block sizes".to_owned()
            })?;
        }
        Ok(())
    }

    fn check_range(&self) -> Check {
        whole_sectors("offset", self.offset_bytes)?;
        whole_sectors("range", self.range_bytes.unwrap_or(0))?;
        whole_sectors("thread_stride", self.thread_stride_bytes)?;
        for (key, pct, bytes) in [
            ("offset", self.offset_pct, self.offset_bytes > 0),
            ("range", self.range_pct, self.range_bytes.is_some()),
            ("volume", self.volume_pct, self.volume_bytes.is_some()),
        ] {
            ensure(pct.is_none() || !bytes, key, || "given in bytes and in percent".to_owned())?;
            let top = if key == "volume" { 1e6 } else { 100.0 };
            ensure(pct.is_none_or(|pct| (0.0..=top).contains(&pct)), key, || {
                format!("{} % is outside 0 % to {top} %", pct.unwrap_or(0.0))
            })?;
        }
        let Some(segments) = self.segments else { return Ok(()) };
        ensure(segments.count > 0, "segments", || "the count 0 is not above 0".to_owned())?;
        ensure(segments.count <= SEGMENTS_MAX, "segments", || {
            format!("the count {} is above {SEGMENTS_MAX}", segments.count)
        })?;
        ensure(self.hole_bytes == 0 && self.files == 1, "segments", || {
            "segments of the active range need sequences without holes and files".to_owned()
        })
    }

    /// Checks what makes the course of addresses other than plainly random or sequential.
    fn check_course(&self) -> Check {
        let sequential = self.pattern == Pattern::Sequential;
        ensure(self.run_ios > 0, "run_ios", || "0 is not above 0".to_owned())?;
        ensure(self.run_ios == 1 || !sequential, "run_ios", || {
            "runs begin at random addresses; a sequential pattern has none".to_owned()
        })?;
        ensure(self.run_ios == 1 || self.segments.is_none(), "run_ios", || {
            "runs would leave the segments of the active range".to_owned()
        })?;
        let plain = self.run_ios == 1
            && self.segments.is_none()
            && !self.trim_first
            && self.host_zones.is_none()
            && self.log.is_none()
            && self.model.is_none();
        ensure(!self.continues() || (!sequential && plain), "mix", || {
            "sequential shares need random addresses without runs, segments, zones, trims \
             first, logs and models"
                .to_owned()
        })?;
        let of_operations = self.sequential_read_pct > 0.0 || self.sequential_write_pct > 0.0;
        ensure(!(of_operations && self.has_ordered_sizes()), "block_sizes", || {
            "sequential shares are given of operations and of sizes; remove one of them".to_owned()
        })?;
        whole_sectors("start", self.start_bytes)?;
        whole_sectors("start", self.write_start_bytes.unwrap_or(0))?;
        let begins = self.start_bytes > 0 || self.write_start_bytes.is_some();
        let one_way = self.hole_bytes == 0 && self.files == 1 && !self.one_position;
        ensure(!begins || (sequential && one_way), "start", || {
            "only a sequential job without holes and files begins elsewhere".to_owned()
        })?;
        whole_sectors("hole", self.hole_bytes.unsigned_abs())?;
        ensure(self.hole_bytes == 0 || sequential, "hole", || {
            "holes need a sequential pattern".to_owned()
        })?;
        whole_sectors("hole_after", self.hole_after_bytes)?;
        ensure(self.hole_after_bytes == 0 || self.hole_bytes > 0, "hole_after", || {
            "there is no hole".to_owned()
        })?;
        ensure((1..=FILES_MAX).contains(&self.files), "files", || {
            format!("{} is outside 1 to {FILES_MAX}", self.files)
        })?;
        ensure(self.files == 1 || sequential, "files", || {
            "files in turn need a sequential pattern".to_owned()
        })?;
        ensure(!self.one_position || sequential, "one_position", || {
            "random addresses have no position".to_owned()
        })?;
        let striding = self.hole_bytes != 0 || self.files > 1;
        ensure(!striding || self.align_bytes.is_none(), "align", || {
            "not together with holes or files".to_owned()
        })?;
        ensure(
            !self.trim_first || (self.read_pct == 0.0 && self.trim_pct == 0.0),
            "trim_first",
            || "each block is trimmed and written; leave read and trim out".to_owned(),
        )?;
        ensure(self.streams.is_empty() || self.stream == 0, "streams", || {
            "stream and streams are both given; remove one of them".to_owned()
        })?;
        self.check_log()
    }

    /// Checks the I/Os that are given in place of generated ones.
    fn check_log(&self) -> Check {
        let rated = self.rate_iops.is_some() || self.rate_bytes_per_s.is_some();
        if let Some(model) = &self.model {
            ensure(self.threads == 1, "model", || "a model belongs to one thread".to_owned())?;
            ensure(!rated && self.log.is_none(), "model", || {
                "a model has its own times and addresses; leave rate and log out".to_owned()
            })?;
            let range = self.range_bytes.is_none() && self.range_pct.is_none();
            ensure(range && self.host_zones.is_none(), "model", || {
                "a model has its own range; leave range and host_zones out".to_owned()
            })?;
            model.check().map_err(|message| problem("model", message))?;
        }
        let Some(log) = &self.log else { return Ok(()) };
        ensure(self.threads == 1, "log", || "a log belongs to one thread".to_owned())?;
        ensure(!rated, "log", || "a log has its own times; leave the rate out".to_owned())?;
        log.check()
    }

    fn check_ends_by_result(&self, interval_ns: u64) -> Check {
        self.until_steady.map_or(Ok(()), |end| end.check(interval_ns))?;
        self.latency_target.map_or(Ok(()), |target| target.check(interval_ns))?;
        self.least_rates.iter().try_for_each(|least| least.check(interval_ns))
    }

    fn check_pace(&self) -> Check {
        for rate in [self.rate_iops, self.rate_bytes_per_s].into_iter().flatten() {
            ensure((RATE_MIN..=RATE_MAX).contains(&rate), "rate", || {
                format!("{rate} a second is outside {RATE_MIN} to {RATE_MAX}")
            })?;
        }
        let (iops, bytes) = (self.rate_iops.is_some(), self.rate_bytes_per_s.is_some());
        ensure(!(iops && bytes), "rate", || "given in I/Os and in bytes a second".to_owned())?;
        ensure(self.arrival == Arrival::Linear || iops || bytes, "arrival", || {
            "poisson arrivals need a rate".to_owned()
        })?;
        ensure(self.rate_read_pct.is_none() || iops || bytes, "rate_read", || {
            "there is no rate to share".to_owned()
        })?;
        ensure(
            self.rate_read_pct.is_none_or(|share| {
                share > 0.0 && share < 100.0 && self.read_pct > 0.0 && self.read_pct < 100.0
            }),
            "rate_read",
            || "shares of a rate need reads and writes, each above 0 %".to_owned(),
        )?;
        ensure(self.rate_read_pct.is_none() || self.trim_pct == 0.0, "rate_read", || {
            "trims have no share of a rate".to_owned()
        })?;
        ensure(
            !self.rate_ignores_think || ((iops || bytes) && self.think_ns > 0),
            "rate_ignores_think",
            || "there is no rate with think time".to_owned(),
        )?;
        ensure(self.think_after_ios > 0, "think_after_ios", || "0 is not above 0".to_owned())?;
        let (burst, pause) = (self.burst_ns > 0, self.pause_ns > 0);
        ensure(burst == pause, if burst { "pause" } else { "burst" }, || {
            "burst and pause must both be above 0 or both be absent".to_owned()
        })?;
        ensure(!(pause && (iops || bytes)), "pause", || {
            "a job with a rate cannot have bursts and pauses".to_owned()
        })?;
        ensure(self.flow_weight == 0 || !(iops || bytes), "flow_weight", || {
            "rates determine the shares of jobs already".to_owned()
        })?;
        ensure(self.flow_weight <= FLOW_MAX, "flow_weight", || {
            format!("{} is above {FLOW_MAX}", self.flow_weight)
        })?;
        ensure(self.flow_group == 0 || self.flow_weight > 0, "flow_group", || {
            "there is no flow_weight".to_owned()
        })?;
        ensure(!(self.dsync && self.flush_every_writes > 0), "dsync", || {
            "each write is flushed already; leave flush_every_writes out".to_owned()
        })
    }

    fn check_end(&self) -> Check {
        let ends =
            [("duration", self.duration_ns), ("volume", self.volume_bytes), ("ios", self.ios)];
        for (key, end) in ends {
            ensure(end != Some(0), key, || "0 ends the job before it begins".to_owned())?;
        }
        let endless = ends.iter().all(|(_, end)| end.is_none()) && self.volume_pct.is_none();
        if endless {
            let hint = Some("give duration, volume or ios");
            return Err(Problem {
                key: "duration",
                message: "the job never ends".to_owned(),
                hint,
            });
        }
        Ok(())
    }

    /// Checks whether the drive has the addresses and streams that a resolved job uses.
    fn fits(&self, limits: &Limits) -> Check {
        let capacity = limits.capacity;
        let offset = self.offset_bytes;
        ensure(offset < capacity.0, "offset", || {
            format!("{} is beyond the end of the drive of {capacity}", Bytes(offset))
        })?;
        let room = capacity.0 - offset;
        let range = self.range_on(capacity);
        ensure(range.0 <= room, "range", || {
            format!("{range} from offset {} exceeds the drive of {capacity}", Bytes(offset))
        })?;
        let largest = self.all_block_sizes().map(|size| size.bytes).max().unwrap_or(0);
        ensure(largest <= range.0, "range", || {
            format!("{range} is smaller than a block of {}", Bytes(largest))
        })?;
        let own = self.writes.iter().chain(&self.trims).filter_map(|own| own.align_bytes);
        for align in self.align_bytes.into_iter().chain(own) {
            ensure(align <= range.0, "align", || {
                format!("{} is larger than the range of {range}", Bytes(align))
            })?;
        }
        self.host_zones_fit(capacity)?;
        if let Some(log) = &self.log {
            log.fits(limits)?;
        }
        if let Some(model) = &self.model {
            ensure(model.range_bytes <= room, "model", || {
                let range = Bytes(model.range_bytes);
                format!("its range of {range} from offset {offset} exceeds the drive of {capacity}")
            })?;
        }
        if self.segments.is_some() {
            SegmentMap::new(self, range).map_err(|message| problem("segments", message))?;
        }
        AddressGenerator::new(self, range, 0).map_err(|message| problem("addresses", message))?;
        for &stream in self.streams.iter().chain([&self.stream]) {
            ensure(stream < limits.streams, "stream", || {
                format!("stream {stream} does not exist; the drive has {} streams", limits.streams)
            })?;
        }
        Ok(())
    }
}

fn check_blocks(key: &'static str, sizes: &[BlockSize], align: Option<u64>) -> Check {
    ensure(!sizes.is_empty(), key, || "the list is empty".to_owned())?;
    for size in sizes {
        whole_sectors(key, size.bytes)?;
        ensure((1..=BLOCK_MAX).contains(&size.bytes), key, || {
            format!("{} is outside 512 B to {}", Bytes(size.bytes), Bytes(BLOCK_MAX))
        })?;
        ensure(size.weight.is_finite() && size.weight > 0.0, key, || {
            format!("the weight {} of {} is not above 0", size.weight, Bytes(size.bytes))
        })?;
        ensure((0.0..=100.0).contains(&size.sequential_pct), key, || {
            format!("{} % is outside 0 % to 100 %", size.sequential_pct)
        })?;
    }
    if let Some(align) = align {
        whole_sectors("align", align)?;
        ensure(align > 0, "align", || "0 is not above 0".to_owned())?;
    }
    Ok(())
}

pub(crate) fn whole_sectors(key: &'static str, bytes: u64) -> Check {
    ensure(bytes.is_multiple_of(SECTOR_BYTES), key, || {
        format!("{} is not a multiple of {SECTOR_BYTES} bytes", Bytes(bytes))
    })
}

#[cfg(test)]
mod tests;
