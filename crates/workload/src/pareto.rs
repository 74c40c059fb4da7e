//! Pareto-like addresses: a share h of the blocks takes 1 - h of the accesses, and so on within it.
//!
//! Source: the self-similar distribution of Gray et al. ("Quickly generating billion-record
//! synthetic databases", SIGMOD 1994), which fio calls `pareto:h`: rank n u^(log h / log(1 - h))
//! for a uniform u. With h = 20 % it is the rule of 80/20. Ranks are scattered over the range by
//! the same permutation as those of zipf.
//!
//! Known errors: `powf` comes from the platform's C library, so rare draws may differ between
//! platforms. Validated by the shares that nested hot parts take.

use writecliff_base::Prng;

/// Draws ranks in `0..n`.
#[derive(Clone, Debug)]
pub(crate) struct Pareto {
    n: u64,
    power: f64,
}

impl Pareto {
    pub(crate) fn new(n: u64, hot_pct: f64) -> Self {
        let hot = hot_pct / 100.0;
        Self { n, power: hot.ln() / (1.0 - hot).ln() }
    }

    #[inline]
    pub(crate) fn draw(&self, random: &mut Prng) -> u64 {
        ((self.n as f64 * random.unit().powf(self.power)) as u64).min(self.n - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_blocks_takes_the_rest_of_the_accesses_at_every_scale() {
        for hot in [0.1_f64, 0.2, 0.4] {
            let (n, draws) = (1_u64 << 30, 400_000);
            let pareto = Pareto::new(n, 100.0 * hot);
            let mut random = Prng::new(3);
            let ranks: Vec<u64> = (0..draws).map(|_| pareto.draw(&mut random)).collect();
            for level in 1..4 {
                let below = (n as f64 * hot.powi(level)) as u64;
                let share = ranks.iter().filter(|&&rank| rank < below).count() as f64 / 4e5;
                let expected = (1.0 - hot).powi(level);
                let tolerance = 4.0 * (expected * (1.0 - expected) / 4e5).sqrt();
                assert!((share - expected).abs() < tolerance, "{hot} {level}: {share}");
            }
        }
    }

    #[test]
    fn ranks_stay_inside_the_range() {
        for n in [1, 2, 3, 1 << 35] {
            let (pareto, mut random) = (Pareto::new(n, 99.0), Prng::new(1));
            assert!((0..10_000).all(|_| pareto.draw(&mut random) < n));
        }
    }
}
