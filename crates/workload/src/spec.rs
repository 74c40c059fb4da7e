//! Workload definition, which mirrors `writecliff.workload.model` field by field.
//!
//! Field names contain units because they are the JSON keys. The keys of TOML files are declared
//! next to the fields, with their kind, default and the description for the reference page. Fields
//! ending in `_pct` that have a sibling in bytes are percentages of the drive: TOML files may
//! contain `range = "25 %"` before the drive is known. [`WorkloadSpec::resolved`] converts these
//! percentages to bytes; Python only sees bytes.

mod derived;

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use writecliff_base::keys::{
    Choice, Count, Flag, Inner, Inners, Integer, Integers, Number, Percent, Section, Short, Size,
    Text, Time,
};
use writecliff_base::{Bytes, Nanos, section, words};
use writecliff_synthesis::{IoLog, IoModel};

use crate::check::{RATE_MAX, RATE_MIN, SpecError};
use crate::ends::{LatencyTarget, LeastRate, SteadyEnd};
use crate::host_zones::HostZones;
use crate::toml_form::kinds::{
    Distance, IopsOrRate, RateOrIops, ShareOrSize, SizeOrShare, StreamNumbers,
};
use crate::toml_form::{MixKeys, own_blocks};

/// Maximum TOML integer.
pub(crate) const TOP: u64 = i64::MAX as u64;
pub(crate) const SHARE: RangeInclusive<f64> = 0.0..=100.0;
const SECOND_NS: u64 = 1_000_000_000;

/// Jobs that run concurrently; `seed` determines all their random choices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSpec {
    /// Name of the workload in results.
    pub name: String,
    /// Jobs, in the order of their index in results.
    pub jobs: Vec<JobSpec>,
    /// Seed of all random choices; 1 if the file does not set it.
    #[serde(default = "one_u64")]
    pub seed: u64,
    /// Interval length of the measured time series.
    #[serde(default = "one_second")]
    pub interval_ns: u64,
}

words! {
    /// Order of the addresses.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Pattern {
        /// Independent draws from the address distribution.
        #[default]
        Random = "random",
        /// Ascending addresses, each starting at the end of the previous I/O.
        Sequential = "sequential",
    }
    /// Arrival process of a job with a rate.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Arrival {
        /// Constant intervals.
        #[default]
        Linear = "linear",
        /// Exponentially distributed intervals (Poisson process).
        Poisson = "poisson",
    }
    /// Distribution of random addresses.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum AddressKind {
        /// All addresses are equally likely.
        #[default]
        Uniform = "uniform",
        /// Zipf's law over the blocks of the range.
        Zipf = "zipf",
        /// Pareto distribution, as in fio.
        Pareto = "pareto",
        /// Normal distribution around an address.
        Normal = "normal",
        /// Consecutive zones, each with a percentage of the accesses; see `AccessZone`.
        Zoned = "zoned",
        /// A percentage of the accesses goes to a percentage of the range.
        HotCold = "hot_cold",
        /// Blocks of the range in a specified, repeated order.
        Sequence = "sequence",
        /// Writes that leave the drive in the same state as long random writes; see `sprandom`.
        Sprandom = "sprandom",
        /// Random order where a pass accesses each block of the range once; see `block_map`.
        Once = "once",
    }
    /// Distribution of writes over several streams.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum StreamOrder {
        /// Round robin.
        #[default]
        InTurn = "in_turn",
        /// A random stream for each write.
        Random = "random",
    }
    /// Generator of zipf-distributed addresses.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum ZipfGenerator {
        /// Exact probabilities of Zipf's law, as in database papers and YCSB.
        #[default]
        Exact = "exact",
        /// fio's approximation, with its hash of ranks; see `skewed`.
        Fio = "fio",
    }
}

section! {
    /// One size of a block-size mix, and its percentage of the I/Os.
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct BlockSize {
        bytes as size: required Size -> u64, "size of an I/O";
        #[serde(default = "one_f64")]
        weight: default Number(0.0..=1e12) = 1.0, "frequency relative to the other sizes";
        #[serde(default)]
        sequential_pct as sequential: default Percent(SHARE) = 0.0,
            "random: percentage of the I/Os of this size that continue sequentially from a random \
             address; each operation of each thread has a separate address";
    }
}

