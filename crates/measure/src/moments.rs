//! Exact count, minimum, maximum, mean and standard deviation of integers.
//!
//! Sums are 128-bit integers, so the result does not depend on the order of the I/Os, and merging
//! is lossless. Sums of squares may wrap. The variance is computed modulo 2^128 and is correct if
//! it fits into 128 bits, which is the case for latencies below centuries.

/// Running moments of the I/Os themselves, never of histogram buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moments {
    pub(crate) count: u64,
    pub(crate) min: u64,
    pub(crate) max: u64,
    pub(crate) sum: u128,
    /// Sum of squares, modulo 2^128.
    pub(crate) sum_of_squares: u128,
}

impl Default for Moments {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Moments {
    pub(crate) const EMPTY: Self =
        Self { count: 0, min: u64::MAX, max: 0, sum: 0, sum_of_squares: 0 };

    #[inline]
    pub(crate) fn record(&mut self, value: u64) {
        self.record_many(value, 1);
    }

    /// Records the same value `count` times.
    #[inline]
    pub(crate) fn record_many(&mut self, value: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.count += count;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        let (value, count) = (u128::from(value), u128::from(count));
        self.sum += value * count;
        self.sum_of_squares = self.sum_of_squares.wrapping_add((value * value).wrapping_mul(count));
    }

    /// Adds the values recorded in `other`.
    #[inline]
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.sum_of_squares = self.sum_of_squares.wrapping_add(other.sum_of_squares);
    }

    /// Returns moments measured by another tool. `sd` is the sample standard deviation.
    pub(crate) fn from_measured(count: u64, min: u64, max: u64, mean: f64, sd: f64) -> Self {
        if count == 0 {
            return Self::EMPTY;
        }
        assert!(min <= max && sd >= 0.0, "the caller checks what the tool reported");
        let n = u128::from(count);
        // The tool reported the rounded mean of integers, so the nearest integer to mean times
        // count is the exact sum.
        let sum = (mean * count as f64).round() as u128;
        let (quotient, rest) = (sum / n, sum % n);
        let central = (sd * sd * (count - 1) as f64).round() as u128;
        let about_zero = quotient
            .wrapping_mul(quotient)
            .wrapping_mul(n)
            .wrapping_add((2 * quotient).wrapping_mul(rest))
            .wrapping_add(rest.wrapping_mul(rest) / n);
        Self { count, min, max, sum, sum_of_squares: central.wrapping_add(about_zero) }
    }

    /// Returns the number of values.
    #[inline]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the exact minimum; `None` if there are no values.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// Returns the exact maximum; `None` if there are no values.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// Returns the exact mean; `None` if there are no values.
    pub fn mean(&self) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        debug_assert!(self.min <= self.max);
        let n = u128::from(self.count);
        Some((self.sum / n) as f64 + (self.sum % n) as f64 / n as f64)
    }

    /// Returns the sample standard deviation (n - 1 in the denominator, as in fio's output); 0 for
    /// one sample.
    pub fn sd(&self) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        let n = u128::from(self.count);
        let (quotient, rest) = (self.sum / n, self.sum % n);
        // The sum of (x - quotient)^2 consists of small numbers, so floating-point addition loses
        // no precision to cancellation.
        let central = self
            .sum_of_squares
            .wrapping_sub(self.sum.wrapping_mul(2).wrapping_mul(quotient))
            .wrapping_add(quotient.wrapping_mul(quotient).wrapping_mul(n));
        let shift = rest as f64 * (rest as f64 / n as f64);
        let degrees = (self.count - 1).max(1) as f64;
        Some(((central as f64 - shift).max(0.0) / degrees).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[u64]) -> Moments {
        let mut moments = Moments::EMPTY;
        values.iter().copied().for_each(|value| moments.record(value));
        moments
    }

    #[test]
    fn textbook_numbers() {
        let moments = of(&[2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!((moments.min(), moments.max(), moments.mean()), (Some(2), Some(9), Some(5.0)));
        assert!((moments.sd().unwrap() - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!(of(&[]).mean(), None);
        assert_eq!(of(&[3]).sd(), Some(0.0));
    }

    /// Tests a mean of 10^18 with a spread of 1, where sums of squares in `f64` would give 0 or
    /// worse.
    #[test]
    fn a_large_mean_does_not_swallow_the_spread() {
        let base = 9_000_000_000_000_000_000;
        let moments = of(&[base, base + 2, base, base + 2, base, base + 2]);
        assert!((moments.sd().unwrap() - 1.2_f64.sqrt()).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn agrees_with_two_passes(values in proptest::collection::vec(0_u64..1 << 40, 2..200)) {
            let n = values.len() as f64;
            let mean = values.iter().map(|&v| v as f64).sum::<f64>() / n;
            let squares = values.iter().map(|&v| (v as f64 - mean).powi(2)).sum::<f64>();
            let moments = of(&values);
            prop_assert!((moments.mean().unwrap() / mean - 1.0).abs() < 1e-12 || mean == 0.0);
            let sd = (squares / (n - 1.0)).sqrt();
            prop_assert!((moments.sd().unwrap() - sd).abs() <= 1e-9 * sd);
        }

        #[test]
        fn measured_moments_come_back(values in proptest::collection::vec(0_u64..1 << 36, 1..100)) {
            let exact = of(&values);
            let (mean, sd) = (exact.mean().unwrap(), exact.sd().unwrap());
            let back = Moments::from_measured(exact.count, exact.min, exact.max, mean, sd);
            prop_assert_eq!(back.sum, exact.sum);
            prop_assert!((back.sd().unwrap() - sd).abs() <= 1e-6 * sd + 1e-3);
        }
    }
}
