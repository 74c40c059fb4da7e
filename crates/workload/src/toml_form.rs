//! Workload files in TOML.
//!
//! ```toml
//! name = "JESD219 enterprise"
//! seed = 7                     # optional, like every key with a default
//! interval = "1 s"
//!
//! [[job]]
//! name = "mix"
//! read = "40 %"
//! block_sizes = [{ size = "4 KiB", weight = 67 }, { size = "8 KiB", weight = 10 }]
//! align = "4 KiB"
//! threads = 4
//! queue_depth = 256
//! addresses = { kind = "zoned", zones = [
//!     { access = "50 %", size = "5 %" },
//!     { access = "30 %", size = "15 %" },
//!     { access = "20 %", size = "80 %" },
//! ] }
//! volume = "200 %"             # of the drive; or a size
//! ```
//!
//! Numbers with a unit are text. `offset`, `range` and `volume` are sizes or shares of the drive;
//! `rate` is `"1000 IOPS"` or `"200 MB/s"`.
//!
//! Instead of `[[job]]` a file may have steps, which run one after the other:
//!
//! ```toml
//! name = "a mix on a used drive"
//! precondition = "sustained"   # the state that the file begins in
//!
//! [[step]]
//! rest = "10 min"              # nothing, then a single read
//!
//! [[step]]
//! name = "mix"
//! until = "steady"             # rounds of the jobs until steady state
//!
//! [[step.job]]
//! read = "70 %"
//! duration = "60 s"            # of a round
//! ```
//!
//! Limits on figures of the run, by the figure's name:
//!
//! ```toml
//! [expect]
//! iops = ">= 100000"
//! "reads/p99.9" = "<= 2 ms"
//! ```

mod keys;

use writecliff_base::Bytes;
use writecliff_base::keys::{Section, SectionKeys};
use writecliff_base::located::{LocatedError, LocatedToml, Table};

use self::keys::{
    AddressKeys, BlockKeys, FileKeys, HostZoneKeys, JobKeys, LoadKeys, MixKeys, OwnKeys,
    SegmentKeys, StepKeys, ZoneKeys,
};
use crate::check::SpecError;
use crate::file::{FileStep, WorkloadFile};
use crate::host_zones::HostZones;
use crate::spec::{AddressSpec, BlockSize, JobSpec, OwnBlocks, SegmentSpec, WorkloadSpec, Zone};

type Read<T> = Result<T, LocatedError>;

/// Rounds after which a load that is not steady gives up, as in the PTS.
const MAX_ROUNDS: u64 = 25;

/// What the steps of a file have in common.
#[derive(Clone, Copy)]
struct Common {
    seed: u64,
    interval_ns: u64,
}

/// Returns the tables of workload files and their keys, in the order of the reference page.
pub fn workload_keys() -> Vec<SectionKeys> {
    let several = |name, mut keys: Vec<_>, more: Vec<_>| {
        keys.extend(more);
        SectionKeys { name, is_required: true, keys }
    };
    vec![
        several("", FileKeys::keys(), LoadKeys::keys()),
        several("[[step]]", StepKeys::keys(), LoadKeys::keys()),
        JobKeys::documented("[[job]]", true),
        MixKeys::documented("[job.mix]", false),
        BlockKeys::documented("[[job.block_sizes]]", false),
        OwnKeys::documented("[job.writes]` and `[job.trims]", false),
        SegmentKeys::documented("[job.segments]", false),
        AddressKeys::documented("[job.addresses]", false),
        ZoneKeys::documented("[[job.addresses.zones]]", false),
        HostZoneKeys::documented("[job.host_zones]", false),
    ]
}

pub(crate) fn read(text: &str, file_name: &str) -> Result<WorkloadFile, SpecError> {
    let toml = LocatedToml::parse(text, file_name)?;
    let root = toml.root();
    let FileKeys { name, seed, interval, precondition, expect, step } = Section::read_keys(&root)?;
    let common = Common { seed, interval_ns: interval.0 };
    let steps = if step.unwrap_or(0) == 0 {
        vec![load(root, name.clone(), common)?]
    } else {
        if root.has("job") {
            let hint = "put the jobs into a step, as [[step.job]]".to_owned();
            let message = "job and step are both given";
            return Err(root.error("job", message, Some(hint)).into());
        }
        let steps = steps(root.array_of_tables("step")?, common);
        root.finish()?;
        steps?
    };
    Ok(WorkloadFile { name, precondition, expect: expect.unwrap_or_default(), steps })
}

