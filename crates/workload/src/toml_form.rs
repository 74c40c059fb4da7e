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

use writecliff_base::located::{LocatedError, LocatedToml, Table};

use crate::check::SpecError;
use crate::file::{FileStep, WorkloadFile};
use crate::host_zones::HostZones;
use crate::io_model;
use crate::spec::{
    AddressKind, AddressSpec, Arrival, BlockSize, JobSpec, OwnBlocks, Pattern, SegmentSpec,
    StreamOrder, WorkloadSpec, Zone,
};

type Read<T> = Result<T, LocatedError>;

/// TOML integers cannot be larger.
const ANY: std::ops::RangeInclusive<u64> = 0..=i64::MAX as u64;

/// Rounds after which a load that is not steady gives up, as in the PTS.
const MAX_ROUNDS: u64 = 25;
/// Rounds of a measurement window.
const WINDOW_ROUNDS: u64 = 5;

/// What the steps of a file have in common.
#[derive(Clone, Copy)]
struct Common {
    seed: u64,
    interval_ns: u64,
}

pub(crate) fn read(text: &str, file_name: &str) -> Result<WorkloadFile, SpecError> {
    let toml = LocatedToml::parse(text, file_name)?;
    let root = toml.root();
    let name = root.required_text("name")?.to_owned();
    let seed = root.optional_integer("seed", ANY)?.unwrap_or(1);
    let interval_ns = root.optional_time("interval")?.map_or(1_000_000_000, |time| time.0);
    let precondition = root.optional_text("precondition")?.map(str::to_owned);
    let expect = expect(&root)?;
    if interval_ns == 0 {
        return Err(root.error("interval", "interval must be above zero", None).into());
    }
    let common = Common { seed, interval_ns };
    let tables = root.array_of_tables("step")?;
    let steps = if tables.is_empty() {
        vec![load(root, name.clone(), common)?]
    } else {
        if root.has("job") {
            let hint = "put the jobs into a step, as [[step.job]]".to_owned();
            let message = "job and step are both given";
            return Err(root.error("job", message, Some(hint)).into());
        }
        let steps = steps(tables, common);
        root.finish()?;
        steps?
    };
    Ok(WorkloadFile { name, precondition, expect, steps })
}

/// The limits of the table `expect`, each as one text.
fn expect(root: &Table<'_>) -> Read<Vec<String>> {
    let Some(table) = root.optional_table("expect")? else { return Ok(Vec::new()) };
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
        let given = table.optional_text("name")?.map(str::to_owned);
        if given.is_some() && steps.iter().any(|step| Some(&step.workload.name) == given.as_ref()) {
            return Err(table.error("name", "another step has this name", None));
        }
        let name = given.unwrap_or_else(|| format!("step {}", number + 1));
        let seed = common.seed.wrapping_add(number as u64);
        let common = Common { seed, ..common };
        let rests = table.has("rest");
        steps.push(if rests { rest(table, name, common)? } else { load(table, name, common)? });
    }
    Ok(steps)
}

/// A step without I/O; it ends with a single read, which finds the drive at rest.
fn rest(table: Table<'_>, name: String, common: Common) -> Read<FileStep> {
    let time = table.required_time("rest")?;
    if time.0 == 0 {
        return Err(table.error("rest", "rest must be above zero", None));
    }
    table.finish()?;
    let job = JobSpec {
        name: "rest".to_owned(),
        read_pct: 100.0,
        start_delay_ns: time.0,
        ios: Some(1),
        ..JobSpec::default()
    };
    let Common { seed, interval_ns } = common;
    let workload = WorkloadSpec { name, jobs: vec![job], seed, interval_ns };
    Ok(FileStep { workload, rest_ns: time.0, measured: false, until_steady: false, max_rounds: 1 })
}

