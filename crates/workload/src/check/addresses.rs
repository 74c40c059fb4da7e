//! Checks of the distribution of random addresses.

use super::{Check, PERCENT_SLACK, THETA_MAX, ensure, problem};
use crate::spec::{AddressKind, AddressSpec, BlockSize, JobSpec, Pattern, ZipfGenerator};

/// Each region needs thousands of blocks to have its share of valid data.
pub(super) const REGIONS_MAX: u64 = 10_000;
/// Far above that of any drive.
const SPARE_MAX_PCT: f64 = 900.0;

impl JobSpec {
    pub(super) fn check_addresses(&self) -> Check {
        let key = "addresses";
        let spec = &self.addresses;
        let uniform = spec.kind == AddressKind::Uniform;
        ensure(uniform || self.pattern == Pattern::Random, key, || {
            "a sequential pattern has no distribution of addresses".to_owned()
        })?;
        check_parameters(spec)?;
        self.check_order()?;
        self.check_scatter()?;
        let zoned = matches!(spec.kind, AddressKind::Zoned | AddressKind::HotCold);
        ensure(zoned || spec.zones.is_empty(), key, || {
            "only zoned and hot_cold have zones".to_owned()
        })?;
        for zone in &spec.zones {
            ensure((0.0..=100.0).contains(&zone.access_pct), key, || {
                format!("{} % of the accesses is outside 0 % to 100 %", zone.access_pct)
            })?;
            ensure(zone.size_pct > 0.0 && zone.size_pct <= 100.0, key, || {
                format!(
                    "a zone of {} % of the range is not above 0 % and up to 100 %",
                    zone.size_pct
                )
            })?;
        }
        if spec.kind == AddressKind::HotCold {
            let one = matches!(spec.zones[..], [zone] if zone.size_pct < 100.0);
            return ensure(one, key, || {
                "hot_cold takes one zone, the hot one, smaller than the range".to_owned()
            });
        }
        let sums = spec.zones.iter().fold((0.0, 0.0), |(access, size), zone| {
            (access + zone.access_pct, size + zone.size_pct)
        });
        let full = |sum: f64| (sum - 100.0).abs() <= PERCENT_SLACK;
        ensure(!zoned || (full(sums.0) && full(sums.1)), key, || {
            format!(
                "the zones take {} % of the accesses and {} % of the range, not 100 %",
                sums.0, sums.1
            )
        })
    }

    /// Checks addresses that follow each other in an order of their own.
    fn check_order(&self) -> Check {
        let key = "addresses";
        let spec = &self.addresses;
        let sequence = spec.kind == AddressKind::Sequence;
        ensure(!sequence || !spec.blocks.is_empty(), key, || "sequence needs blocks".to_owned())?;
        ensure(sequence || spec.blocks.is_empty(), key, || "only sequence has blocks".to_owned())?;
        ensure(sequence || !spec.advancing, key, || "only a sequence is advancing".to_owned())?;
        let sprandom = spec.kind == AddressKind::Sprandom;
        ensure(sprandom || spec.regions.is_none(), key, || "only sprandom has regions".to_owned())?;
        ensure(spec.regions.is_none_or(|count| (1..=REGIONS_MAX).contains(&count)), key, || {
            format!("the number of regions is outside 1 to {REGIONS_MAX}")
        })?;
        let writes_only = self.read_pct == 0.0 && self.trim_pct == 0.0 && !self.trim_first;
        ensure(!sprandom || (writes_only && self.threads == 1), key, || {
            "sprandom needs one thread that only writes".to_owned()
        })?;
        ensure(!(sequence || sprandom) || self.has_one_size(), key, || {
            "sequence and sprandom need a single block size".to_owned()
        })?;
        let once = spec.kind == AddressKind::Once;
        ensure(!(sequence || sprandom || once) || self.segments.is_none(), key, || {
            "once, sequence and sprandom do not work on segments".to_owned()
        })?;
        let plain = self.run_ios == 1 && !self.continues() && self.host_zones.is_none();
        ensure(!once || (self.writes.is_none() && self.trims.is_none() && plain), key, || {
            "once needs the same block sizes for all operations, without runs, sequential shares \
             and zones"
                .to_owned()
        })
    }