/// The limits of the table `expect`, each as one text.
fn expect(table: Table<'_>) -> Read<Vec<String>> {
    let limits = table.keys().into_iter().map(|figure| {
        let text = table.required_text(figure)?.trim();
        let number = text.trim_start_matches(['<', '>']).trim_start_matches('=');
        let number = number.split_whitespace().next().unwrap_or_default();
        if !text.starts_with(['<', '>']) || number.parse::<f64>().is_err() {
            let hint = "for example \">= 100000\" or \"<= 2 ms\"".to_owned();
            let message = format!("'{text}' is no limit");
            return Err(table.error(figure, message, Some(hint)));
        }
        Ok(format!("{figure} {text}"))
    });
    let limits = limits.collect::<Read<Vec<_>>>()?;
    table.finish()?;
    Ok(limits)
}

fn steps(tables: Vec<Table<'_>>, common: Common) -> Read<Vec<FileStep>> {
    let mut steps: Vec<FileStep> = Vec::with_capacity(tables.len());
    for (number, table) in tables.into_iter().enumerate() {
        let keys = StepKeys::read_keys(&table)?;
        if steps.iter().any(|step| Some(&step.workload.name) == keys.name.as_ref()) {
            return Err(table.error("name", "another step has this name", None));
        }
        let name = keys.name.unwrap_or_else(|| format!("step {}", number + 1));
        let seed = common.seed.wrapping_add(number as u64);
        let common = Common { seed, ..common };
        steps.push(match keys.rest {
            Some(time) => rest(table, time.0, name, common)?,
            None => load(table, name, common)?,
        });
    }
    Ok(steps)
}

/// A step without I/O; it ends with a single read, which finds the drive at rest.
fn rest(table: Table<'_>, rest_ns: u64, name: String, common: Common) -> Read<FileStep> {
    table.finish()?;
    let job = JobSpec {
        name: "rest".to_owned(),
        read_pct: 100.0,
        start_delay_ns: rest_ns,
        ios: Some(1),
        ..JobSpec::default()
    };
    let Common { seed, interval_ns } = common;
    let workload = WorkloadSpec { name, jobs: vec![job], seed, interval_ns };
    Ok(FileStep { workload, rest_ns, measured: false, until_steady: false, max_rounds: 1 })
}

/// The jobs of a step, or of a file that is one step.
fn load(table: Table<'_>, name: String, common: Common) -> Read<FileStep> {
    let LoadKeys { until, max_rounds, measure: measured, job: jobs } = Section::read_keys(&table)?;
    let until_steady = until.unwrap_or(false);
    if max_rounds.is_some() && !until_steady {
        let hint = Some("add until = \"steady\"".to_owned());
        return Err(table.error("max_rounds", "only rounds until steady state end by it", hint));
    }
    if until_steady && !measured {
        let message = "a step that runs until it is steady has to be measured";
        return Err(table.error("measure", message, None));
    }
    // Reporting an unknown key such as [[jobs]] is more helpful than reporting the missing one.
    let missing = table.missing("job");
    table.finish()?;
    let jobs = jobs.filter(|jobs| !jobs.is_empty()).ok_or(missing)?;
    let max_rounds = max_rounds.unwrap_or(if until_steady { MAX_ROUNDS } else { 1 });
    let Common { seed, interval_ns } = common;
    let workload = WorkloadSpec { name, jobs, seed, interval_ns };
    Ok(FileStep { workload, rest_ns: 0, measured, until_steady, max_rounds })
}

