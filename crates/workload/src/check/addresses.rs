//! Checks of the distribution of random addresses.

use super::{Check, PERCENT_SLACK, THETA_MAX, reject};
use crate::spec::{AddressKind, AddressSpec, BlockSize, JobSpec, Pattern, ZipfGenerator, Zone};

/// Maximum number of regions; each region needs thousands of blocks to have its fraction of valid
/// data.
pub(super) const REGIONS_MAX: u64 = 10_000;
/// Maximum spare space in percent, which is far above that of any drive.
const SPARE_MAX_PCT: f64 = 900.0;
const KEY: &str = "addresses";

pub(super) fn check(job: &JobSpec) -> Check {
    let spec = &job.addresses;
    reject! {
        KEY if spec.kind != AddressKind::Uniform && job.pattern == Pattern::Sequential =>
            "a sequential pattern has no distribution of addresses";
    }
    check_parameters(spec)?;
    check_order(job)?;
    check_scatter(job)?;
    let zoned = matches!(spec.kind, AddressKind::Zoned | AddressKind::HotCold);
    reject! { KEY if !zoned && !spec.zones.is_empty() => "only zoned and hot_cold have zones"; }
    for &Zone { access_pct, size_pct } in &spec.zones {
        reject! {
            KEY if !(0.0..=100.0).contains(&access_pct) =>
                "{access_pct} % of the accesses is outside 0 % to 100 %";
            KEY if size_pct <= 0.0 || size_pct > 100.0 =>
                "a zone of {size_pct} % of the range is not above 0 % and up to 100 %";
        }
    }
    if spec.kind == AddressKind::HotCold {
        let has_hot_zone = matches!(spec.zones[..], [zone] if zone.size_pct < 100.0);
        reject! {
            KEY if !has_hot_zone =>
                "hot_cold takes one zone, the hot one, smaller than the range";
        }
        return Ok(());
    }
    let (accesses, sizes) = spec
        .zones
        .iter()
        .fold((0.0, 0.0), |(access, size), zone| (access + zone.access_pct, size + zone.size_pct));
    let full = |sum: f64| (sum - 100.0).abs() <= PERCENT_SLACK;
    reject! {
        KEY if zoned && !(full(accesses) && full(sizes)) =>
            "the zones take {accesses} % of the accesses and {sizes} % of the range, not 100 %";
    }
    Ok(())
}

/// Checks the keys of sequence, sprandom and once.
fn check_order(job: &JobSpec) -> Check {
    let spec = &job.addresses;
    let sequence = spec.kind == AddressKind::Sequence;
    let sprandom = spec.kind == AddressKind::Sprandom;
    let once = spec.kind == AddressKind::Once;
    let regions = spec.regions.unwrap_or(1);
    let writes_only = job.read_pct == 0.0 && job.trim_pct == 0.0 && !job.trim_first;
    let plain = job.run_ios == 1 && !job.continues() && job.host_zones.is_none();
    reject! {
        KEY if sequence && spec.blocks.is_empty() => "sequence needs blocks";
        KEY if !sequence && !spec.blocks.is_empty() => "only sequence has blocks";
        KEY if !sequence && spec.advancing => "only a sequence is advancing";
        KEY if !sprandom && spec.regions.is_some() => "only sprandom has regions";
        KEY if !(1..=REGIONS_MAX).contains(&regions) =>
            "the number of regions is outside 1 to {REGIONS_MAX}";
        KEY if sprandom && !(writes_only && job.threads == 1) =>
            "sprandom needs one thread that only writes";
        KEY if (sequence || sprandom) && !has_one_size(job) =>
            "sequence and sprandom need a single block size";
        KEY if (sequence || sprandom || once) && job.segments.is_some() =>
            "once, sequence and sprandom do not work on segments";
        KEY if once && (job.writes.is_some() || job.trims.is_some() || !plain) =>
            "once needs the same block sizes for all operations, without runs, sequential \
             shares and zones";
    }
    Ok(())
}

/// Checks the scatter of skewed addresses, and the generator and ranks of zipf.
fn check_scatter(job: &JobSpec) -> Check {
    let spec = &job.addresses;
    let zoned = matches!(spec.kind, AddressKind::Zoned | AddressKind::HotCold);
    let zipf = spec.kind == AddressKind::Zipf;
    let skewed = zoned || zipf || matches!(spec.kind, AddressKind::Pareto | AddressKind::Normal);
    let given = spec.scatter_bytes.is_some() || spec.scatter_seed != 0;
    let fio = spec.generator == ZipfGenerator::Fio;
    reject! {
        KEY if !skewed && given =>
            "only zoned, hot_cold, zipf, pareto and normal have a scatter";
        KEY if fio && !zipf => "only zipf has a generator";
        KEY if (!zipf || fio) && spec.ranks.is_some() =>
            "only zipf with the exact generator has ranks";
        KEY if spec.ranks == Some(0) => "zipf needs at least one rank";
        KEY if fio && spec.theta == Some(1.0) =>
            "fio has no zipf with theta 1; use 0.99 or 1.01";
        KEY if fio && given =>
            "the fio generator scatters blocks by its own hash and has no scatter";
        KEY if zoned && spec.scatter_seed != 0 && spec.scatter_bytes.is_none() =>
            "scatter_seed of zoned and hot_cold needs a scatter";
    }
    let Some(size) = spec.scatter_bytes else { return Ok(()) };
    let unit = unit_bytes(job);
    let fits = size >= 512 && size.is_multiple_of(512);
    reject! {
        KEY if !fits || !(size.is_multiple_of(unit) || unit.is_multiple_of(size)) =>
            "scatter is {size} bytes; it must be a multiple of 512 bytes, and a multiple or a \
             divisor of the alignment of {unit} bytes";
    }
    Ok(())
}

/// Returns the smallest alignment of all I/Os in bytes.
fn unit_bytes(job: &JobSpec) -> u64 {
    let smallest = |sizes: &[BlockSize], align: Option<u64>| {
        align.or_else(|| sizes.iter().map(|size| size.bytes).min())
    };
    let operations = [&job.writes, &job.trims].into_iter().flatten();
    operations
        .map(|blocks| smallest(&blocks.block_sizes, blocks.align_bytes))
        .chain([smallest(&job.block_sizes, job.align_bytes)])
        .flatten()
        .min()
        .unwrap_or(1)
        .max(1)
}

fn has_one_size(job: &JobSpec) -> bool {
    job.all_block_sizes().all(|size| size.bytes == job.block_sizes[0].bytes)
        && job.align_bytes.is_none_or(|align| align == job.block_sizes[0].bytes)
}

/// Checks that a distribution has its own parameter and no other parameter.
fn check_parameters(spec: &AddressSpec) -> Check {
    for (kind, owner, name, value, most) in [
        (AddressKind::Zipf, "zipf", "theta", spec.theta, THETA_MAX),
        (AddressKind::Pareto, "pareto", "hot", spec.hot_pct, 99.0),
        (AddressKind::Normal, "normal", "deviation", spec.deviation_pct, 100.0),
        (AddressKind::Sprandom, "sprandom", "spare", spec.spare_pct, SPARE_MAX_PCT),
    ] {
        reject! {
            KEY if spec.kind != kind && value.is_some() => "only {owner} has a {name}";
            KEY if spec.kind == kind && value.is_none() => "{owner} needs a {name}";
        }
        let Some(value) = value else { continue };
        reject! {
            KEY if value <= 0.0 || value > most =>
                "{name} {value} is not above 0 and up to {most}";
        }
    }
    Ok(())
}