section! {
    /// Block sizes and alignment of one operation, if they differ from the job's.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct OwnBlocks {
        + block_size: Size = "required without `block_sizes`", "size of each of these I/Os";
        block_sizes: or_default Inners<BlockSize>(Section::read_whole),
            "a mix of sizes, like `block_sizes` of the job";
        #[serde(default)]
        align_bytes as align: optional Size -> u64 = "block size",
            "alignment of the addresses of these I/Os";
    }
}

section! {
    /// `access_pct` of the accesses go to the next `size_pct` of the range (JESD219 zones).
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Zone {
        access_pct as access: required Percent(SHARE), "percentage of the accesses";
        size_pct as size: required Percent(SHARE), "percentage of the range";
    }
}

section! {
    /// Distribution of random addresses over the range.
    #[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct AddressSpec {
        kind: required Choice<AddressKind>(AddressKind::WORDS),
            "distribution of accesses over the blocks";
        theta: optional Number(0.0..=10.0), "of `zipf`: the exponent";
        generator: default Choice<ZipfGenerator>(ZipfGenerator::WORDS) = ZipfGenerator::Exact,
            "of `zipf`: `exact` follows the law, as database papers do; `fio` is fio's generator, \
             which is [more skewed](../guides/workloads.md#skewed-addresses)";
        ranks: optional Integer(1..=TOP) = "blocks",
            "of `zipf`: number of ranks; if there are more ranks than blocks, neighbouring ranks \
             share a block. With the ranks of a whole drive, a range of the drive has the same \
             skew";
        /// The hot blocks receive 100 % minus this percentage of the accesses.
        hot_pct as hot: optional Percent(0.0..=99.0),
            "of `pareto`: percentage of hot blocks; 20 % of the blocks, for example, receive 80 % \
             of the accesses";
        deviation_pct as deviation: optional Percent(SHARE),
            "of `normal`: standard deviation of the blocks' ranks";
        zones: or_default Inners<Zone>(Section::read_whole),
            "of `zoned` and `hot_cold`: the zones";
        blocks: or_default Integers(0..=TOP),
            "of `sequence`: block numbers, which are accessed repeatedly in this order";
        advancing: default Flag = false,
            "of `sequence`: each pass is shifted by the length of the sequence, in blocks";
        spare_pct as spare: optional Percent(0.0..=900.0),
            "of `sprandom`: the drive's flash beyond its capacity";
        /// Each region of the flash has a specific fraction of valid data.
        regions: optional Integer(1..=10_000) = "100",
            "of `sprandom`: number of regions of the range, each with a separate fraction of \
             repeated writes";
        /// `None`: zones are contiguous, and the ranks of zipf, pareto and normal are scattered
        /// block by block.
        scatter_bytes as scatter: optional Size -> u64
            = "[depends](../guides/workloads.md#skewed-addresses)",
            "of `zoned`, `hot_cold`, `zipf`, `pareto` and `normal`: pieces of this size are \
             permuted over the whole range";
        scatter_seed: default Integer(0..=TOP) = 0,
            "seed of the permutation; jobs with the same seed share their hot blocks";
    }
}

section! {
    /// PTS active-range segments: `count` equal, non-touching portions of the range, which together
    /// contain `amount_bytes`. The starts of the segments are drawn from a separate seed, so that
    /// all steps of a test, which have different workload seeds, use the same segments.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct SegmentSpec {
        count: required Integer(1..=1 << 20), "number of segments, all of the same size";
        amount_bytes as amount: required Size -> u64, "total size of the segments";
        #[serde(default = "one_u64")]
        seed: default Integer(0..=TOP) = 1, "seed of the segment positions";
    }
}

