//! The definition of a workload; mirrors `writecliff.workload.model` field by field.
//!
//! Names contain units because they are the JSON keys. Fields ending in `_pct` that have a sibling
//! in bytes are shares of the drive: TOML files may contain `range = "25 %"` before the drive is
//! known. [`WorkloadSpec::resolved`] converts them to bytes; Python only sees bytes.

mod derived;

use serde::{Deserialize, Serialize};
use writecliff_base::Bytes;
use writecliff_synthesis::IoModel;

use crate::check::SpecError;
use crate::ends::{LatencyTarget, LeastRate, SteadyEnd};
use crate::host_zones::HostZones;
use crate::io_log::IoLog;

const SECOND_NS: u64 = 1_000_000_000;
/// Jobs that run concurrently; `seed` determines all their random choices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSpec {
    pub name: String,
    pub jobs: Vec<JobSpec>,
    #[serde(default = "one")]
    pub seed: u64,
    /// Length of an interval of the measured time series.
    #[serde(default = "one_second")]
    pub interval_ns: u64,
}

/// One size of a block-size mix, and its share of the I/Os (any positive weight).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockSize {
    pub bytes: u64,
    #[serde(default = "one_f64")]
    pub weight: f64,
    /// Random: share of the I/Os of this size that go on in order from a random address, each
    /// operation of each thread from its own.
    #[serde(default)]
    pub sequential_pct: f64,
}

/// `access_pct` of the accesses go to the next `size_pct` of the range (JESD219 zones).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Zone {
    pub access_pct: f64,
    pub size_pct: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    #[default]
    Random,
    Sequential,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrival {
    #[default]
    Linear,
    Poisson,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AddressKind {
    #[default]
    Uniform,
    Zipf,
    Pareto,
    Normal,
    Zoned,
    HotCold,
    /// Blocks of the range in a given order, over and over.
    Sequence,
    /// The writes that leave the drive as random writes would in the long run; see `sprandom`.
    Sprandom,
    /// Each block of the range once in a pass; see `block_map`.
    Once,
}

/// How writes are distributed over several streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamOrder {
    #[default]
    InTurn,
    Random,
}

/// Block sizes and alignment of one operation, where they differ from the job's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnBlocks {
    pub block_sizes: Vec<BlockSize>,
    #[serde(default)]
    pub align_bytes: Option<u64>,
}

/// Generator of zipf-distributed addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ZipfGenerator {
    /// The exact probabilities of the law, which database papers and YCSB mean.
    #[default]
    Exact,
    /// fio's approximation, with its hash of ranks; see `fio_zipf`.
    Fio,
}

/// How random addresses are spread over the range.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AddressSpec {
    pub kind: AddressKind,
    /// For zipf: exponent.
    pub theta: Option<f64>,
    /// For zipf: generator of the addresses.
    pub generator: ZipfGenerator,
    /// For zipf: number of ranks. If there are more ranks than blocks, neighbouring ranks share a
    /// block. `None`: one rank per block.
    pub ranks: Option<u64>,
    /// For pareto: share of hot blocks, in percent. They take 100 % minus this share of the
    /// accesses.
    pub hot_pct: Option<f64>,
    /// For normal: standard deviation of the ranks, in percent of the blocks.
    pub deviation_pct: Option<f64>,
    pub zones: Vec<Zone>,
    /// For sequence: numbers of blocks.
    pub blocks: Vec<u64>,
    /// For sequence: each pass is shifted by the length of the sequence, in blocks.
    pub advancing: bool,
    /// For sprandom: spare flash, in percent of the range.
    pub spare_pct: Option<f64>,
    /// For sprandom: number of regions of the flash, each with its own share of valid data.
    pub regions: Option<u64>,
    /// Size of the pieces that are permuted over the range. `None`: zones are contiguous, and ranks
    /// of zipf, pareto and normal are scattered block by block.
    pub scatter_bytes: Option<u64>,
    /// Seed of the permutation. All jobs with the same seed and number of pieces share it.
    pub scatter_seed: u64,
}