fn job(table: Table<'_>) -> Read<JobSpec> {
    let keys = JobKeys::read_keys(&table)?;
    let mix = keys.mix.map(|mix| shares(&table, mix)).transpose()?;
    if keys.rate.is_some() && keys.rate_iops.is_some() {
        let message = "rate and rate_iops are both given; remove one of them";
        return Err(table.error("rate", message, None));
    }
    let rate = keys.rate.unwrap_or((keys.rate_iops, None));
    let [offset, range, volume] =
        [keys.offset, keys.range, keys.volume].map(Option::unwrap_or_default);
    let job = JobSpec {
        block_sizes: block_sizes(&table, keys.block_size, keys.block_sizes)?
            .unwrap_or_else(|| JobSpec::default().block_sizes),
        hole_bytes: hole(&table, keys.hole, keys.back)?,
        streams: streams(&table, keys.streams)?,
        name: keys.name,
        pattern: keys.pattern,
        read_pct: mix.map_or(keys.read, |mix| mix.reads),
        trim_pct: keys.trim,
        sequential_read_pct: mix.map_or(0.0, |mix| mix.sequential_of_reads),
        sequential_write_pct: mix.map_or(0.0, |mix| mix.sequential_of_writes),
        writes: keys.writes,
        trims: keys.trims,
        threads: keys.threads,
        queue_depth: keys.queue_depth,
        offset_bytes: offset.0.unwrap_or(0),
        offset_pct: offset.1,
        range_bytes: range.0,
        range_pct: range.1,
        segments: keys.segments,
        thread_stride_bytes: keys.thread_stride.0,
        start_bytes: keys.start.0,
        align_bytes: keys.align.map(|align| align.0),
        addresses: keys.addresses.unwrap_or_default(),
        run_ios: keys.run_ios,
        hole_after_bytes: keys.hole_after.0,
        files: keys.files,
        one_position: keys.one_position,
        trim_first: keys.trim_first,
        host_zones: keys.host_zones,
        model: keys.model,
        compressible_pct: keys.compressible,
        duplicate_pct: keys.duplicates,
        stream: keys.stream as u16,
        stream_order: keys.stream_order,
        rate_iops: rate.0,
        rate_bytes_per_s: rate.1,
        rate_read_pct: keys.rate_read,
        arrival: keys.arrival,
        think_ns: keys.think.0,
        think_after_ios: keys.think_after_ios,
        rate_ignores_think: keys.rate_ignores_think,
        burst_ns: keys.burst.map_or(0, |time| time.0),
        pause_ns: keys.pause.map_or(0, |time| time.0),
        start_delay_ns: keys.start_delay.0,
        flush_every_writes: keys.flush_every_writes,
        dsync: keys.dsync,
        duration_ns: keys.duration.map(|time| time.0),
        volume_bytes: volume.0,
        volume_pct: volume.1,
        ios: keys.ios,
        ends_all: keys.ends_all,
        flow_weight: keys.flow_weight.unwrap_or(0),
        flow_group: keys.flow_group,
        ..JobSpec::default()
    };
    checked(table, job)
}

/// Rejects unknown keys first: a mistyped `duration` must not be reported as an endless job.
fn checked(table: Table<'_>, job: JobSpec) -> Read<JobSpec> {
    let outcome = job.check().map_err(|problem| {
        let singular = problem.key == "block_sizes" && table.has("block_size");
        let key = if singular { "block_size" } else { problem.key };
        table.error(key, problem.message, problem.hint.map(str::to_owned))
    });
    table.finish()?;
    outcome.map(|()| job)
}

/// Shares of sequential and random reads and writes in one job, in percent.
#[derive(Clone, Copy)]
struct Shares {
    reads: f64,
    sequential_of_reads: f64,
    sequential_of_writes: f64,
}

fn mix(table: Table<'_>) -> Read<MixKeys> {
    let keys = MixKeys::read_keys(&table)?;
    table.finish().map(|()| keys)
}

/// Shares of the reads and of the writes; `mix` stands in place of `read`.
fn shares(table: &Table<'_>, mix: MixKeys) -> Read<Shares> {
    let reads = mix.sequential_read + mix.random_read;
    let writes = mix.sequential_write + mix.random_write;
    if (reads + writes - 100.0).abs() > 1e-6 {
        let message = format!("the shares add up to {} %, not to 100 %", reads + writes);
        return Err(table.error("mix", message, None));
    }
    for key in ["read", "trim"] {
        if table.has(key) {
            let message = format!("mix and {key} are both given; remove one of them");
            return Err(table.error(key, message, None));
        }
    }
    let of = |part: f64, whole: f64| if whole > 0.0 { 100.0 * part / whole } else { 0.0 };
    Ok(Shares {
        reads,
        sequential_of_reads: of(mix.sequential_read, reads),
        sequential_of_writes: of(mix.sequential_write, writes),
    })
}