/// The jobs of a step, or of a file that is one step.
fn load(table: Table<'_>, name: String, common: Common) -> Read<FileStep> {
    let until_steady = table.optional_choice("until", &[("steady", true)])?.unwrap_or(false);
    let rounds = table.optional_integer("max_rounds", WINDOW_ROUNDS..=1_000_000)?;
    let measured = table.optional_flag("measure")?.unwrap_or(true);
    if rounds.is_some() && !until_steady {
        let hint = Some("add until = \"steady\"".to_owned());
        return Err(table.error("max_rounds", "only rounds until steady state end by it", hint));
    }
    if until_steady && !measured {
        let message = "a step that runs until it is steady has to be measured";
        return Err(table.error("measure", message, None));
    }
    let tables = table.array_of_tables("job")?;
    let no_jobs = tables.is_empty();
    let jobs = tables.into_iter().map(job).collect::<Read<Vec<JobSpec>>>()?;
    // Reporting an unknown key such as [[jobs]] is more helpful than reporting the missing one.
    let missing = table.missing("job");
    table.finish()?;
    if no_jobs {
        return Err(missing);
    }
    let max_rounds = rounds.unwrap_or(if until_steady { MAX_ROUNDS } else { 1 });
    let Common { seed, interval_ns } = common;
    let workload = WorkloadSpec { name, jobs, seed, interval_ns };
    Ok(FileStep { workload, rest_ns: 0, measured, until_steady, max_rounds })
}

