//! Normally distributed addresses: the ranks of the blocks around the middle one are the hot ones.
//!
//! A rank is the middle plus a sum of twelve uniform numbers less six, which has mean 0 and
//! standard deviation 1 (Irwin-Hall), times the deviation; ranks outside are drawn again. No
//! function of the C library is involved, so draws are the same on every platform. Ranks are
//! scattered over the range by the same permutation as those of zipf.
//!
//! Known error: the sum ends at six standard deviations. Validated by mean, deviation and the
//! shares within one and two deviations.

use writecliff_base::Prng;

/// Draws ranks in `0..n`.
#[derive(Clone, Debug)]
pub(crate) struct Normal {
    n: f64,
    deviation: f64,
}

impl Normal {
    pub(crate) fn new(n: u64, deviation_pct: f64) -> Self {
        Self { n: n as f64, deviation: n as f64 * deviation_pct / 100.0 }
    }

    #[inline]
    pub(crate) fn draw(&self, random: &mut Prng) -> u64 {
        loop {
            let sum: f64 = (0..12).map(|_| random.unit()).sum();
            let rank = self.n / 2.0 + self.deviation * (sum - 6.0);
            if rank >= 0.0 && rank < self.n {
                return rank as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_have_the_mean_and_deviation_and_shape_of_the_bell() {
        let (n, draws) = (1_000_000_u64, 400_000);
        let (normal, mut random) = (Normal::new(n, 8.0), Prng::new(9));
        let ranks: Vec<f64> = (0..draws).map(|_| normal.draw(&mut random) as f64).collect();
        let mean = ranks.iter().sum::<f64>() / f64::from(draws);
        let variance = ranks.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / f64::from(draws);
        assert!((mean - 5e5).abs() < 4.0 * 8e4 / 4e5_f64.sqrt(), "{mean}");
        assert!((variance.sqrt() / 8e4 - 1.0).abs() < 0.005, "{}", variance.sqrt());
        for (within, expected) in [(8e4, 0.6827), (1.6e5, 0.9545)] {
            let share = ranks.iter().filter(|r| (*r - 5e5).abs() < within).count() as f64 / 4e5;
            // The sum of twelve differs from the bell by less than 0.004 here.
            assert!((share - expected).abs() < 0.006, "{within}: {share}");
        }
    }

    #[test]
    fn ranks_stay_inside_the_range() {
        for (n, deviation) in [(1, 50.0), (3, 100.0), (1 << 35, 100.0)] {
            let (normal, mut random) = (Normal::new(n, deviation), Prng::new(1));
            assert!((0..10_000).all(|_| normal.draw(&mut random) < n));
        }
    }
}
