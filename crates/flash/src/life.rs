//! Block lifetime: the number of program/erase cycles after which the block fails.
//!
//! Block lifetimes follow a Weibull distribution, as is usual for wear-out (JEDEC JEP122): a
//! fraction `1 - exp(-(n / scale)^shape)` of the blocks has failed after `n` cycles. If the shape
//! parameter is above 1, the failure rate rises with the number of cycles.

/// Distribution of block lifetimes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockLife {
    /// Rated program/erase cycles.
    pub rated_cycles: u32,
    /// Fraction of the blocks that has failed after the rated cycles.
    pub failed_at_rated: f64,
    /// Shape parameter of the Weibull distribution.
    pub shape: f64,
}

impl BlockLife {
    /// Returns the fraction of the blocks that has failed after `cycles`.
    pub fn failed(&self, cycles: f64) -> f64 {
        debug_assert!(cycles >= 0.0 && self.rated_cycles > 0);
        let at_rated = (-self.failed_at_rated).ln_1p();
        -(at_rated * (cycles / f64::from(self.rated_cycles)).powf(self.shape)).exp_m1()
    }

    /// Returns the cycle, at least 1, in which the block at quantile `draw` in `[0, 1)` fails.
    pub fn cycles(&self, draw: f64) -> u32 {
        if self.failed_at_rated <= 0.0 {
            return u32::MAX;
        }
        debug_assert!((0.0..1.0).contains(&draw), "not a share of the blocks");
        let ratio = (-draw).ln_1p() / (-self.failed_at_rated).ln_1p();
        let cycles = f64::from(self.rated_cycles) * ratio.powf(self.shape.recip());
        (cycles.ceil() as u32).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: BlockLife = BlockLife { rated_cycles: 3000, failed_at_rated: 0.02, shape: 4.0 };

    #[test]
    fn the_given_share_has_failed_at_the_rated_cycles() {
        assert!((LIFE.failed(3000.0) - 0.02).abs() < 1e-12);
        assert!(LIFE.failed(0.0).abs() < 1e-12);
        // At low cycle counts, the failed fraction grows as a power of the cycle count, and `shape`
        // is the exponent.
        let ratio = LIFE.failed(3000.0) / LIFE.failed(1500.0);
        assert!((ratio - 16.0).abs() < 0.2, "{ratio}");
    }

    #[test]
    fn lives_are_the_inverse_of_the_distribution() {
        for draw in [1e-6, 0.01, 0.02, 0.5, 0.99] {
            let cycles = f64::from(LIFE.cycles(draw));
            assert!(LIFE.failed(cycles) >= draw && LIFE.failed(cycles - 1.0) < draw, "{draw}");
        }
        assert_eq!(LIFE.cycles(0.0), 1);
        let immortal = BlockLife { failed_at_rated: 0.0, ..LIFE };
        assert_eq!(immortal.cycles(0.999), u32::MAX);
    }
}
