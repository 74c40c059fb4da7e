//! Zipf-distributed addresses: rank r of n is drawn with probability proportional to r^-theta.
//!
//! Method: rejection-inversion (W. Hörmann, G. Derflinger: "Rejection-inversion to generate
//! variates from monotone discrete distributions", ACM TOMACS 6(3), 1996, pages 169-184). It draws
//! in O(1) for any theta > 0, with theta = 1 as a limit, and needs no table. The widespread method
//! of Gray et al. ("Quickly generating billion-record synthetic databases", SIGMOD 1994), used by
//! fio and YCSB, is an approximation: only ranks 1 and 2 have their exact probability, and theta >=
//! 1 needs special treatment.
//!
//! Known errors: `exp` and `ln` come from the platform's C library, so rare draws may differ
//! between platforms; on one platform a seed always gives the same draws. Ranks above 2^53 are not
//! representable.
//!
//! Not modelled: moving hot spots. Which blocks are hot is a property of the data, not of the run:
//! [`writecliff_base::Permutation`] scatters the ranks in one fixed way for each number of blocks,
//! independent of the workload's seed, so that all jobs and all steps of a test share their hot
//! blocks.
//!
//! Validated by a chi-square test against the exact probabilities over all ranks of a small range,
//! and by Kolmogorov-Smirnov (1 %) over a range of a million, for theta below, at and above 1.

use writecliff_base::Prng;

/// Draws ranks in `1..=n`.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    n: f64,
    /// Number of units per rank; below 1 if ranks share units.
    units_per_rank: f64,
    theta: f64,
    /// Integral of the hat from rank 1 (less its own weight) and up to rank n + 1/2.
    low: f64,
    high: f64,
    /// Ranks this close to the inverted point are accepted without computing their weight.
    shortcut: f64,
}

impl Zipf {
    /// Creates the distribution of `ranks` ranks over `units` units. Each unit has an equal number
    /// of neighbouring ranks.
    pub(crate) fn new(ranks: u64, units: u64, theta: f64) -> Self {
        debug_assert!(ranks > 0 && units > 0);
        let (n, units_per_rank) = (ranks, units as f64 / ranks as f64);
        let mut zipf =
            Self { n: n as f64, units_per_rank, theta, low: 0.0, high: 0.0, shortcut: 0.0 };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(n as f64 + 0.5);
        zipf.shortcut = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    #[inline]
    pub(crate) fn draw(&self, random: &mut Prng) -> u64 {
        loop {
            let area = self.high + random.unit() * (self.low - self.high);
            let point = self.inverse(area);
            let rank = (point + 0.5).floor().clamp(1.0, self.n);
            if rank - point <= self.shortcut
                || area >= self.integral(rank + 0.5) - self.weight(rank)
            {
                return rank as u64;
            }
        }
    }

    /// Draws a rank and returns its unit, counted from 0.
    #[inline]
    pub(crate) fn draw_unit(&self, random: &mut Prng) -> u64 {
        ((self.draw(random) - 1) as f64 * self.units_per_rank) as u64
    }

    fn weight(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// Integral of x^-theta, shifted to be continuous in theta at 1: (x^(1-theta) - 1) / (1 -
    /// theta).
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let exponent = (1.0 - self.theta) * log;
        let ratio =
            if exponent.abs() > 1e-8 { exponent.exp_m1() / exponent } else { 1.0 + exponent / 2.0 };
        ratio * log
    }

    fn inverse(&self, area: f64) -> f64 {
        // Rounding may pass the pole at -1 for large theta.
        let product = (area * (1.0 - self.theta)).max(-1.0);
        let ratio =
            if product.abs() > 1e-8 { product.ln_1p() / product } else { 1.0 - product / 2.0 };
        (ratio * area).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(n: u64, theta: f64) -> Vec<f64> {
        let weights: Vec<f64> = (1..=n).map(|rank| (rank as f64).powf(-theta)).collect();
        let total: f64 = weights.iter().rev().sum();
        weights.iter().map(|weight| weight / total).collect()
    }

    #[test]
    fn small_ranges_pass_chi_square() {
        for theta in [0.2, 0.5, 0.99, 1.0, 1.2, 2.5] {
            let (n, draws) = (100, 1_000_000);
            let zipf = Zipf::new(n, n, theta);
            let mut random = Prng::new(11);
            let mut seen = vec![0_u32; n as usize];
            for _ in 0..draws {
                seen[zipf.draw(&mut random) as usize - 1] += 1;
            }
            let chi2: f64 = exact(n, theta)
                .iter()
                .zip(&seen)
                .map(|(p, &count)| (p * f64::from(draws), f64::from(count)))
                .map(|(expected, count)| (count - expected).powi(2) / expected)
                .sum();
            // With 99 degrees of freedom, 0.5 % lie below 66.5 and 0.5 % above 139.
            assert!((60.0..145.0).contains(&chi2), "theta {theta}: chi-square {chi2}");
        }
    }

    #[test]
    fn a_million_ranks_pass_kolmogorov_smirnov() {
        for theta in [0.5, 0.99, 1.0, 1.2] {
            let (n, draws) = (1_000_000, 200_000);
            let zipf = Zipf::new(n, n, theta);
            let mut random = Prng::new(5);
            let mut seen = vec![0_u32; n as usize];
            (0..draws).for_each(|_| seen[zipf.draw(&mut random) as usize - 1] += 1);
            let (mut ours, mut truth, mut worst) = (0.0, 0.0, 0.0_f64);
            for (p, &count) in exact(n, theta).iter().zip(&seen) {
                ours += f64::from(count) / f64::from(draws);
                truth += p;
                worst = worst.max((ours - truth).abs());
            }
            assert!(worst < 1.63 / f64::from(draws).sqrt(), "theta {theta}: distance {worst}");
        }
    }

    #[test]
    fn a_part_of_the_range_has_the_skew_of_the_whole() {
        let (ranks, units, draws) = (1_000_000_u64, 1000_u64, 200_000);
        let (zipf, mut random) = (Zipf::new(ranks, units, 1.0), Prng::new(2));
        let mut seen = vec![0_u32; units as usize];
        (0..draws).for_each(|_| seen[zipf.draw_unit(&mut random) as usize] += 1);
        let share = |first: u64, end: u64| -> f64 {
            exact(ranks, 1.0)[first as usize..end as usize].iter().sum()
        };
        let near = |count: u32, part: f64| (f64::from(count) / 2e5 - part).abs() < 0.005;
        assert!(near(seen[0], share(0, 1000)), "{}", seen[0]);
        assert!(near(seen[1..100].iter().sum(), share(1000, 100_000)), "{:?}", &seen[1..9]);
    }

    #[test]
    fn ranks_stay_inside_the_largest_drives() {
        for (n, theta) in [(1, 1.0), (2, 0.001), (1 << 35, 0.9), (1 << 35, 10.0)] {
            let zipf = Zipf::new(n, n, theta);
            let mut random = Prng::new(1);
            assert!((0..10_000).all(|_| (1..=n).contains(&zipf.draw(&mut random))), "{n} {theta}");
        }
    }
}