fn block_sizes(
    table: &Table<'_>,
    single: Option<Bytes>,
    several: Option<Vec<BlockSize>>,
) -> Read<Option<Vec<BlockSize>>> {
    if single.is_some() && several.is_some() {
        let message = "block_size and block_sizes are both given; remove one of them";
        return Err(table.error("block_sizes", message, None));
    }
    let block = |size: Bytes| BlockSize { bytes: size.0, weight: 1.0, sequential_pct: 0.0 };
    Ok(several.or(single.map(|size| vec![block(size)])))
}

fn block(table: Table<'_>) -> Read<BlockSize> {
    let BlockKeys { size, weight, sequential } = Section::read_keys(&table)?;
    table.finish()?;
    Ok(BlockSize { bytes: size.0, weight, sequential_pct: sequential })
}

/// Block sizes and alignment of one operation, in a table of their own.
fn own_blocks(table: Table<'_>) -> Read<OwnBlocks> {
    let keys = OwnKeys::read_keys(&table)?;
    let block_sizes = block_sizes(&table, keys.block_size, keys.block_sizes)?;
    let block_sizes = block_sizes.ok_or_else(|| table.missing("block_size"))?;
    table.finish()?;
    Ok(OwnBlocks { block_sizes, align_bytes: keys.align.map(|bytes| bytes.0) })
}

/// What is left out after each I/O, or gone back (below 0).
fn hole(table: &Table<'_>, hole: Option<Bytes>, back: Option<Bytes>) -> Read<i64> {
    if hole.is_some() && back.is_some() {
        return Err(table.error("back", "hole and back are both given; remove one of them", None));
    }
    let signed = |bytes: Bytes| i64::try_from(bytes.0).unwrap_or(i64::MAX);
    Ok(hole.map_or_else(|| back.map_or(0, |back| -signed(back)), signed))
}

fn streams(table: &Table<'_>, numbers: Option<Vec<f64>>) -> Read<Vec<u16>> {
    let numbers = numbers.unwrap_or_default();
    if numbers.iter().any(|number| number.fract() != 0.0) {
        return Err(table.error("streams", "streams are whole numbers", None));
    }
    Ok(numbers.into_iter().map(|number| number as u16).collect())
}

fn segments(table: Table<'_>) -> Read<SegmentSpec> {
    let SegmentKeys { count, amount, seed } = Section::read_keys(&table)?;
    table.finish()?;
    Ok(SegmentSpec { count, amount_bytes: amount.0, seed })
}

fn addresses(table: Table<'_>) -> Read<AddressSpec> {
    let keys = AddressKeys::read_keys(&table)?;
    table.finish()?;
    Ok(AddressSpec {
        kind: keys.kind,
        theta: keys.theta,
        generator: keys.generator,
        ranks: keys.ranks,
        hot_pct: keys.hot,
        deviation_pct: keys.deviation,
        zones: keys.zones.unwrap_or_default(),
        blocks: keys.blocks.unwrap_or_default(),
        advancing: keys.advancing,
        spare_pct: keys.spare,
        regions: keys.regions,
        scatter_bytes: keys.scatter.map(|size| size.0),
        scatter_seed: keys.scatter_seed,
    })
}

fn zone(table: Table<'_>) -> Read<Zone> {
    let ZoneKeys { access, size } = Section::read_keys(&table)?;
    table.finish()?;
    Ok(Zone { access_pct: access, size_pct: size })
}

fn host_zones(table: Table<'_>) -> Read<HostZones> {
    let keys = HostZoneKeys::read_keys(&table)?;
    table.finish()?;
    Ok(HostZones {
        size_bytes: keys.size.0,
        capacity_bytes: keys.capacity.map(|size| size.0),
        max_open: keys.max_open,
        max_open_per_thread: keys.max_open_per_thread,
        begin_full: keys.begin_full,
        read_unwritten: keys.read_unwritten,
        short_writes: keys.short_writes,
        reset_above_pct: keys.reset_above,
        reset_every_writes: keys.reset_every_writes,
    })
}

#[cfg(test)]
mod tests;
