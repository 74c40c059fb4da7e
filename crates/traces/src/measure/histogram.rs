//! Counts of times, sizes and distances in logarithmic buckets.

use writecliff_base::log_linear;

/// Base-2 logarithm of the buckets per power of two; upper bounds exceed values by at most 1/16.
const BITS: u32 = 4;

/// Weighted counts of integers in bounded memory; sampled values have weights above 1.
#[derive(Clone, Debug)]
pub(crate) struct WeightedHistogram {
    weights: Vec<f64>,
    pub(crate) total: f64,
    sum: f64,
    pub(crate) max: u64,
}

impl Default for WeightedHistogram {
    fn default() -> Self {
        Self { weights: vec![0.0; log_linear::buckets::<BITS>()], total: 0.0, sum: 0.0, max: 0 }
    }
}

impl WeightedHistogram {
    #[inline]
    pub(crate) fn add(&mut self, value: u64, weight: f64) {
        self.weights[log_linear::bucket_of::<BITS>(value)] += weight;
        self.total += weight;
        self.sum += value as f64 * weight;
        self.max = self.max.max(value);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (sum, weight) in self.weights.iter_mut().zip(&other.weights) {
            *sum += weight;
        }
        self.total += other.total;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    pub(crate) fn mean(&self) -> Option<f64> {
        (self.total > 0.0).then(|| self.sum / self.total)
    }

    pub(crate) fn at_zero(&self) -> f64 {
        self.weights[0]
    }

    /// Returns an upper bound of the `q` quantile that never exceeds the maximum.
    pub(crate) fn quantile(&self, q: f64) -> Option<u64> {
        if self.total <= 0.0 {
            return None;
        }
        assert!((0.0..=1.0).contains(&q), "quantile {q}");
        let wanted = q * self.total;
        let mut below = 0.0;
        for (n, weight) in self.weights.iter().enumerate() {
            below += weight;
            if *weight > 0.0 && below >= wanted * (1.0 - 1e-12) {
                return Some(log_linear::upper_bound::<BITS>(n).min(self.max));
            }
        }
        Some(self.max)
    }

    /// Returns the total weight of all values below a power of two.
    pub(crate) fn below_power(&self, exponent: u32) -> f64 {
        self.weights[..log_linear::bucket_of::<BITS>(1 << exponent)].iter().sum()
    }

    /// Returns the upper bound of each bucket in use with the cumulative fraction.
    pub(crate) fn cumulative(&self) -> Vec<(u64, f64)> {
        let mut below = 0.0;
        let mut points = Vec::new();
        for (n, weight) in self.weights.iter().enumerate().filter(|bucket| *bucket.1 > 0.0) {
            below += weight;
            points.push((log_linear::upper_bound::<BITS>(n).min(self.max), below / self.total));
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_upper_bounds_and_below_the_maximum() {
        let mut histogram = WeightedHistogram::default();
        for value in 1..=1000 {
            histogram.add(value * 1000, 1.0);
        }
        let median = histogram.quantile(0.5).unwrap();
        assert!((500_000..540_000).contains(&median));
        assert_eq!(histogram.quantile(1.0), Some(1_000_000));
        assert_eq!(histogram.mean(), Some(500_500.0));
        assert_eq!(WeightedHistogram::default().quantile(0.5), None);
    }
}
