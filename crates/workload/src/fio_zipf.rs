//! Zipf-distributed addresses as fio draws them, for comparison with a real drive under fio.
//!
//! Method: the approximation of Gray et al. ("Quickly generating billion-record synthetic
//! databases", SIGMOD 1994). Two properties of fio (3.33, observed in logs of its addresses) make
//! it more skewed than the law of the same exponent:
//!
//! * the weights are summed over the first ten million blocks only, so the two hottest blocks of a
//!   larger range are too hot;
//! * ranks become blocks by a multiplication modulo the size of the range. Unless that is a power
//!   of two, ranks collide and a share of about 1/e of the blocks is never accessed.
//!
//! Known errors: the hash is not rotated, so that all jobs share their hot blocks, as with a fixed
//! centre in fio.
//!
//! Validated by the counts of the hottest blocks and of all blocks that fio accesses.

use writecliff_base::Prng;

/// Maximum number of blocks whose weights fio sums.
const SUMMED_MAX: u64 = 10_000_000;
/// Number of weights that are added individually; the weights of further ranks are integrated.
const ADDED: u64 = 10_000;
/// Multiplier that maps ranks to blocks.
const HASH: u64 = 0x61c8_8646_80b5_83eb;

/// Draws blocks in `0..n`.
#[derive(Clone, Debug)]
pub(crate) struct FioZipf {
    n: u64,
    /// Sum of the weights of all summed blocks.
    total: f64,
    /// Sum of the weights of the first two blocks.
    first_two: f64,
    eta: f64,
    alpha: f64,
}

impl FioZipf {
    /// Creates the distribution over `n` blocks with the exponent `theta`, which must be positive
    /// and not 1.
    pub(crate) fn new(n: u64, theta: f64) -> Self {
        debug_assert!(n > 0 && theta > 0.0);
        let total = weights(n.min(SUMMED_MAX), theta);
        let first_two = 1.0 + 0.5_f64.powf(theta);
        let eta = (1.0 - (2.0 / n as f64).powf(1.0 - theta)) / (1.0 - first_two / total);
        Self { n, total, first_two, eta, alpha: 1.0 / (1.0 - theta) }
    }

    #[inline]
    pub(crate) fn draw(&self, random: &mut Prng) -> u64 {
        let point = random.unit();
        let weight = point * self.total;
        let rank = if weight < 1.0 {
            0
        } else if weight < self.first_two {
            1
        } else {
            (self.n as f64 * (self.eta * (point - 1.0) + 1.0).powf(self.alpha)) as u64
        };
        rank.wrapping_mul(HASH) % self.n
    }
}

/// Returns the sum of the weights of `count` ranks, by the midpoint rule above [`ADDED`].
fn weights(count: u64, theta: f64) -> f64 {
    let added: f64 = (1..=count.min(ADDED)).map(|rank| (rank as f64).powf(-theta)).sum();
    let integral = |rank: u64| (rank as f64 + 0.5).powf(1.0 - theta) / (1.0 - theta);
    if count <= ADDED { added } else { added + integral(count) - integral(ADDED) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of accesses of each accessed block, in descending order.
    fn counts(n: u64, theta: f64, draws: usize) -> Vec<usize> {
        let (zipf, mut random) = (FioZipf::new(n, theta), Prng::new(7));
        let mut blocks: Vec<u64> = (0..draws).map(|_| zipf.draw(&mut random)).collect();
        blocks.sort_unstable();
        let mut counts: Vec<usize> = blocks.chunk_by(|a, b| a == b).map(<[_]>::len).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts
    }

    #[test]
    fn hottest_and_unique_blocks_are_those_of_fio() {
        // fio 3.33, two million I/Os of 4 KiB over 960 GB: accesses of the two hottest blocks, and
        // number of accessed blocks.
        for (theta, first, second, unique) in
            [(0.8, 16_473, 9_458, 1_616_091), (0.99, 109_716, 55_941, 847_969)]
        {
            let counts = counts(234_375_000, theta, 2_000_000);
            let near = |ours: usize, fio: usize| ours.abs_diff(fio) * 20 < fio;
            assert!(near(counts[0], first) && near(counts[1], second), "{:?}", &counts[..2]);
            assert!(near(counts.len(), unique), "{}", counts.len());
        }
    }

    #[test]
    fn the_sum_of_weights_is_that_of_all_ranks() {
        for theta in [0.3, 0.99, 1.7] {
            let all: f64 = (1..=1_000_000_u64).map(|rank| (rank as f64).powf(-theta)).sum();
            let quick = weights(1_000_000, theta);
            assert!((quick / all - 1.0).abs() < 1e-9, "theta {theta}: {quick}, {all}");
        }
    }

    #[test]
    fn ranks_collide_unless_the_range_is_a_power_of_two() {
        let accessed_share = |n: u64| counts(n, 0.2, 15 * n as usize).len() as f64 / n as f64;
        assert!(accessed_share(1 << 16) > 0.999, "{}", accessed_share(1 << 16));
        let share = accessed_share(60_000);
        assert!((share - (1.0 - 1.0_f64.exp().recip())).abs() < 0.05, "{share}");
    }

    #[test]
    fn blocks_stay_inside_the_range() {
        for (n, theta) in [(1, 0.5), (2, 2.0), (3, 0.99), (1 << 35, 10.0)] {
            let (zipf, mut random) = (FioZipf::new(n, theta), Prng::new(1));
            assert!((0..10_000).all(|_| zipf.draw(&mut random) < n), "{n} {theta}");
        }
    }
}
