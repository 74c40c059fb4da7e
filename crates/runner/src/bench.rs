//! Speed of the simulator itself: fixed benchmark cases, CPU time and memory use.
//!
//! A case runs a workload on a device and measures its cost on this machine, not the results of the
//! workload. The benchmark measures CPU time instead of wall time because the machine may be
//! shared. Cases on the unmodified device share one drive, which the first case preconditions.

// This is the only module that measures the machine instead of a drive.
#![allow(clippy::disallowed_types)]

use std::fs::File;
use std::io::{self, BufReader, BufWriter};
use std::time::Instant;

use thiserror::Error;
use writecliff_base::saved_state::RestoreError;
use writecliff_base::{Bytes, Nanos, SLOT_BYTES};
use writecliff_filesystem::assign::Scheme;
use writecliff_filesystem::{FileSystem, LayOut, Repeats, TraceError, synthetic};
use writecliff_flash::Geometry;
use writecliff_ftl::{ConfigError, limit};
use writecliff_ssd::{DeviceConfig, Drive, Ssd};
use writecliff_workload::{BlockSize, JobSpec, Pattern, SpecError, WorkloadSpec};

use crate::device::Counters;
use crate::outcome::{StepOutcome, Unobserved};
use crate::replay::ReplayOptions;
use crate::{drive, fast_forward, replay};

/// All benchmark cases, in the order that requires the least preconditioning. The `growth-*` cases
/// create separate drives.
pub const CASES: [&str; 11] = [
    "limit-960",
    "ff-960",
    "read-qd32",
    "write-steady",
    "mix-70-30",
    "mix-256",
    "save-restore-960",
    "day-15k",
    "growth-60",
    "growth-3840",
    "replay",
];

/// Number of I/Os in a closed-loop case at scale 1, which takes a few seconds.
const CLOSED_IOS: f64 = 20e6;
/// Bytes logged by the store in the replayed trace at scale 1; the store writes about 20 times as
/// much.
const REPLAY_LOGGED: u64 = 1 << 30;
const DAY_NS: f64 = 86_400e9;
const BUFFER: usize = 1 << 20;

