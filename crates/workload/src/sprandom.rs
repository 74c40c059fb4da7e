//! SPRandom (SanDisk pseudo-random) writes as much data as the flash holds, so that valid data are
//! distributed as after many drive fills of random writes.
//!
//! The distribution is taken from Desnoyers, "Analytic models of SSD write performance" (ACM
//! Transactions on Storage 8(2), 2012). Under uniform random writes, blocks with i valid pages
//! occupy a fraction f(i) of the flash, where i f(i) is constant. At position x in order of age,
//! starting with the youngest data, validity is then exp(-a x). The parameter a is determined by
//! the spare flash s: the mean over all flash, (1 - exp(-a)) / a, is 1 / (1 + s). fio's `sprandom`
//! has the same curve, with an approximation for its lower end.
//!
//! The flash is written in equal regions. Each write of a region is repeated in the next region,
//! with the probability that it is finally invalid. The remainder of a region consists of blocks
//! that were not written before.
//!
//! Known deviations: the method assumes that the drive fills its flash in write order, and that it
//! collects no garbage before all flash is written.

use std::collections::VecDeque;

use writecliff_base::{Permutation, Prng};

/// Draws units of the range, for one pass over the flash.
#[derive(Clone, Debug)]
pub(crate) struct Sprandom {
    order: Permutation,
    units: u64,
    /// Number of units written for the first time so far.
    fresh: u64,
    regions: u64,
    region: u64,
    region_writes: u64,
    /// Number of writes until the next region starts.
    left: u64,
    /// Units to be rewritten: the first `due` in this region, the others in the next.
    again: VecDeque<u64>,
    due: usize,
    decay: f64,
}

impl Sprandom {
    /// Creates the generator for a range of `units` units on flash that is larger by `spare`, a
    /// fraction of the range.
    pub(crate) fn new(units: u64, spare: f64, regions: u64) -> Self {
        assert!(units > 0 && regions > 0 && spare >= 0.0);
        let flash = (units as f64 * (1.0 + spare)) as u64;
        let region_writes = (flash / regions).max(1);
        Self {
            order: Permutation::new(units),
            units,
            fresh: 0,
            regions,
            region: 0,
            region_writes,
            left: region_writes,
            again: VecDeque::new(),
            due: 0,
            decay: decay(spare),
        }
    }

    pub(crate) fn draw(&mut self, random: &mut Prng) -> u64 {
        if self.left == 0 {
            self.region = (self.region + 1).min(self.regions - 1);
            self.left = self.region_writes;
            self.due = self.again.len();
        }
        debug_assert!(self.due <= self.again.len() && self.region < self.regions);
        self.left -= 1;
        let unit = if self.due > 0 {
            self.due -= 1;
            self.again.pop_front().expect("as many are due as are kept")
        } else {
            let unit = self.order.apply(self.fresh % self.units);
            self.fresh += 1;
            unit
        };
        if random.unit() >= self.validity(self.region) {
            self.again.push_back(unit);
        }
        unit
    }

    /// Returns the fraction of a region's data that is finally valid.
    fn validity(&self, region: u64) -> f64 {
        let age = ((self.regions - 1 - region) as f64 + 0.5) / self.regions as f64;
        (-self.decay * age).exp()
    }
}

/// Returns the solution a of (1 - exp(-a)) / a = 1 / (1 + spare).
fn decay(spare: f64) -> f64 {
    let mean = 1.0 / (1.0 + spare);
    // The mean falls from 1 at a = 0 and is less than 1 / a.
    let (mut low, mut high) = (0.0, 1.0 + spare);
    for _ in 0..64 {
        let middle = f64::midpoint(low, high);
        if -f64::exp_m1(-middle) / middle > mean { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNITS: u64 = 1 << 20;

    #[test]
    fn the_decay_gives_the_mean_validity() {
        for spare in [0.03, 0.07, 0.28, 1.0, 9.0] {
            let a = decay(spare);
            assert!(((1.0 - (-a).exp()) / a * (1.0 + spare) - 1.0).abs() < 1e-9, "{spare}");
        }
    }

    #[test]
    fn every_unit_is_written_and_validity_falls_with_age_as_in_the_steady_state() {
        let (spare, regions) = (0.15, 50);
        let mut drawn = Sprandom::new(UNITS, spare, regions);
        let writes = drawn.region_writes * regions;
        let mut random = Prng::new(7);
        let mut written_last = vec![None; UNITS as usize];
        for write in 0..writes {
            written_last[drawn.draw(&mut random) as usize] = Some(write / drawn.region_writes);
        }
        let never = written_last.iter().filter(|region| region.is_none()).count();
        assert!(never as f64 / UNITS as f64 <= 1e-3, "{never}");
        let mut valid = vec![0_u64; regions as usize];
        written_last.iter().flatten().for_each(|region| valid[*region as usize] += 1);
        for (region, &count) in valid.iter().enumerate() {
            let valid_share = count as f64 / drawn.region_writes as f64;
            let expected = drawn.validity(region as u64);
            // The last region has no successor that could rewrite its data.
            assert!((valid_share - expected).abs() < 0.02, "{region}: {valid_share} v {expected}");
        }
    }
}
