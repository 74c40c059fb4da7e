//! The tables of workload files and their keys.

use writecliff_base::keys::{
    Choice, Count, Flag, Inner, Inners, Integer, Integers, Kind, Number, Numbers, Percent,
    PositiveTime, Size, Text, Time,
};
use writecliff_base::located::Table;
use writecliff_base::{Bytes, Nanos};
use writecliff_synthesis::IoModel;

use super::{Read, addresses, block, expect, host_zones, job, mix, own_blocks, segments, zone};
use crate::host_zones::HostZones;
use crate::spec::{
    AddressKind, AddressSpec, Arrival, BlockSize, JobSpec, OwnBlocks, Pattern, SegmentSpec,
    StreamOrder, ZipfGenerator, Zone,
};

/// TOML integers cannot be larger.
const TOP: u64 = i64::MAX as u64;
const SHARE: std::ops::RangeInclusive<f64> = 0.0..=100.0;
/// Rounds of a measurement window.
const WINDOW_ROUNDS: u64 = 5;

const PATTERNS: &[(&str, Pattern)] =
    &[("random", Pattern::Random), ("sequential", Pattern::Sequential)];
const ARRIVALS: &[(&str, Arrival)] = &[("linear", Arrival::Linear), ("poisson", Arrival::Poisson)];
const ORDERS: &[(&str, StreamOrder)] =
    &[("in_turn", StreamOrder::InTurn), ("random", StreamOrder::Random)];
const GENERATORS: &[(&str, ZipfGenerator)] =
    &[("exact", ZipfGenerator::Exact), ("fio", ZipfGenerator::Fio)];
const KINDS: &[(&str, AddressKind)] = &[
    ("uniform", AddressKind::Uniform),
    ("zipf", AddressKind::Zipf),
    ("pareto", AddressKind::Pareto),
    ("normal", AddressKind::Normal),
    ("zoned", AddressKind::Zoned),
    ("hot_cold", AddressKind::HotCold),
    ("sequence", AddressKind::Sequence),
    ("sprandom", AddressKind::Sprandom),
    ("once", AddressKind::Once),
];

/// Number of tables, which are read later.
pub(super) struct Tables;

impl Kind for Tables {
    type Value = usize;

    fn read(&self, table: &Table<'_>, key: &str) -> Read<Option<usize>> {
        table.array_of_tables(key).map(|tables| Some(tables.len()))
    }

    fn takes(&self) -> String {
        "tables".to_owned()
    }

    fn shown(&self, _: &usize) -> String {
        String::new()
    }
}

/// A size in bytes, or a share of the drive up to this percentage.
pub(super) struct SizeOrShare(f64);

impl Kind for SizeOrShare {
    type Value = (Option<u64>, Option<f64>);

    fn read(&self, table: &Table<'_>, key: &str) -> Read<Option<Self::Value>> {
        let text = table.optional_text(key);
        if matches!(text, Ok(Some(text)) if text.trim().ends_with('%')) {
            let share = table.optional_percent(key, 0.0..=self.0)?;
            return Ok(share.map(|share| (None, Some(share))));
        }
        Ok(table.optional_size(key)?.map(|size| (Some(size.0), None)))
    }

    fn takes(&self) -> String {
        format!("size or {}", Percent(0.0..=self.0).takes())
    }

    fn shown(&self, _: &Self::Value) -> String {
        String::new()
    }
}

/// I/Os per second, or bytes per second.
pub(super) struct Rate;

impl Kind for Rate {
    type Value = (Option<f64>, Option<f64>);

    fn read(&self, table: &Table<'_>, key: &str) -> Read<Option<Self::Value>> {
        // The unit decides; anything that is not text gets the usual error below.
        let text = table.optional_text(key).ok().flatten().unwrap_or_default();
        let Some(number) = text.trim().strip_suffix("IOPS") else {
            return Ok(table.optional_rate(key)?.map(|rate| (None, Some(rate.0 as f64))));
        };
        let iops = number.trim_end().replace('_', "").parse().map_err(|_| {
            let hint = Some("write for example rate = \"1000 IOPS\"".to_owned());
            table.error(key, format!("'{text}' is not a number of IOPS"), hint)
        });
        Ok(Some((Some(iops?), None)))
    }