/// PTS active-range segments: `count` equal, non-touching parts of the range that together hold
/// `amount_bytes`. Their starts are drawn from their own seed, so that all steps of a test, which
/// have different workload seeds, use the same segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentSpec {
    pub count: u64,
    pub amount_bytes: u64,
    #[serde(default = "one")]
    pub seed: u64,
}

/// One kind of load, issued by `threads` threads of `queue_depth` outstanding I/Os each.
///
/// Rates, volumes and I/O counts are totals over the job's threads. A job ends at the first of
/// `duration_ns`, `volume_bytes` and `ios` that it reaches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches, as in the file")]
pub struct JobSpec {
    pub name: String,
    pub pattern: Pattern,
    pub read_pct: f64,
    pub trim_pct: f64,
    /// Random: share of the reads that continue where the thread's last read ended.
    pub sequential_read_pct: f64,
    /// Random: share of the writes that continue where the thread's last write ended.
    pub sequential_write_pct: f64,
    /// Of all operations that have none of their own below.
    pub block_sizes: Vec<BlockSize>,
    pub writes: Option<OwnBlocks>,
    pub trims: Option<OwnBlocks>,
    pub threads: u32,
    pub queue_depth: u32,
    pub offset_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset_pct: Option<f64>,
    /// `None`: to the end of the device.
    pub range_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range_pct: Option<f64>,
    pub segments: Option<SegmentSpec>,
    /// Sequential thread t starts `t * stride` into the range.
    pub thread_stride_bytes: u64,
    /// Sequential: the first I/O of a thread begins so much further on in the range.
    pub start_bytes: u64,
    /// Sequential: the same for writes; `None`: as reads.
    pub write_start_bytes: Option<u64>,
    /// `None`: the block size of each I/O.
    pub align_bytes: Option<u64>,
    pub addresses: AddressSpec,
    /// Random: consecutive I/Os from each random address on.
    pub run_ios: u64,
    /// Sequential: left out after each I/O; below 0, gone back.
    pub hole_bytes: i64,
    /// Sequential: holes come after this much instead of after each I/O.
    pub hole_after_bytes: u64,
    /// Sequential: equal parts of the range, whose I/Os follow each other in turn.
    pub files: u32,
    /// Sequential: all operations continue from one position, in place of one each.
    pub one_position: bool,
    /// Each block is trimmed, then written. `read_pct` and `trim_pct` must be 0.
    pub trim_first: bool,
    /// Zones that the host keeps: writes go in order within each.
    pub host_zones: Option<HostZones>,
    /// I/Os of a log, or drawn from a model of a trace, in place of generated ones.
    pub log: Option<IoLog>,
    pub model: Option<IoModel>,
    pub compressible_pct: f64,
    /// Share of writes that duplicate the data of the thread's last write that was not a duplicate.
    pub duplicate_pct: f64,
    pub stream: u16,
    /// Several streams for the writes, in place of `stream`.
    pub streams: Vec<u16>,
    pub stream_order: StreamOrder,
    pub rate_iops: Option<f64>,
    pub rate_bytes_per_s: Option<f64>,
    /// Share of the rate that belongs to reads. Reads and writes then each follow a schedule of
    /// their own; `None`: one schedule for all operations.
    pub rate_read_pct: Option<f64>,
    pub arrival: Arrival,
    /// Idle time after every `think_after_ios` I/Os of a thread.
    pub think_ns: u64,
    pub think_after_ios: u64,
    /// Think time moves the schedule of a rate, which otherwise catches up after it.
    pub rate_ignores_think: bool,
    /// Alternates between issuing for `burst_ns` and pausing for `pause_ns`; 0 for no pauses. The
    /// cycle is counted from the job's start, regardless of outstanding I/Os.
    pub burst_ns: u64,
    pub pause_ns: u64,
    pub start_delay_ns: u64,
    /// Least length of the first part of the job, which is not measured. It ends with the first I/O
    /// that completes after this time. `duration_ns`, `ios` and the schedule of a rate start at its
    /// end, `volume_bytes` at its start, as in fio.
    pub ramp_ns: u64,
    /// Writes from one flush to the next; 0 for no flushes.
    pub flush_every_writes: u64,
    /// Each write is on the media when it completes (`O_DSYNC`). On a simulated drive the host
    /// sends a flush behind each write, which is a part of the write.
    pub dsync: bool,
    pub duration_ns: Option<u64>,
    pub volume_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_pct: Option<f64>,
    pub ios: Option<u64>,
    /// All jobs end when this one has ended.
    pub ends_all: bool,
    /// Share of the I/Os among the jobs of its `flow_group`: each thread waits while it is ahead.
    pub flow_weight: u64,
    pub flow_group: u64,
    pub until_steady: Option<SteadyEnd>,
    pub latency_target: Option<LatencyTarget>,
    pub least_rates: Vec<LeastRate>,
}

