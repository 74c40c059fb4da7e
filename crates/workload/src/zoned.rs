//! Zoned addresses: consecutive zones of the range, each with its share of the accesses.
//!
//! Source: JESD219 gives enterprise endurance 50 % of the accesses to the first 5 % of the range,
//! 30 % to the next 15 % and 20 % to the last 80 %; fio's `random_distribution=zoned` is the same.
//! Hot and cold data are two zones. Within a zone addresses are uniform.
//!
//! Known errors: zone boundaries are rounded to whole units (the smallest alignment of the job),
//! and each zone has at least one unit. A block that starts in one zone may end in the next.
//!
//! Validated by a chi-square test over zones and over equal parts of each zone.

use writecliff_base::Prng;

use crate::spec::{AddressKind, AddressSpec, Zone};

/// Draws units in `0..units`.
#[derive(Clone, Debug)]
pub(crate) struct Zoned {
    zones: Vec<Piece>,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    /// A 64-bit draw below this, and not below the one before, falls into this zone.
    threshold: u64,
    first: u64,
    units: u64,
}

/// The zones of a specification; for `hot_cold`, adds the cold zone.
fn all_zones(spec: &AddressSpec) -> Vec<Zone> {
    let mut zones = spec.zones.clone();
    if let (AddressKind::HotCold, Some(hot)) = (spec.kind, spec.zones.first()) {
        zones.push(Zone { access_pct: 100.0 - hot.access_pct, size_pct: 100.0 - hot.size_pct });
    }
    zones
}

impl Zoned {
    /// Creates zones over `units` units; there must be at least as many units as zones.
    pub(crate) fn new(spec: &AddressSpec, units: u64) -> Self {
        let zones = all_zones(spec);
        let count = zones.len() as u64;
        debug_assert!(count > 0 && units >= count);
        let (mut access, mut size, mut first) = (0.0, 0.0, 0);
        let mut pieces = Vec::with_capacity(zones.len());
        for (i, zone) in zones.iter().enumerate() {
            access += zone.access_pct;
            size += zone.size_pct;
            let later = count - 1 - i as u64;
            let end = (units as f64 * (size / 100.0)).round() as u64;
            let end = if later == 0 { units } else { end.clamp(first + 1, units - later) };
            // The cast saturates; draws above the last threshold belong to the last zone anyway.
            let threshold = (access / 100.0 * 2_f64.powi(64)) as u64;
            pieces.push(Piece { threshold, first, units: end - first });
            first = end;
        }
        Self { zones: pieces }
    }

    #[inline]
    pub(crate) fn draw(&self, random: &mut Prng) -> u64 {
        let point = random.next_u64();
        let found = self.zones.iter().find(|zone| point < zone.threshold);
        let zone = found.or(self.last_used()).expect("there is at least one zone");
        zone.first + random.below(zone.units)
    }

    /// The last zone with accesses, because rounding must not send an access into a zone of 0 %.
    #[cold]
    fn last_used(&self) -> Option<&Piece> {
        let top = self.zones.last()?.threshold;
        self.zones.iter().find(|zone| zone.threshold == top)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(access_pct: f64, size_pct: f64) -> Zone {
        Zone { access_pct, size_pct }
    }

    fn spec(kind: AddressKind, zones: &[Zone]) -> AddressSpec {
        AddressSpec { kind, zones: zones.to_vec(), ..AddressSpec::default() }
    }

    #[test]
    fn jesd219_zones_get_their_shares() {
        let zones = [zone(50.0, 5.0), zone(30.0, 15.0), zone(20.0, 80.0)];
        let generator = Zoned::new(&spec(AddressKind::Zoned, &zones), 100_000);
        let mut random = Prng::new(3);
        let draws = 1_000_000;
        // Twenty cells per zone; within a zone all are equally likely.
        let mut seen = [[0_u32; 20]; 3];
        for _ in 0..draws {
            let unit = generator.draw(&mut random);
            let (zone, first, size) = match unit {
                0..5000 => (0, 0, 5000),
                5000..20_000 => (1, 5000, 15_000),
                _ => (2, 20_000, 80_000),
            };
            seen[zone][((unit - first) * 20 / size) as usize] += 1;
        }
        let chi2: f64 = zones
            .iter()
            .zip(&seen)
            .flat_map(|(zone, cells)| cells.iter().map(move |&count| (zone.access_pct, count)))
            .map(|(pct, count)| (f64::from(draws) * pct / 100.0 / 20.0, f64::from(count)))
            .map(|(expected, count)| (count - expected).powi(2) / expected)
            .sum();
        // With 59 degrees of freedom, 0.5 % lie below 34 and 0.5 % above 91.
        assert!((30.0..95.0).contains(&chi2), "chi-square {chi2}");
    }

    #[test]
    fn hot_and_cold_are_two_zones() {
        let generator = Zoned::new(&spec(AddressKind::HotCold, &[zone(80.0, 20.0)]), 1000);
        let mut random = Prng::new(9);
        let hot = (0..100_000).filter(|_| generator.draw(&mut random) < 200).count();
        assert!((79_500..80_500).contains(&hot), "{hot}");
    }

    #[test]
    fn every_zone_has_at_least_one_unit() {
        let zones = [zone(1.0, 0.001), zone(1.0, 0.001), zone(98.0, 99.998)];
        let generator = Zoned::new(&spec(AddressKind::Zoned, &zones), 3);
        let sizes: Vec<u64> = generator.zones.iter().map(|piece| piece.units).collect();
        assert_eq!(sizes, [1, 1, 1]);
    }

    #[test]
    fn a_zone_with_a_share_of_0_percent_is_never_accessed() {
        let zones = [zone(33.3, 10.0), zone(66.7, 10.0), zone(0.0, 80.0)];
        let generator = Zoned::new(&spec(AddressKind::Zoned, &zones), 1000);
        let mut random = Prng::new(1);
        assert!((0..100_000).all(|_| generator.draw(&mut random) < 200));
        assert_eq!(generator.last_used().unwrap().first, 100);
    }
}