    fn takes(&self) -> String {
        "`\"1000 IOPS\"` or `\"200 MB/s\"`".to_owned()
    }

    fn shown(&self, _: &Self::Value) -> String {
        String::new()
    }
}

writecliff_base::section! {
    pub(super) struct FileKeys {
        name: required Text, "shown in results";
        seed: default Integer(0..=TOP) = 1,
            "seed of all random choices; each further step uses the next number";
        interval: default PositiveTime = Nanos(1_000_000_000),
            "interval of the measured time series";
        precondition: optional Text = "[depends](../guides/workloads.md#preconditioning)",
            "state of the drive before the first step";
        expect: optional Inner<Vec<String>>(expect) = "none",
            "[limits](../guides/workloads.md#limits) on figures";
        step: optional Tables, "the steps, instead of the keys below";
    }
}

writecliff_base::section! {
    pub(super) struct LoadKeys {
        until: optional Choice<bool>(&[("steady", true)]),
            "the jobs form a round, which repeats until steady state";
        max_rounds: optional Integer(WINDOW_ROUNDS..=1_000_000) = "25", "maximum number of rounds";
        measure: default Flag = true,
            "`false`: the step only sets the state of the drive. No figures; a simulated drive \
             does not simulate time for jobs that end by volume or count and have no rate";
        job: optional Inners<JobSpec>(job) = "required without `step` or `rest`",
            "the jobs, which run at the same time";
    }
}

writecliff_base::section! {
    pub(super) struct StepKeys {
        name: optional Text = "`\"step 1\"`, ...", "shown in results";
        rest: optional PositiveTime,
            "no I/O for this time, then a single read; excludes the keys below";
    }
}