section! {
    /// One type of load, issued by `threads` threads with `queue_depth` outstanding I/Os each.
    ///
    /// Rates, volumes and I/O counts are totals over the job's threads. A job ends when it reaches
    /// `duration_ns`, `volume_bytes` or `ios`, whichever is first.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct JobSpec: Default {
        name: default Text = "job".to_owned(), "shown in results";
        pattern: default Choice<Pattern>(Pattern::WORDS) = Pattern::Random, "order of addresses";
        read_pct as read: default Percent(SHARE) = 0.0,
            "percentage of the I/Os that are reads; all other I/Os are writes";
        trim_pct as trim: default Percent(SHARE) = 0.0, "percentage of the I/Os that are trims";
        sequential_read_pct: unread f64,
            "Random: share of the reads that continue where the thread's last read ended.";
        sequential_write_pct: unread f64,
            "Random: share of the writes that continue where the thread's last write ended.";
        + mix: Inner(MixKeys::read_whole),
            "instead of `read`: percentages of sequential and random reads and writes";
        + block_size: Size = "`\"4 KiB\"`", "size of every I/O, 512 B to 1 GiB";
        /// Applies to all operations without their own block sizes below.
        block_sizes: default Inners<BlockSize>(Section::read_whole)
            = vec![BlockSize { bytes: 4096, weight: 1.0, sequential_pct: 0.0 }],
            "a mix of sizes, instead of `block_size`";
        writes: optional Inner<OwnBlocks>(own_blocks),
            "block sizes of writes, if they differ from those of other I/Os";
        trims: optional Inner<OwnBlocks>(own_blocks),
            "block sizes of trims, if they differ from those of other I/Os";
        threads: default Count(1..=4096) = 1, "host threads";
        queue_depth: default Count(1..=65_536) = 1, "outstanding I/Os per thread";
        offset_bytes as offset: or_default SizeOrShare(100.0) = "0", "start of the range";
        #[serde(skip_serializing_if = "Option::is_none")]
        offset_pct as offset: hidden ShareOrSize(100.0), "Start in percent of the drive.";
        range_bytes as range: optional SizeOrShare(100.0) = "to the end", "length of the range";
        #[serde(skip_serializing_if = "Option::is_none")]
        range_pct as range: hidden ShareOrSize(100.0), "Length in percent of the drive.";
        segments: optional Inner<SegmentSpec>(Section::read_whole),
            "use only some segments of the range";
        thread_stride_bytes as thread_stride: default Size -> u64 = Bytes(0),
            "sequential: thread t starts t strides into the range";
        start_bytes as start: default Size -> u64 = Bytes(0),
            "sequential: offset into the range where threads start";
        write_start_bytes: unread Option<u64>, "Start of writes; `None`: as reads.";
        align_bytes as align: optional Size -> u64 = "block size", "alignment of addresses";
        addresses: or_default Inner<AddressSpec>(Section::read_whole) = "uniform",
            "distribution of accesses over the blocks";
        run_ios: default Integer(1..=TOP) = 1,
            "random: number of consecutive I/Os from each random address";
        /// Below 0: distance to go back.
        hole_bytes as hole: or_default Distance, "sequential: distance to skip after each I/O";
        + back: Size, "sequential: distance to go back after each I/O";
        hole_after_bytes as hole_after: default Size -> u64 = Bytes(0),
            "skip `hole` after this much data instead of after each I/O";
        files: default Count(1..=1 << 20) = 1,
            "sequential: number of files, which divide the range equally and take turns";
        one_position: default Flag = false,
            "sequential: all operations share one position and continue where the last I/O ended";
        trim_first: default Flag = false,
            "each block is trimmed, then written; excludes `read` and `trim`";
        host_zones: optional Inner<HostZones>(Section::read_whole),
            "zones that the host maintains and writes sequentially";
        log: unread Option<IoLog>, "I/Os of a log in place of generated ones.";
        model: optional Inner<IoModel>(writecliff_synthesis::read),
            "model of a trace that generates the job's I/Os instead of the keys above; created by \
             [`writecliff trace synthesise`](cli.md#writecliff-trace-synthesise)";
        compressible_pct as compressible: default Percent(SHARE) = 0.0,
            "percentage of the data that a compressing controller can save";
        duplicate_pct as duplicates: default Percent(SHARE) = 0.0,
            "percentage of written 4 KiB pages that repeat the thread's last unique page (fio's \
             `dedupe_percentage`)";
        stream: default Short = 0,
            "stream that the job writes to; the meaning and the number of streams [depend on the \
             drive](../guides/streams.md#the-interface-what-a-stream-number-means)";
        streams: or_default StreamNumbers, "several streams for the writes, instead of `stream`";
        stream_order: default Choice<StreamOrder>(StreamOrder::WORDS) = StreamOrder::InTurn,
            "order in which writes use the streams";
        rate_iops as rate: optional IopsOrRate = "unlimited",
            "open-loop arrivals, which do not wait for the drive";
        rate_bytes_per_s as rate: hidden RateOrIops, "Rate in bytes per second.";
        + rate_iops: Number(RATE_MIN..=RATE_MAX), "`rate` in I/Os per second";
        rate_read_pct as rate_read: optional Percent(SHARE),
            "percentage of reads in the rate; reads and writes then follow separate schedules";
        arrival: default Choice<Arrival>(Arrival::WORDS) = Arrival::Linear,
            "spacing of arrivals; `poisson` requires a rate";
        think_ns as think: default Time -> u64 = Nanos(0),
            "idle time after every `think_after_ios` I/Os of a thread";
        think_after_ios: default Integer(1..=TOP) = 1,
            "number of I/Os of a thread between two idle times";
        rate_ignores_think: default Flag = false,
            "think time shifts the schedule of a rate; if `false`, the rate catches up after each \
             pause";
        /// The cycle is counted regardless of outstanding I/Os; 0 for no pauses.
        burst_ns as burst: or_default Time -> u64,
            "issue I/O for `burst`, then none for `pause`, repeated from the start of the job; not \
             with a rate";
        pause_ns as pause: or_default Time -> u64, "see `burst`";
        start_delay_ns as start_delay: default Time -> u64 = Nanos(0),
            "delay before the first I/O";
        ramp_ns: unread u64,
            "Least length of the first part of the job, which is not measured. It ends with the \
             first I/O that completes after this time. `duration_ns`, `ios` and the schedule of a \
             rate start at its end, `volume_bytes` at its start, as in fio.";
        flush_every_writes: default Integer(0..=TOP) = 0, "flush after this many writes; 0: never";
        dsync: default Flag = false,
            "each write is on the media when it completes (`O_DSYNC`); on a simulated drive a \
             flush follows it. Not with `flush_every_writes`";
        duration_ns as duration: optional Time -> u64, "end of the job, by time";
        volume_bytes as volume: optional SizeOrShare(1e6),
            "end of the job, by data; percentages above 100 % are allowed";
        #[serde(skip_serializing_if = "Option::is_none")]
        volume_pct as volume: hidden ShareOrSize(1e6), "Volume in percent of the drive.";
        ios: optional Integer(1..=TOP), "end of the job, by I/Os";
        ends_all: default Flag = false, "all jobs of the step end when this job ends";
        flow_weight: or_default Integer(1..=TOP) = "none",
            "weight of each thread in the I/Os of its group: a thread that is ahead waits; not \
             with a rate";
        flow_group: default Integer(0..=TOP) = 0, "number of the group of `flow_weight`";
        until_steady: unread Option<SteadyEnd>, "Ends the job in steady state.";
        latency_target: unread Option<LatencyTarget>, "Searches for a queue depth.";
        least_rates: unread Vec<LeastRate>, "Ends the job when it is slower.";
    }
}

impl WorkloadSpec {
    /// Parses and validates the JSON written by the Python model's `to_json`.
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

    /// Returns the workload for a drive of capacity `capacity`, with percentages of the drive
    /// converted to bytes.
    #[must_use]
    pub fn resolved(&self, capacity: Bytes) -> Self {
        let jobs = self.jobs.iter().map(|job| job.resolved(capacity)).collect();
        Self { jobs, ..self.clone() }
    }
}

fn one_u64() -> u64 {
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

    /// Output of the Python model's `Workload("w", (Job(ios=1),)).to_json()`.
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

    /// Python builds its classes from these keys, so no key may be added, missing or renamed.
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