    /// Checks the scatter of skewed addresses, and the generator and ranks of zipf.
    fn check_scatter(&self) -> Check {
        let key = "addresses";
        let spec = &self.addresses;
        let skewed = matches!(
            spec.kind,
            AddressKind::Zipf
                | AddressKind::Pareto
                | AddressKind::Normal
                | AddressKind::Zoned
                | AddressKind::HotCold
        );
        let given = spec.scatter_bytes.is_some() || spec.scatter_seed != 0;
        ensure(skewed || !given, key, || {
            "only zoned, hot_cold, zipf, pareto and normal have a scatter".to_owned()
        })?;
        let fio = spec.generator == ZipfGenerator::Fio;
        ensure(!fio || spec.kind == AddressKind::Zipf, key, || {
            "only zipf has a generator".to_owned()
        })?;
        let exact_zipf = spec.kind == AddressKind::Zipf && !fio;
        ensure(exact_zipf || spec.ranks.is_none(), key, || {
            "only zipf with the exact generator has ranks".to_owned()
        })?;
        ensure(spec.ranks != Some(0), key, || "zipf needs at least one rank".to_owned())?;
        ensure(!fio || spec.theta != Some(1.0), key, || {
            "fio has no zipf with theta 1; use 0.99 or 1.01".to_owned()
        })?;
        ensure(!fio || !given, key, || {
            "the fio generator scatters blocks by its own hash and has no scatter".to_owned()
        })?;
        let zoned = matches!(spec.kind, AddressKind::Zoned | AddressKind::HotCold);
        let chosen = spec.scatter_seed == 0 || !zoned || spec.scatter_bytes.is_some();
        ensure(chosen, key, || "scatter_seed of zoned and hot_cold needs a scatter".to_owned())?;
        let Some(size) = spec.scatter_bytes else { return Ok(()) };
        let unit = self.unit_bytes();
        let fits = size >= 512 && size.is_multiple_of(512);
        ensure(fits && (size.is_multiple_of(unit) || unit.is_multiple_of(size)), key, || {
            format!(
                "scatter is {size} bytes; it must be a multiple of 512 bytes, and a multiple or a \
                 divisor of the alignment of {unit} bytes"
            )
        })
    }

    /// Returns the smallest alignment of all I/Os, in bytes.
    fn unit_bytes(&self) -> u64 {
        let smallest = |sizes: &[BlockSize], align: Option<u64>| {
            align.or_else(|| sizes.iter().map(|size| size.bytes).min())
        };
        let operations = [&self.writes, &self.trims].into_iter().flatten();
        operations
            .map(|blocks| smallest(&blocks.block_sizes, blocks.align_bytes))
            .chain([smallest(&self.block_sizes, self.align_bytes)])
            .flatten()
            .min()
            .unwrap_or(1)
            .max(1)
    }

    fn has_one_size(&self) -> bool {
        self.all_block_sizes().all(|size| size.bytes == self.block_sizes[0].bytes)
            && self.align_bytes.is_none_or(|align| align == self.block_sizes[0].bytes)
    }
}

/// Checks that a distribution has its own parameter and no other.
fn check_parameters(spec: &AddressSpec) -> Check {
    let key = "addresses";
    for (kind, owner, name, value, most) in [
        (AddressKind::Zipf, "zipf", "theta", spec.theta, THETA_MAX),
        (AddressKind::Pareto, "pareto", "hot", spec.hot_pct, 99.0),
        (AddressKind::Normal, "normal", "deviation", spec.deviation_pct, 100.0),
        (AddressKind::Sprandom, "sprandom", "spare", spec.spare_pct, SPARE_MAX_PCT),
    ] {
        if spec.kind != kind {
            ensure(value.is_none(), key, || format!("only {owner} has a {name}"))?;
            continue;
        }
        let value = value.ok_or_else(|| problem(key, format!("{owner} needs a {name}")))?;
        ensure(value > 0.0 && value <= most, key, || {
            format!("{name} {value} is not above 0 and up to {most}")
        })?;
    }
    Ok(())
}