impl Default for JobSpec {
    fn default() -> Self {
        Self {
            name: "job".to_owned(),
            pattern: Pattern::Random,
            read_pct: 0.0,
            trim_pct: 0.0,
            sequential_read_pct: 0.0,
            sequential_write_pct: 0.0,
            block_sizes: vec![BlockSize { bytes: 4096, weight: 1.0, sequential_pct: 0.0 }],
            writes: None,
            trims: None,
            threads: 1,
            queue_depth: 1,
            offset_bytes: 0,
            offset_pct: None,
            range_bytes: None,
            range_pct: None,
            segments: None,
            thread_stride_bytes: 0,
            start_bytes: 0,
            write_start_bytes: None,
            align_bytes: None,
            addresses: AddressSpec::default(),
            run_ios: 1,
            hole_bytes: 0,
            hole_after_bytes: 0,
            files: 1,
            one_position: false,
            trim_first: false,
            host_zones: None,
            log: None,
            model: None,
            compressible_pct: 0.0,
            duplicate_pct: 0.0,
            stream: 0,
            streams: Vec::new(),
            stream_order: StreamOrder::InTurn,
            rate_iops: None,
            rate_bytes_per_s: None,
            rate_read_pct: None,
            arrival: Arrival::Linear,
            think_ns: 0,
            think_after_ios: 1,
            rate_ignores_think: false,
            burst_ns: 0,
            pause_ns: 0,
            start_delay_ns: 0,
            ramp_ns: 0,
            flush_every_writes: 0,
            dsync: false,
            duration_ns: None,
            volume_bytes: None,
            volume_pct: None,
            ios: None,
            ends_all: false,
            flow_weight: 0,
            flow_group: 0,
            until_steady: None,
            latency_target: None,
            least_rates: Vec::new(),
        }
    }
}

impl WorkloadSpec {
    /// Parses and checks the JSON that the Python model's `to_json` writes.
    pub fn from_json(text: &str) -> Result<Self, SpecError> {
        let spec: Self =
            serde_json::from_str(text).map_err(|error| SpecError::Json(error.to_string()))?;
        spec.check()?;
        Ok(spec)
    }

    /// Serializes to the JSON that `workload_from_mapping` of the Python model reads.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("plain fields with text keys always serialise")
    }

    /// Returns the workload for a drive of `capacity`, with shares of the drive converted to bytes.
    #[must_use]
    pub fn resolved(&self, capacity: Bytes) -> Self {
        let jobs = self.jobs.iter().map(|job| job.resolved(capacity)).collect();
        Self { jobs, ..self.clone() }
    }
}

fn one() -> u64 {
    1
}

fn one_f64() -> f64 {
    1.0
}

