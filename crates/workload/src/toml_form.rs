//! Workload files in TOML: jobs, or steps of jobs that run one after the other, and limits on the
//! figures of the run (`docs/guides/workloads.md`).
//!
//! Numbers with a unit are text. `offset`, `range` and `volume` are sizes or shares of the drive;
//! `rate` is `"1000 IOPS"` or `"200 MB/s"`.

pub(crate) mod kinds;

use writecliff_base::keys::{
    Choice, Flag, Inner, Inners, Integer, Kind, Number, Percent, PositiveTime, Section,
    SectionKeys, Size, Text,
};
use writecliff_base::located::{Answer, LocatedToml, Table};
use writecliff_base::{Nanos, reject, section};

use self::kinds::Tables;
use crate::check::{RATE_MAX, RATE_MIN, SpecError};
use crate::file::{FileStep, WorkloadFile};
use crate::host_zones::HostZones;
use crate::spec::{
    AddressSpec, BlockSize, JobSpec, OwnBlocks, SHARE, SegmentSpec, TOP, WorkloadSpec, Zone,
};

/// Default maximum number of rounds, as in the PTS.
const MAX_ROUNDS: u64 = 25;
const WINDOW_ROUNDS: u64 = 5;

section! {
    struct FileKeys {
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

section! {
    struct LoadKeys {
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

section! {
    struct StepKeys {
        name: optional Text = "`\"step 1\"`, ...", "shown in results";
        rest: optional PositiveTime,
            "no I/O for this time, then a single read; excludes the keys below";
    }
}

section! {
    /// Percentages of sequential and random reads and writes in one job.
    #[derive(Clone, Copy, PartialEq)]
    pub(crate) struct MixKeys {
        sequential_read: default Percent(SHARE) = 0.0,
            "percentage of the I/Os; the four percentages add up to 100 %";
        random_read: default Percent(SHARE) = 0.0,
            "percentage of the I/Os; the four percentages add up to 100 %";
        sequential_write: default Percent(SHARE) = 0.0,
            "percentage of the I/Os; the four percentages add up to 100 %";
        random_write: default Percent(SHARE) = 0.0,
            "percentage of the I/Os; the four percentages add up to 100 %";
    }
}

/// Keys shared by all steps of a file.
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
        JobSpec::documented("[[job]]", true),
        MixKeys::documented("[job.mix]", false),
        BlockSize::documented("[[job.block_sizes]]", false),
        OwnBlocks::documented("[job.writes]` and `[job.trims]", false),
        SegmentSpec::documented("[job.segments]", false),
        AddressSpec::documented("[job.addresses]", false),
        Zone::documented("[[job.addresses.zones]]", false),
        HostZones::documented("[job.host_zones]", false),
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
            let message = "job and step are both set; move the jobs into a step, as [[step.job]]";
            return Err(root.error("job", message, Some(hint)).into());
        }
        let steps = steps(root.array_of_tables("step")?, common);
        root.finish()?;
        steps?
    };
    Ok(WorkloadFile { name, precondition, expect: expect.unwrap_or_default(), steps })
}

/// Returns the limits in the `expect` table, each as text.
fn expect(table: Table<'_>) -> Answer<Vec<String>> {
    let limits = table.keys().into_iter().map(|figure| {
        let text = table.text(figure)?.unwrap_or_default().trim();
        let number = text.trim_start_matches(['<', '>']).trim_start_matches('=');
        let number = number.split_whitespace().next().unwrap_or_default();
        reject! { table,
            figure if !text.starts_with(['<', '>']) || number.parse::<f64>().is_err() =>
                "'{text}' is not a limit" ["write, for example, \">= 100000\" or \"<= 2 ms\""];
        }
        Ok(format!("{figure} {text}"))
    });
    let limits = limits.collect::<Answer<Vec<_>>>()?;
    table.finish()?;
    Ok(limits)
}

fn steps(tables: Vec<Table<'_>>, common: Common) -> Answer<Vec<FileStep>> {
    let mut steps: Vec<FileStep> = Vec::with_capacity(tables.len());
    for (number, table) in tables.into_iter().enumerate() {
        let keys = StepKeys::read_keys(&table)?;
        if steps.iter().any(|step| Some(&step.workload.name) == keys.name.as_ref()) {
            return Err(table.error("name", "another step already has this name", None));
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

/// Returns a step without I/O except for a single read of the idle drive at its end.
fn rest(table: Table<'_>, rest_ns: u64, name: String, common: Common) -> Answer<FileStep> {
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

/// Returns the jobs of a step, or of a file with a single step.
fn load(table: Table<'_>, name: String, common: Common) -> Answer<FileStep> {
    let LoadKeys { until, max_rounds, measure: measured, job: jobs } = Section::read_keys(&table)?;
    let until_steady = until.unwrap_or(false);
    reject! { table,
        "max_rounds" if max_rounds.is_some() && !until_steady =>
            "it needs rounds until steady state" ["add until = \"steady\""];
        "measure" if until_steady && !measured =>
            "a step with until = \"steady\" must be measured";
    }
    // An error about an unknown key such as [[jobs]] is more helpful than an error about the
    // missing key.
    let missing = table.missing("job");
    table.finish()?;
    let jobs = jobs.filter(|jobs| !jobs.is_empty()).ok_or(missing)?;
    let max_rounds = max_rounds.unwrap_or(if until_steady { MAX_ROUNDS } else { 1 });
    let Common { seed, interval_ns } = common;
    let workload = WorkloadSpec { name, jobs, seed, interval_ns };
    Ok(FileStep { workload, rest_ns: 0, measured, until_steady, max_rounds })
}

fn job(table: Table<'_>) -> Answer<JobSpec> {
    let mut job = JobSpec::read_keys(&table)?;
    if let Some(mix) = Inner(MixKeys::read_whole).read(&table, "mix")? {
        mix.put_into(&mut job, &table)?;
    }
    if let Some(rate) = Number(RATE_MIN..=RATE_MAX).read(&table, "rate_iops")? {
        exclude(&table, ["rate", "rate_iops"], "rate")?;
        job.rate_iops = Some(rate);
    }
    if let Some(single) = single_block(&table)? {
        job.block_sizes = vec![single];
    }
    if let Some(back) = kinds::Distance.read(&table, "back")? {
        exclude(&table, ["hole", "back"], "back")?;
        job.hole_bytes = -back;
    }
    checked(table, job)
}

/// Rejects unknown keys first, because a mistyped `duration` must not be reported as an endless
/// job.
fn checked(table: Table<'_>, job: JobSpec) -> Answer<JobSpec> {
    let outcome = job.check().map_err(|problem| {
        let singular = problem.key == "block_sizes" && table.has("block_size");
        let key = if singular { "block_size" } else { problem.key };
        table.error(key, problem.message, problem.hint.map(str::to_owned))
    });
    table.finish()?;
    outcome.map(|()| job)
}

impl MixKeys {
    /// Sets the percentages of reads and writes from `mix`, which replaces `read`.
    fn put_into(self, job: &mut JobSpec, table: &Table<'_>) -> Answer<()> {
        let reads = self.sequential_read + self.random_read;
        let writes = self.sequential_write + self.random_write;
        reject! { table,
            "mix" if (reads + writes - 100.0).abs() > 1e-6 =>
                "the shares add up to {} %; they must add up to 100 %", reads + writes;
        }
        exclude(table, ["mix", "read"], "read")?;
        exclude(table, ["mix", "trim"], "trim")?;
        let of = |part: f64, whole: f64| if whole > 0.0 { 100.0 * part / whole } else { 0.0 };
        job.read_pct = reads;
        job.sequential_read_pct = of(self.sequential_read, reads);
        job.sequential_write_pct = of(self.sequential_write, writes);
        Ok(())
    }
}

/// Rejects a table with both keys, at the line of `at`.
fn exclude(table: &Table<'_>, [key, other]: [&str; 2], at: &str) -> Answer<()> {
    reject! { table,
        at if table.has(key) && table.has(other) =>
            "{key} and {other} are both given; remove one of them";
    }
    Ok(())
}

/// Returns the only block size of a table without `block_sizes`.
fn single_block(table: &Table<'_>) -> Answer<Option<BlockSize>> {
    let Some(size) = Size.read(table, "block_size")? else { return Ok(None) };
    exclude(table, ["block_size", "block_sizes"], "block_sizes")?;
    Ok(Some(BlockSize { bytes: size.0, weight: 1.0, sequential_pct: 0.0 }))
}

/// Reads the block sizes and alignment of one operation from its table.
pub(crate) fn own_blocks(table: Table<'_>) -> Answer<OwnBlocks> {
    let mut blocks = OwnBlocks::read_keys(&table)?;
    match single_block(&table)? {
        Some(single) => blocks.block_sizes = vec![single],
        None if !table.has("block_sizes") => return Err(table.missing("block_size")),
        None => {}
    }
    table.finish().map(|()| blocks)
}

#[cfg(test)]
mod tests;