writecliff_base::section! {
    pub(super) struct JobKeys {
        name: default Text = "job".to_owned(), "shown in results";
        pattern: default Choice<Pattern>(PATTERNS) = Pattern::Random, "order of addresses";
        read: default Percent(SHARE) = 0.0, "share of the I/Os that read; the rest write";
        trim: default Percent(SHARE) = 0.0, "share of the I/Os that trim";
        mix: optional Inner<MixKeys>(mix),
            "in place of `read`: shares of sequential and random reads and writes";
        block_size: optional Size = "`\"4 KiB\"`", "size of every I/O, 512 B to 1 GiB";
        block_sizes: optional Inners<BlockSize>(block), "a mix of sizes, instead of `block_size`";
        writes: optional Inner<OwnBlocks>(own_blocks),
            "block sizes of writes, if they differ from those of other I/Os";
        trims: optional Inner<OwnBlocks>(own_blocks),
            "block sizes of trims, if they differ from those of other I/Os";
        threads: default Count(1..=4096) = 1, "host threads";
        queue_depth: default Count(1..=65_536) = 1, "outstanding I/Os of each thread";
        offset: optional SizeOrShare(100.0) = "0", "start of the range";
        range: optional SizeOrShare(100.0) = "to the end", "length of the range";
        segments: optional Inner<SegmentSpec>(segments), "use only some segments of the range";
        thread_stride: default Size = Bytes(0),
            "sequential: thread t starts t strides into the range";
        start: default Size = Bytes(0), "sequential: offset into the range at which threads start";
        align: optional Size = "block size", "alignment of addresses";
        addresses: optional Inner<AddressSpec>(addresses) = "uniform",
            "distribution of accesses over the blocks";
        run_ios: default Integer(1..=TOP) = 1,
            "random: number of consecutive I/Os from each random address";
        hole: optional Size, "sequential: distance to skip after each I/O";
        back: optional Size, "sequential: distance to go back after each I/O";
        hole_after: default Size = Bytes(0),
            "skip `hole` after this much data instead of after each I/O";
        files: default Count(1..=1 << 20) = 1,
            "sequential: number of files, which divide the range equally and take turns";
        one_position: default Flag = false,
            "sequential: all operations share one position and continue where the last I/O ended";
        trim_first: default Flag = false,
            "each block is trimmed, then written; excludes `read` and `trim`";
        host_zones: optional Inner<HostZones>(host_zones),
            "zones that the host keeps and writes in order";
        model: optional Inner<IoModel>(writecliff_synthesis::read),
            "a model of a trace, from which the job draws its I/Os in place of the keys above; \
             [`writecliff synthesise`](cli.md#writecliff-synthesise) writes it";
        compressible: default Percent(SHARE) = 0.0,
            "share of the data that a compressing controller can save";
        duplicates: default Percent(SHARE) = 0.0,
            "share of written 4 KiB pages that repeat the last unique page of their thread (fio's \
             `dedupe_percentage`)";
        stream: default Count(0..=65_535) = 0,
            "stream that the job writes to; the meaning and the number of streams [depend on the \
             drive](../guides/streams.md#the-interface-what-a-stream-number-means)";
        streams: optional Numbers(0.0..=65_535.0),
            "several streams for the writes, in place of `stream`";
        stream_order: default Choice<StreamOrder>(ORDERS) = StreamOrder::InTurn,
            "order in which writes use the streams";
        rate: optional Rate = "unlimited", "open-loop arrivals, which do not wait for the drive";
        rate_iops: optional Number(1e-3..=1e12), "`rate` in I/Os per second";
        rate_read: optional Percent(SHARE),
            "share of reads in the rate; reads and writes then follow separate schedules";
        arrival: default Choice<Arrival>(ARRIVALS) = Arrival::Linear,
            "spacing of arrivals; `poisson` requires a rate";
        think: default Time = Nanos(0), "idle time after every `think_after_ios` I/Os of a thread";
        think_after_ios: default Integer(1..=TOP) = 1, "I/Os of a thread between two idle times";
        rate_ignores_think: default Flag = false,
            "think time shifts the schedule of a rate; if `false`, the rate catches up after each \
             pause";
        burst: optional Time,
            "issue I/O for `burst`, then none for `pause`, repeated from the start of the job; not \
             with a rate";
        pause: optional Time, "see `burst`";
        start_delay: default Time = Nanos(0), "delay before the first I/O";
        flush_every_writes: default Integer(0..=TOP) = 0, "flush after this many writes; 0: never";
        dsync: default Flag = false,
            "each write is on the media when it completes (`O_DSYNC`); on a simulated drive a \
             flush follows it. Not with `flush_every_writes`";
        duration: optional Time, "end of the job, by time";
        volume: optional SizeOrShare(1e6),
            "end of the job, by data; shares above 100 % are allowed";
        ios: optional Integer(1..=TOP), "end of the job, by I/Os";
        ends_all: default Flag = false, "all jobs of the step end when this job ends";
        flow_weight: optional Integer(1..=TOP) = "none",
            "weight of each thread in the I/Os of its group: a thread that is ahead waits; not \
             with a rate";
        flow_group: default Integer(0..=TOP) = 0, "number of the group of `flow_weight`";
    }
}

writecliff_base::section! {
    #[derive(Clone, Copy, PartialEq)]
    pub(super) struct MixKeys {
        sequential_read: default Percent(SHARE) = 0.0,
            "share of the I/Os; the four shares add up to 100 %";
        random_read: default Percent(SHARE) = 0.0,
            "share of the I/Os; the four shares add up to 100 %";
        sequential_write: default Percent(SHARE) = 0.0,
            "share of the I/Os; the four shares add up to 100 %";
        random_write: default Percent(SHARE) = 0.0,
            "share of the I/Os; the four shares add up to 100 %";
    }
}

