//! Checks of the distribution of random addresses.

use super::{Check, PERCENT_SLACK, THETA_MAX, ensure, problem};
use crate::spec::{AddressKind, AddressSpec, JobSpec, Pattern};

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