fn job(table: Table<'_>) -> Read<JobSpec> {
    let base = JobSpec::default();
    let percent =
        |key: &str| table.optional_percent(key, 0.0..=100.0).map(Option::unwrap_or_default);
    let size = |key: &str| table.optional_size(key).map(|size| size.map(|bytes| bytes.0));
    let time = |key: &str| table.optional_time(key).map(|time| time.map(|ns| ns.0));
    let count = |key: &str, least: u64| table.optional_integer(key, least..=*ANY.end());
    let (offset_bytes, offset_pct) = size_or_share(&table, "offset")?;
    let (range_bytes, range_pct) = size_or_share(&table, "range")?;
    let (volume_bytes, volume_pct) = size_or_share(&table, "volume")?;
    let (rate_iops, rate_bytes_per_s) = rate(&table)?;
    let mix = mix(&table)?;
    let job = JobSpec {
        name: table.optional_text("name")?.map_or_else(|| base.name.clone(), str::to_owned),
        pattern: table.optional_choice("pattern", PATTERNS)?.unwrap_or_default(),
        read_pct: mix.map_or_else(|| percent("read"), |mix| Ok(mix.reads))?,
        trim_pct: percent("trim")?,
        sequential_read_pct: mix.map_or(0.0, |mix| mix.sequential_of_reads),
        sequential_write_pct: mix.map_or(0.0, |mix| mix.sequential_of_writes),
        block_sizes: block_sizes(&table)?.unwrap_or_else(|| base.block_sizes.clone()),
        writes: own_blocks(&table, "writes")?,
        trims: own_blocks(&table, "trims")?,
        threads: table.optional_integer("threads", 1..=4096)?.unwrap_or(1) as u32,
        queue_depth: table.optional_integer("queue_depth", 1..=65_536)?.unwrap_or(1) as u32,
        offset_bytes: offset_bytes.unwrap_or(0),
        offset_pct,
        range_bytes,
        range_pct,
        segments: segments(&table)?,
        thread_stride_bytes: size("thread_stride")?.unwrap_or(0),
        start_bytes: size("start")?.unwrap_or(0),
        align_bytes: size("align")?,
        addresses: addresses(&table)?,
        run_ios: count("run_ios", 1)?.unwrap_or(1),
        hole_bytes: hole(&table)?,
        hole_after_bytes: size("hole_after")?.unwrap_or(0),
        files: table.optional_integer("files", 1..=1 << 20)?.unwrap_or(1) as u32,
        one_position: table.optional_flag("one_position")?.unwrap_or(false),
        trim_first: table.optional_flag("trim_first")?.unwrap_or(false),
        host_zones: host_zones(&table)?,
        model: io_model::read(&table)?,
        compressible_pct: percent("compressible")?,
        duplicate_pct: percent("duplicates")?,
        stream: table.optional_integer("stream", 0..=65_535)?.unwrap_or(0) as u16,
        streams: streams(&table)?,
        stream_order: table.optional_choice("stream_order", ORDERS)?.unwrap_or_default(),
        rate_iops,
        rate_bytes_per_s,
        rate_read_pct: table.optional_percent("rate_read", 0.0..=100.0)?,
        arrival: table.optional_choice("arrival", ARRIVALS)?.unwrap_or_default(),
        think_ns: time("think")?.unwrap_or(0),
        think_after_ios: count("think_after_ios", 1)?.unwrap_or(1),
        rate_ignores_think: table.optional_flag("rate_ignores_think")?.unwrap_or(false),
        burst_ns: time("burst")?.unwrap_or(0),
        pause_ns: time("pause")?.unwrap_or(0),
        start_delay_ns: time("start_delay")?.unwrap_or(0),
        flush_every_writes: count("flush_every_writes", 0)?.unwrap_or(0),
        dsync: table.optional_flag("dsync")?.unwrap_or(false),
        duration_ns: time("duration")?,
        volume_bytes,
        volume_pct,
        ios: count("ios", 1)?,
        ends_all: table.optional_flag("ends_all")?.unwrap_or(false),
        flow_weight: count("flow_weight", 1)?.unwrap_or(0),
        flow_group: count("flow_group", 0)?.unwrap_or(0),
        ..base
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

const PATTERNS: &[(&str, Pattern)] =
    &[("random", Pattern::Random), ("sequential", Pattern::Sequential)];
const ARRIVALS: &[(&str, Arrival)] = &[("linear", Arrival::Linear), ("poisson", Arrival::Poisson)];
const ORDERS: &[(&str, StreamOrder)] =
    &[("in_turn", StreamOrder::InTurn), ("random", StreamOrder::Random)];
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

fn size_or_share(table: &Table<'_>, key: &str) -> Read<(Option<u64>, Option<f64>)> {
    let percent = matches!(table.optional_text(key), Ok(Some(text)) if text.trim().ends_with('%'));
    if percent {
        let top = if key == "volume" { 1e6 } else { 100.0 };
        return Ok((None, table.optional_percent(key, 0.0..=top)?));
    }
    Ok((table.optional_size(key)?.map(|bytes| bytes.0), None))
}

/// Shares of sequential and random reads and writes in one job, in percent.
#[derive(Clone, Copy)]
struct Shares {
    reads: f64,
    sequential_of_reads: f64,
    sequential_of_writes: f64,
}

/// `mix = { sequential_read, random_read, sequential_write, random_write }`, in place of `read`.
fn mix(table: &Table<'_>) -> Read<Option<Shares>> {
    let Some(inner) = table.optional_table("mix")? else { return Ok(None) };
    let share = |key| inner.optional_percent(key, 0.0..=100.0).map(Option::unwrap_or_default);
    let (in_order, anywhere) = (share("sequential_read")?, share("random_read")?);
    let (written_in_order, written) = (share("sequential_write")?, share("random_write")?);
    inner.finish()?;
    let (reads, writes) = (in_order + anywhere, written_in_order + written);
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
    Ok(Some(Shares {
        reads,
        sequential_of_reads: of(in_order, reads),
        sequential_of_writes: of(written_in_order, writes),
    }))
}

fn rate(table: &Table<'_>) -> Read<(Option<f64>, Option<f64>)> {
    let plain = table.optional_number("rate_iops", 1e-3..=1e12)?;
    // The unit decides; anything that is not text gets the usual error below.
    let iops = match table.optional_text("rate") {
        Ok(Some(text)) => text.trim().strip_suffix("IOPS").map(|number| (text, number.trim_end())),
        _ => None,
    };
    if plain.is_some() && table.has("rate") {
        return Err(table.error(
            "rate",
            "rate and rate_iops are both given; remove one of them",
            None,
        ));
    }
    match iops {
        Some((text, number)) => {
            let value = number.replace('_', "").parse().map_err(|_| {
                let hint = Some("write for example rate = \"1000 IOPS\"".to_owned());
                table.error("rate", format!("'{text}' is not a number of IOPS"), hint)
            })?;
            Ok((Some(value), None))
        }
        None => Ok((plain, table.optional_rate("rate")?.map(|rate| rate.0 as f64))),
    }
}

fn block_sizes(table: &Table<'_>) -> Read<Option<Vec<BlockSize>>> {
    let one = table.optional_size("block_size")?;
    let several = table.has("block_sizes");
    if one.is_some() && several {
        let message = "block_size and block_sizes are both given; remove one of them";
        return Err(table.error("block_sizes", message, None));
    }
    if !several {
        return Ok(
            one.map(|size| vec![BlockSize { bytes: size.0, weight: 1.0, sequential_pct: 0.0 }])
        );
    }
    let read = |entry: Table<'_>| {
        let bytes = entry.required_size("size")?.0;
        let weight = entry.optional_number("weight", 0.0..=1e12)?.unwrap_or(1.0);
        let sequential_pct = entry.optional_percent("sequential", 0.0..=100.0)?.unwrap_or(0.0);
        entry.finish()?;
        Ok(BlockSize { bytes, weight, sequential_pct })
    };
    table.array_of_tables("block_sizes")?.into_iter().map(read).collect::<Read<_>>().map(Some)
}

/// Block sizes and alignment of one operation, in a table of their own.
fn own_blocks(table: &Table<'_>, key: &str) -> Read<Option<OwnBlocks>> {
    let Some(inner) = table.optional_table(key)? else { return Ok(None) };
    let Some(block_sizes) = block_sizes(&inner)? else { return Err(inner.missing("block_size")) };
    let align_bytes = inner.optional_size("align")?.map(|bytes| bytes.0);
    inner.finish()?;
    Ok(Some(OwnBlocks { block_sizes, align_bytes }))
}

/// What is left out after each I/O, or gone back (below 0).
fn hole(table: &Table<'_>) -> Read<i64> {
    let (hole, back) = (table.optional_size("hole")?, table.optional_size("back")?);
    if hole.is_some() && back.is_some() {
        return Err(table.error("back", "hole and back are both given; remove one of them", None));
    }
    let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    Ok(hole.map_or_else(|| back.map_or(0, |back| -signed(back.0)), |hole| signed(hole.0)))
}

fn streams(table: &Table<'_>) -> Read<Vec<u16>> {
    let numbers = table.optional_numbers("streams", 0.0..=65_535.0)?.unwrap_or_default();
    if numbers.iter().any(|number| number.fract() != 0.0) {
        return Err(table.error("streams", "streams are whole numbers", None));
    }
    Ok(numbers.into_iter().map(|number| number as u16).collect())
}

fn segments(table: &Table<'_>) -> Read<Option<SegmentSpec>> {
    let Some(inner) = table.optional_table("segments")? else { return Ok(None) };
    let count = inner.required_integer("count", 1..=1 << 20)?;
    let amount_bytes = inner.required_size("amount")?.0;
    let seed = inner.optional_integer("seed", ANY)?.unwrap_or(1);
    inner.finish()?;
    Ok(Some(SegmentSpec { count, amount_bytes, seed }))
}

fn addresses(table: &Table<'_>) -> Read<AddressSpec> {
    let Some(inner) = table.optional_table("addresses")? else { return Ok(AddressSpec::default()) };
    let kind = inner.required_choice("kind", KINDS)?;
    let theta = inner.optional_number("theta", 0.0..=10.0)?;
    let hot_pct = inner.optional_percent("hot", 0.0..=99.0)?;
    let deviation_pct = inner.optional_percent("deviation", 0.0..=100.0)?;
    let read = |zone: Table<'_>| {
        let access_pct = zone.required_percent("access", 0.0..=100.0)?;
        let size_pct = zone.required_percent("size", 0.0..=100.0)?;
        zone.finish()?;
        Ok(Zone { access_pct, size_pct })
    };
    let zones = inner.array_of_tables("zones")?.into_iter().map(read).collect::<Read<_>>()?;
    let blocks = inner.optional_integers("blocks", ANY)?.unwrap_or_default();
    let advancing = inner.optional_flag("advancing")?.unwrap_or(false);
    let spare_pct = inner.optional_percent("spare", 0.0..=900.0)?;
    let regions = inner.optional_integer("regions", 1..=10_000)?;
    inner.finish()?;
    Ok(AddressSpec {
        kind,
        theta,
        hot_pct,
        deviation_pct,
        zones,
        blocks,
        advancing,
        spare_pct,
        regions,
    })
}

fn host_zones(table: &Table<'_>) -> Read<Option<HostZones>> {
    let Some(inner) = table.optional_table("host_zones")? else { return Ok(None) };
    let size = |key: &str| inner.optional_size(key).map(|size| size.map(|bytes| bytes.0));
    let count = |key: &str, most: u64| inner.optional_integer(key, 0..=most);
    let flag = |key: &str| inner.optional_flag(key).map(Option::unwrap_or_default);
    let zones = HostZones {
        size_bytes: inner.required_size("size")?.0,
        capacity_bytes: size("capacity")?,
        max_open: count("max_open", 4096)?.unwrap_or(0) as u32,
        max_open_per_thread: count("max_open_per_thread", 4096)?.unwrap_or(0) as u32,
        begin_full: flag("begin_full")?,
        read_unwritten: flag("read_unwritten")?,
        short_writes: flag("short_writes")?,
        reset_above_pct: inner.optional_percent("reset_above", 0.0..=100.0)?.unwrap_or(0.0),
        reset_every_writes: count("reset_every_writes", *ANY.end())?.unwrap_or(0),
    };
    inner.finish()?;
    Ok(Some(zones))
}

#[cfg(test)]
mod tests;