writecliff_base::section! {
    pub(super) struct BlockKeys {
        size: required Size, "size of an I/O";
        weight: default Number(0.0..=1e12) = 1.0, "frequency relative to the other sizes";
        sequential: default Percent(SHARE) = 0.0,
            "random: share of the I/Os of this size that continue in order from a random address; \
             each operation of each thread has its own address";
    }
}

writecliff_base::section! {
    pub(super) struct OwnKeys {
        block_size: optional Size = "required without `block_sizes`", "size of each of these I/Os";
        block_sizes: optional Inners<BlockSize>(block),
            "a mix of sizes, like `block_sizes` of the job";
        align: optional Size = "block size", "alignment of the addresses of these I/Os";
    }
}

writecliff_base::section! {
    pub(super) struct SegmentKeys {
        count: required Integer(1..=1 << 20), "number of segments, all of the same size";
        amount: required Size, "total size of the segments";
        seed: default Integer(0..=TOP) = 1, "seed of the positions of the segments";
    }
}

writecliff_base::section! {
    pub(super) struct AddressKeys {
        kind: required Choice<AddressKind>(KINDS), "distribution of accesses over the blocks";
        theta: optional Number(0.0..=10.0), "of `zipf`: the exponent";
        generator: default Choice<ZipfGenerator>(GENERATORS) = ZipfGenerator::Exact,
            "of `zipf`: `exact` follows the law, as database papers do; `fio` is fio's generator, \
             which is [more skewed](../guides/workloads.md#skewed-addresses)";
        ranks: optional Integer(1..=TOP) = "blocks",
            "of `zipf`: number of ranks; if there are more than blocks, neighbouring ranks share a \
             block. With the ranks of a whole drive, a part of the drive has the same skew";
        hot: optional Percent(0.0..=99.0),
            "of `pareto`: share of the blocks that are hot; with 20 %, they receive 80 % of the \
             accesses";
        deviation: optional Percent(SHARE), "of `normal`: standard deviation of the blocks' ranks";
        zones: optional Inners<Zone>(zone), "of `zoned` and `hot_cold`: the zones";
        blocks: optional Integers(0..=TOP),
            "of `sequence`: numbers of blocks, accessed repeatedly in this order";
        advancing: default Flag = false,
            "of `sequence`: each pass is shifted by the length of the sequence, in blocks";
        spare: optional Percent(0.0..=900.0),
            "of `sprandom`: the drive's flash beyond its capacity";
        regions: optional Integer(1..=10_000) = "100",
            "of `sprandom`: number of regions of the range, each with its own share of repeated \
             writes";
        scatter: optional Size = "[depends](../guides/workloads.md#skewed-addresses)",
            "of `zoned`, `hot_cold`, `zipf`, `pareto` and `normal`: pieces of this size are \
             permuted over the whole range";
        scatter_seed: default Integer(0..=TOP) = 0,
            "seed of the permutation; jobs with the same seed share their hot blocks";
    }
}

writecliff_base::section! {
    pub(super) struct ZoneKeys {
        access: required Percent(SHARE), "share of the accesses";
        size: required Percent(SHARE), "share of the range";
    }
}

writecliff_base::section! {
    pub(super) struct HostZoneKeys {
        size: required Size, "size of a zone";
        capacity: optional Size = "`size`", "writable size of each zone";
        max_open: default Count(0..=4096) = 0,
            "maximum number of zones being written at the same time; 0: any number";
        max_open_per_thread: default Count(0..=4096) = 0,
            "maximum number of zones that each thread writes at the same time; 0: any number";
        begin_full: default Flag = false, "zones are initially full, not empty";
        read_unwritten: default Flag = false,
            "reads access any address; if `false`, they are moved to written data";
        short_writes: default Flag = false, "the last write of a zone may be shorter than a block";
        reset_above: default Percent(SHARE) = 0.0,
            "while more than this share of the range is written, every `reset_every_writes`th \
             write first resets its zone";
        reset_every_writes: default Integer(0..=TOP) = 0,
            "interval of these resets, in writes; 0: never";
    }
}