/// Reason why a benchmark case cannot run.
#[derive(Debug, Error)]
pub enum BenchError {
    /// Name that is not in [`CASES`].
    #[error("no case '{0}'; known cases: {list}", list = CASES.join(", "))]
    UnknownCase(String),
    /// The drive has too little spare flash for the limit study.
    #[error("limit-960 requires more than 10 reclaim units of spare flash; exclude it with --case")]
    NoSpareSpace,
    /// The flash geometry or the FTL configuration is invalid.
    #[error(transparent)]
    Device(#[from] ConfigError),
    /// The workload of the case is invalid.
    #[error(transparent)]
    Workload(#[from] SpecError),
    /// The preconditioned state could not be restored.
    #[error(transparent)]
    State(#[from] RestoreError),
    /// A temporary file could not be read or written.
    #[error("bench: {0}")]
    Io(#[from] io::Error),
    /// The generated trace could not be read back.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// Cost of a benchmark case.
#[derive(Clone, Debug)]
pub struct CaseCost {
    /// Name from [`CASES`].
    pub case: String,
    pub(crate) host_ios: u64,
    /// Slots programmed for any reason.
    pub page_programs: u64,
    /// User and system time of the process, summed over all threads.
    pub cpu_s: f64,
    pub(crate) wall_s: f64,
    /// Peak memory use of the process so far.
    pub peak_rss_mib: f64,
    /// Additional figures by name, for example `waf`, `times_life` (virtual time per CPU time) and
    /// `save_s`.
    pub more: Vec<(&'static str, f64)>,
}

impl CaseCost {
    /// Returns every figure by its JSON name; undefined figures (no I/Os, no programs) are NaN.
    pub fn fields(&self) -> Vec<(&'static str, f64)> {
        let per = |n: u64| if n == 0 { f64::NAN } else { self.cpu_s * 1e9 / n as f64 };
        let mut fields = vec![
            ("host_ios", self.host_ios as f64),
            ("cpu_s", self.cpu_s),
            ("wall_s", self.wall_s),
            ("ios_per_cpu_s", self.host_ios as f64 / self.cpu_s),
            ("ns_per_host_io", per(self.host_ios)),
            ("ns_per_page_program", per(self.page_programs)),
            ("peak_rss_mib", self.peak_rss_mib),
        ];
        fields.extend_from_slice(&self.more);
        fields
    }
}

/// Runs benchmark cases on a device. `scale` changes the length of the measured phase, not of the
/// preconditioning.
pub struct Bench {
    device: DeviceConfig,
    scale: f64,
    /// The preconditioned device.
    ready: Option<Ssd>,
    /// CPU time of the limit study.
    limit_cpu_s: Option<f64>,
}

impl Bench {
    /// Prepares cases on `device`; `scale` multiplies the length of the measured phase.
    pub fn new(device: DeviceConfig, scale: f64) -> Self {
        Self { device, scale, ready: None, limit_cpu_s: None }
    }

    /// Runs a case from [`CASES`] and returns its cost.
    pub fn run(&mut self, case: &str) -> Result<CaseCost, BenchError> {
        match case {
            "limit-960" => self.limit(case),
            "ff-960" => self.fast_forward(case),
            "read-qd32" => self.closed(case, 100.0, 32),
            "write-steady" => self.closed(case, 0.0, 32),
            "mix-70-30" => self.closed(case, 70.0, 32),
            // This queue depth keeps a drive with many dies fully busy.
            "mix-256" => self.closed(case, 70.0, 256),
            "save-restore-960" => self.save_restore(case),
            "day-15k" => self.day(case),
            "growth-60" => self.growth(case, Bytes(60_000_000_000), 2, 1),
            "growth-3840" => self.growth(case, Bytes(3_840_000_000_000), 8, 16),
            "replay" => self.replay(case),
            _ => Err(BenchError::UnknownCase(case.to_owned())),
        }
    }

    /// Writes the capacity once sequentially with 128 KiB writes and twice at random with 4 KiB
    /// writes, on a new drive.
    fn fast_forward(&mut self, case: &str) -> Result<CaseCost, BenchError> {
        self.ready = None;
        let meter = Meter::start();
        let mut ssd = Ssd::new(self.device.clone())?;
        let filled = precondition(&mut ssd, 2.0)?;
        let mut row = meter.row(case, &filled);
        row.more.extend(self.limit_cpu_s.map(|limit_s| ("times_limit", row.cpu_s / limit_s)));
        self.ready = Some(ssd);
        Ok(row)
    }

    /// Runs the work of the fast-forward case on the minimal FTL of the limit study.
    fn limit(&mut self, case: &str) -> Result<CaseCost, BenchError> {
        self.ready = None;
        let geometry = &self.device.geometry;
        let meter = Meter::start();
        let slots = self.device.ftl.user_slots as u32;
        let written =
            limit::run(slots, geometry.reclaim_units, geometry.slots_per_reclaim_unit, 2.0, 1002)
                .ok_or(BenchError::NoSpareSpace)?;
        let mut row = meter.row(case, &[]);
        row.host_ios = written.host_slots;
        row.page_programs = written.host_slots + written.moved_slots;
        self.limit_cpu_s = Some(row.cpu_s);
        Ok(row)
    }

    fn ready(&mut self) -> Result<&mut Ssd, BenchError> {
        if self.ready.is_none() {
            self.fast_forward("ff-960")?;
        }
        self.ready.as_mut().ok_or_else(|| unreachable!("just preconditioned"))
    }

    /// Runs random 4 KiB I/Os at a constant queue depth.
    fn closed(&mut self, case: &str, read_pct: f64, depth: u32) -> Result<CaseCost, BenchError> {
        let ios = (CLOSED_IOS * self.scale).ceil() as u64;
        let mix = random(read_pct, |job| (job.queue_depth, job.ios) = (depth, Some(ios)));
        timed(self.ready()?, case, &mix)
    }

    /// Runs a workload of one day at 15,000 IOPS with 70 % reads.
    fn day(&mut self, case: &str) -> Result<CaseCost, BenchError> {
        let duration = (DAY_NS * self.scale).ceil() as u64;
        let day = random(70.0, |job| {
            job.rate_iops = Some(15_000.0);
            job.duration_ns = Some(duration);
        });
        timed(self.ready()?, case, &day)
    }

    fn save_restore(&mut self, case: &str) -> Result<CaseCost, BenchError> {
        let path = std::env::temp_dir().join(format!("writecliff-bench-{}", std::process::id()));
        let result = self.save_restore_at(case, &path);
        let _ = std::fs::remove_file(&path);
        result
    }

    fn save_restore_at(
        &mut self,
        case: &str,
        path: &std::path::Path,
    ) -> Result<CaseCost, BenchError> {
        let ssd = self.ready()?;
        let meter = Meter::start();
        let file = BufWriter::with_capacity(BUFFER, File::create(path)?);
        let file = ssd.save(file).map_err(RestoreError::from)?;
        file.into_inner().map_err(io::IntoInnerError::into_error)?;
        let saved = meter.elapsed();
        ssd.restore_from(&mut BufReader::with_capacity(BUFFER, File::open(path)?))?;
        let mut row = meter.row(case, &[]);
        row.more = vec![
            ("save_cpu_s", saved.0),
            ("save_s", saved.1),
            ("restore_cpu_s", row.cpu_s - saved.0),
            ("restore_s", row.wall_s - saved.1),
            ("state_bytes", std::fs::metadata(path)?.len() as f64),
        ];
        Ok(row)
    }

    /// Fast-forwards the trace of an LSM tree store in 4 KiB writes, using the streams in the
    /// trace. The device has fewer word lines, so that the store fills the drive. Each host I/O is
    /// a 4 KiB write.
    fn replay(&mut self, case: &str) -> Result<CaseCost, BenchError> {
        self.ready = None;
        let store = synthetic::Store {
            table_bytes: 1 << 20,
            chunk_bytes: 4096,
            logged_bytes: ((REPLAY_LOGGED as f64 * self.scale) as u64).max(1 << 27),
            seed: 1,
        };
        let events = synthetic::events(&store);
        let peak = events.footprint(&FileSystem::default(), 1).peak_blocks;
        let device = self.filled_by(peak * 10 / 9)?;
        let meter = Meter::start();
        let trace = events.lay_out(&LayOut {
            capacity_blocks: device.ftl.user_slots as u32,
            file_system: FileSystem::default(),
            repeats: Repeats::Times(1),
            copies: 1,
        })?;
        let options = ReplayOptions {
            scheme: Scheme::Rules,
            streams: device.ftl.streams,
            mistag: 0.0,
            seed: 1,
            timed: None,
        };
        let make = || Ssd::new(device.clone());
        let outcome = replay::run(&make, &trace, &[], &options, &mut Unobserved)?;
        let mut row = meter.row(case, &[]);
        row.host_ios = trace.written_blocks;
        let (host, nand) = outcome.series.last().copied().unwrap_or_default();
        row.page_programs = nand;
        row.more = vec![("waf", nand as f64 / host as f64)];
        Ok(row)
    }

    /// Returns the device with fewer word lines per block, so that its capacity is `user_slots`;
    /// the numbers of blocks and dies and the over-provisioning are unchanged.
    fn filled_by(&self, user_slots: u64) -> Result<DeviceConfig, BenchError> {
        let mut device = self.device.clone();
        let mut shape = device.geometry.shape.clone();
        let bits = shape.cell.page_types();
        let part = user_slots as f64 / device.ftl.user_slots as f64;
        let lines = f64::from(shape.pages_per_block / bits) * part;
        shape.pages_per_block = (lines.round().max(1.0) as u32) * bits;
        let before = device.geometry.raw_bytes().0 as f64;
        device.geometry = Geometry::new(shape)?;
        let user = device.user_capacity.0 as f64 * device.geometry.raw_bytes().0 as f64 / before;
        device.ftl.user_slots = (user / SLOT_BYTES as f64) as u64;
        device.user_capacity = Bytes(device.ftl.user_slots * SLOT_BYTES);
        Ok(device)
    }

    /// Runs random writes on the device with another number of dies, after proportional
    /// preconditioning.
    fn growth(
        &mut self,
        case: &str,
        capacity: Bytes,
        channels: u32,
        dies_per_channel: u32,
    ) -> Result<CaseCost, BenchError> {
        self.ready = None;
        let mut device = self.device.clone();
        let mut shape = device.geometry.shape.clone();
        (shape.channels, shape.dies_per_channel) = (channels, dies_per_channel);
        device.geometry = Geometry::new(shape)?;
        device.user_capacity = capacity;
        device.ftl.user_slots = capacity.0.div_ceil(SLOT_BYTES);
        let mut ssd = Ssd::new(device)?;
        precondition(&mut ssd, 1.0)?;
        let ios = (CLOSED_IOS * self.scale).ceil() as u64;
        timed(&mut ssd, case, &random(0.0, |job| job.ios = Some(ios)))
    }
}

fn precondition(ssd: &mut Ssd, overwrites: f64) -> Result<[StepOutcome; 2], BenchError> {
    let capacity = ssd.config().user_capacity.0;
    // The case has its own seed. A workload with the preconditioning seed would access addresses in
    // the order of their location on flash.
    let seeded = |seed, spec| WorkloadSpec { seed, ..spec };
    let fill = workload(JobSpec {
        pattern: Pattern::Sequential,
        block_sizes: vec![BlockSize { bytes: 131_072, weight: 1.0, sequential_pct: 0.0 }],
        volume_bytes: Some(capacity),
        ..JobSpec::default()
    });
    let volume = (capacity as f64 * overwrites) as u64;
    let overwrite = random(0.0, |job| job.volume_bytes = Some(volume));
    let fill = fast_forward::run(ssd, &seeded(1001, fill), &mut Unobserved)?;
    Ok([fill, fast_forward::run(ssd, &seeded(1002, overwrite), &mut Unobserved)?])
}

fn timed(ssd: &mut Ssd, case: &str, spec: &WorkloadSpec) -> Result<CaseCost, BenchError> {
    let meter = Meter::start();
    let outcome = drive::run(ssd, spec, &mut Unobserved)?;
    let virtual_s = Nanos(outcome.elapsed_ns).as_secs_f64();
    let mut row = meter.row(case, &[outcome]);
    row.more.push(("iops_virtual", row.host_ios as f64 / virtual_s));
    row.more.push(("times_life", virtual_s / row.cpu_s));
    Ok(row)
}

fn random(read_pct: f64, finish: impl FnOnce(&mut JobSpec)) -> WorkloadSpec {
    let mut job = JobSpec { read_pct, queue_depth: 32, ..JobSpec::default() };
    finish(&mut job);
    workload(job)
}

fn workload(job: JobSpec) -> WorkloadSpec {
    WorkloadSpec { name: "bench".to_owned(), jobs: vec![job], seed: 1, interval_ns: 1_000_000_000 }
}

/// CPU and wall time since the creation of this value.
struct Meter {
    cpu_s: f64,
    wall: Instant,
}

impl Meter {
    fn start() -> Self {
        Self { cpu_s: usage().0, wall: Instant::now() }
    }

    fn elapsed(&self) -> (f64, f64) {
        (usage().0 - self.cpu_s, self.wall.elapsed().as_secs_f64())
    }

    fn row(&self, case: &str, steps: &[StepOutcome]) -> CaseCost {
        let (cpu_s, wall_s) = self.elapsed();
        let host: u64 = steps.iter().flat_map(|s| &s.jobs).flat_map(|j| &j.thread_ios).sum();
        let written = |s: &StepOutcome| s.after.host_write_bytes() - s.before.host_write_bytes();
        let nand = |c: &Counters| c.nand_write_bytes().unwrap_or(0);
        let programmed = |s: &StepOutcome| nand(&s.after) - nand(&s.before);
        let last = steps.last().filter(|s| written(s) > 0);
        let waf = last.map(|s| ("waf", programmed(s) as f64 / written(s) as f64));
        CaseCost {
            case: case.to_owned(),
            host_ios: host,
            page_programs: steps.iter().map(programmed).sum::<u64>() / SLOT_BYTES,
            cpu_s,
            wall_s,
            peak_rss_mib: usage().1,
            more: waf.into_iter().collect(),
        }
    }
}

/// Returns the CPU time in seconds (user and system) and the peak resident memory of this process
/// in MiB.
#[cfg(unix)]
fn usage() -> (f64, f64) {
    // SAFETY: `rusage` consists of integers, for which zero is valid, and the call writes only to
    // this structure.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    (seconds(usage.ru_utime) + seconds(usage.ru_stime), usage.ru_maxrss as f64 / 1024.0)
}

/// Returns the wall time and no memory figure on other systems.
#[cfg(not(unix))]
fn usage() -> (f64, f64) {
    use std::sync::OnceLock;
    static START: OnceLock<Instant> = OnceLock::new();
    (START.get_or_init(Instant::now).elapsed().as_secs_f64(), f64::NAN)
}