fn one_second() -> u64 {
    SECOND_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `Workload("w", (Job(ios=1),)).to_json()` of the Python model writes.
    const FROM_PYTHON: &str = r#"{"name":"w","jobs":[{"name":"job","pattern":"random",
        "read_pct":0.0,"trim_pct":0.0,"sequential_read_pct":0.0,"sequential_write_pct":0.0,
        "block_sizes":[{"bytes":4096,"weight":1.0,"sequential_pct":0.0}],"writes":null,"trims":null,
        "threads":1,"queue_depth":1,"offset_bytes":0,"range_bytes":null,"segments":null,
        "thread_stride_bytes":0,"start_bytes":0,"write_start_bytes":null,"align_bytes":null,
        "addresses":{"kind":"uniform","theta":null,"generator":"exact","ranks":null,
        "hot_pct":null,"deviation_pct":null,"zones":[],
        "blocks":[],"advancing":false,"spare_pct":null,"regions":null,
        "scatter_bytes":null,"scatter_seed":0},"run_ios":1,"hole_bytes":0,
        "hole_after_bytes":0,"files":1,"one_position":false,"trim_first":false,"host_zones":null,
        "log":null,"model":null,"compressible_pct":0.0,"duplicate_pct":0.0,"stream":0,"streams":[],
        "stream_order":"in_turn","rate_iops":null,"rate_bytes_per_s":null,
        "rate_read_pct":null,"arrival":"linear",
        "think_ns":0,"think_after_ios":1,"rate_ignores_think":false,
        "burst_ns":0,"pause_ns":0,"start_delay_ns":0,"ramp_ns":0,
        "flush_every_writes":0,"dsync":false,"duration_ns":null,"volume_bytes":null,"ios":1,
        "ends_all":false,"flow_weight":0,"flow_group":0,"until_steady":null,"latency_target":null,
        "least_rates":[]}],"seed":1,"interval_ns":1000000000}"#;

    #[test]
    fn defaults_are_those_of_the_python_model() {
        let spec = WorkloadSpec::from_json(FROM_PYTHON).unwrap();
        let job = JobSpec { ios: Some(1), ..JobSpec::default() };
        assert_eq!(spec.jobs, [job]);
        let short = WorkloadSpec::from_json(r#"{"name":"w","jobs":[{"ios":1}]}"#).unwrap();
        assert_eq!(short, spec);
    }

    /// Python builds its classes from these keys, so none may be new, missing or renamed.
    #[test]
    fn json_has_the_keys_of_the_python_model_and_no_others() {
        let ours = WorkloadSpec::from_json(FROM_PYTHON).unwrap().to_json();
        let ours: serde_json::Value = serde_json::from_str(&ours).unwrap();
        let theirs: serde_json::Value = serde_json::from_str(FROM_PYTHON).unwrap();
        assert_eq!(ours, theirs);
    }

    #[test]
    fn unknown_and_mistyped_fields_are_rejected() {
        for (json, part) in [
            (r#"{"name":"w","jobs":[{"ios":1,"iops":5}]}"#, "unknown field `iops`"),
            (r#"{"name":"w","jobs":[{"ios":-1}]}"#, "-1"),
            (r#"{"name":"w","jobs":[{"ios":1,"pattern":"rnd"}]}"#, "unknown variant `rnd`"),
            ("{", "EOF"),
        ] {
            let error = WorkloadSpec::from_json(json).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn shares_of_the_drive_become_bytes() {
        let job = JobSpec {
            offset_pct: Some(25.0),
            range_pct: Some(50.0),
            volume_pct: Some(200.0),
            ..JobSpec::default()
        };
        let job = job.resolved(Bytes(1 << 30));
        assert_eq!((job.offset_bytes, job.range_bytes), (1 << 28, Some(1 << 29)));
        assert_eq!(job.volume_bytes, Some(2 << 30));
        assert_eq!((job.offset_pct, job.range_pct, job.volume_pct), (None, None, None));
        let odd = JobSpec { range_pct: Some(33.3), ..JobSpec::default() };
        assert_eq!(odd.range_on(Bytes(120_034_123_776)).0 % 4096, 0);
    }
}
