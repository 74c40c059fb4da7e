//! Quantiles of a histogram, with confidence intervals.
//!
//! The point value is the nearest rank. The `q` quantile of N sorted samples is sample number
//! `ceil(q N)`. Its value is the upper bound of its bucket, but never exceeds the exact maximum (a
//! p99.9 above the maximum is a known fault of tools that print bucket bounds: fio issue 1984).
//! If fewer than one sample is expected beyond the quantile, `N (1 - q) < 1`, there is no value
//! because such a figure would only repeat the maximum.
//!
//! The interval is distribution-free and based on order statistics. The number of samples at or
//! below the true quantile is binomial (N, q), so the samples with ranks l and u enclose it with
//! probability `P(l <= B < u)`; each tail is at most 2.5 % (Hahn, Meeker: Statistical Intervals,
//! 1991, section 5.2; David, Nagaraja: Order Statistics, 2003, section 7.1). The interval assumes
//! independent samples. Latencies of neighbouring I/Os are not fully independent, so the interval
//! is a lower bound of the uncertainty.

use crate::histogram::{Histogram, HistogramError};

/// Probability in each tail of the 95 % interval.
const TAIL: f64 = 0.025;
/// The 97.5 % point of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;
/// Variance N q (1 - q) up to which the binomial ranks are exact (at most about 20 000 terms).
/// Above this variance, the normal approximation with continuity correction is within one rank of
/// the exact ranks.
const EXACT_VARIANCE: f64 = 1e6;

/// A quantile of a histogram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantile {
    /// Fraction of the values that are at most this large, between 0 and 1.
    pub q: f64,
    /// Number of samples.
    pub count: u64,
    /// Value in ns; `None` if there are not enough samples.
    pub value_ns: Option<u64>,
    /// Lower end of the 95 % interval; `None` if the samples do not provide a lower bound.
    pub low_ns: Option<u64>,
    /// Upper end of the 95 % interval; `None` if the samples do not provide an upper bound.
    pub high_ns: Option<u64>,
}

impl Histogram {
    /// Returns the `q` quantile (0 < q < 1) with its confidence interval.
    pub fn quantile(&self, q: f64) -> Result<Quantile, HistogramError> {
        if !(q > 0.0 && q < 1.0) {
            return Err(HistogramError::Quantile(q.to_string()));
        }
        let count = self.count();
        let mut quantile = Quantile { q, count, value_ns: None, low_ns: None, high_ns: None };
        if count == 0 {
            return Ok(quantile);
        }
        if has_support(count, q) {
            quantile.value_ns = Some(self.bounds_of_rank(nearest_rank(count, q)).1);
        }
        let (low, high) = interval_ranks(count, q);
        quantile.low_ns = low.map(|rank| self.bounds_of_rank(rank).0);
        quantile.high_ns = high.map(|rank| self.bounds_of_rank(rank).1);
        Ok(quantile)
    }
}

/// Returns `true` if at least one sample is expected beyond the quantile. `1 - 0.9` is not exactly
/// a tenth in binary, so a margin is needed: ten samples do support a p90.
fn has_support(count: u64, q: f64) -> bool {
    count as f64 * (1.0 - q) >= 1.0 - 1e-9
}

/// Returns `ceil(q N)` and tolerates the binary fraction: 0.07 of 100 samples is sample number 7,
/// not 8.
pub(crate) fn nearest_rank(count: u64, q: f64) -> u64 {
    debug_assert!(count > 0 && (0.0..=1.0).contains(&q), "quantile {q} of {count}");
    let exact = q * count as f64;
    let near = exact.round();
    let rank = if (exact - near).abs() <= 1e-12 * exact { near } else { exact.ceil() };
    (rank as u64).clamp(1, count)
}

/// Returns the ranks (from 1) of the samples that enclose the true quantile; `None` for a rank
/// beyond the samples.
fn interval_ranks(count: u64, q: f64) -> (Option<u64>, Option<u64>) {
    let n = count as f64;
    let (lower, upper) = if n * q * (1.0 - q) <= EXACT_VARIANCE {
        exact_ranks(n, q)
    } else {
        let half_width = Z * (n * q * (1.0 - q)).sqrt();
        ((n * q - half_width + 0.5).floor(), (n * q + half_width + 0.5).ceil())
    };
    assert!(lower < upper, "ranks {lower} and {upper} enclose no quantile");
    ((lower >= 1.0).then_some(lower as u64), (upper <= n).then_some(upper as u64))
}

/// Returns the largest l with `P(B < l) <= TAIL` and the smallest u with `P(B >= u) <= TAIL`.
///
/// Terms are computed outwards from the mode by their ratios and then scaled by their sum, so no
/// factorial is needed. Ten standard deviations (and 40 terms for the skewed, small cases) leave
/// out less than 1e-17.
fn exact_ranks(n: f64, q: f64) -> (f64, f64) {
    let odds = q / (1.0 - q);
    let mode = ((n + 1.0) * q).floor().min(n);
    let reach = 10.0 * (n * q * (1.0 - q)).sqrt().ceil() + 40.0;
    let (first, last) = ((mode - reach).max(0.0), (mode + reach).min(n));

    assert!((first..=last).contains(&mode));
    let mut weights = vec![1.0; (last - first) as usize + 1];
    let middle = (mode - first) as usize;
    for i in (0..middle).rev() {
        let k = first + i as f64;
        weights[i] = weights[i + 1] * (k + 1.0) / ((n - k) * odds);
    }
    for i in middle + 1..weights.len() {
        let k = first + i as f64;
        weights[i] = weights[i - 1] * (n - k + 1.0) * odds / k;
    }

    let allowed = TAIL * weights.iter().sum::<f64>();
    let beyond = |terms: &mut dyn Iterator<Item = &f64>| {
        let mut tail = 0.0;
        terms
            .take_while(|&&weight| {
                tail += weight;
                tail <= allowed
            })
            .count() as f64
    };
    let lower = first + beyond(&mut weights.iter());
    let upper = last + 1.0 - beyond(&mut weights.iter().rev());
    (lower, upper)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use writecliff_base::Prng;

    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::new();
        values.into_iter().for_each(|value| histogram.record(value));
        histogram
    }

    #[test]
    fn nearest_rank_of_a_hundred() {
        let histogram = of(1..=100);
        for (q, value) in [(0.01, 1), (0.07, 7), (0.5, 50), (0.505, 51), (0.9, 90), (0.99, 99)] {
            assert_eq!(histogram.quantile(q).unwrap().value_ns, Some(value), "q {q}");
        }
    }

    #[test]
    fn too_few_samples_give_no_value() {
        assert_eq!(of(1..=99).quantile(0.99).unwrap().value_ns, None);
        assert_eq!(of(1..=100).quantile(0.99).unwrap().value_ns, Some(99));
        assert_eq!(of(1..=9).quantile(0.9).unwrap().value_ns, None);
        assert_eq!(of(1..=10).quantile(0.9).unwrap().value_ns, Some(9));
        let empty = Histogram::new().quantile(0.5).unwrap();
        assert_eq!(
            (empty.count, empty.value_ns, empty.low_ns, empty.high_ns),
            (0, None, None, None)
        );
    }

    #[test]
    fn quantiles_outside_the_open_interval_are_errors() {
        for q in [0.0, 1.0, -0.1, 99.9, f64::NAN] {
            assert!(matches!(of([1]).quantile(q), Err(HistogramError::Quantile(_))), "q {q}");
        }
    }

    /// Regression test for fio issue 1984, where clat p99.9 was printed above clat max.
    #[test]
    fn no_quantile_exceeds_the_maximum() {
        let histogram = of(std::iter::repeat_n(1_000_001, 10_000));
        let quantile = histogram.quantile(0.999).unwrap();
        assert_eq!(quantile.value_ns, Some(1_000_001));
        assert_eq!(quantile.low_ns, Some(1_000_001));
    }

    #[test]
    fn latencies_above_seventeen_seconds_have_quantiles() {
        let minute = 60_000_000_000;
        let histogram = of((0..1000).map(|i| if i < 980 { 100_000 } else { minute + i }));
        let value = histogram.quantile(0.99).unwrap().value_ns.unwrap();
        assert!((minute..minute + minute / 32).contains(&value), "{value}");
    }

    /// Tests the published ranks for medians, and the smallest sample size with an upper bound for
    /// a p95.
    #[test]
    fn ranks_agree_with_published_tables() {
        assert_eq!(interval_ranks(10, 0.5), (Some(2), Some(9)));
        assert_eq!(interval_ranks(100, 0.5), (Some(40), Some(61)));
        assert_eq!(interval_ranks(5, 0.5), (None, None));
        // 0.95^n <= 0.025 first at n = 72.
        assert_eq!(interval_ranks(71, 0.95).1, None);
        assert_eq!(interval_ranks(72, 0.95).1, Some(72));
    }

    #[test]
    fn the_approximation_meets_the_exact_ranks() {
        for (n, q) in [(4_000_000, 0.5), (100_000_000, 0.99), (1_000_000_000, 0.999)] {
            let (lower, upper) = exact_ranks(f64::from(n), q);
            let half_width = Z * (f64::from(n) * q * (1.0 - q)).sqrt();
            let centre = f64::from(n) * q;
            assert!((lower - (centre - half_width + 0.5).floor()).abs() <= 1.0, "{n} {q}");
            assert!((upper - (centre + half_width + 0.5).ceil()).abs() <= 1.0, "{n} {q}");
        }
    }

    /// Draws many samples of a known distribution and counts how often the interval contains the
    /// true value.
    #[test]
    fn intervals_cover_the_truth_as_often_as_they_claim() {
        let mut random = Prng::new(20_261_121);
        for (n, q) in [(50, 0.5_f64), (1000, 0.9), (5000, 0.99), (20_000, 0.999)] {
            // The latencies are exponential with a mean of 100 us.
            let truth = (-100_000.0 * (1.0 - q).ln()) as u64;
            let rounds = if n > 10_000 { 600 } else { 2000 };
            let mut inside = 0;
            for _ in 0..rounds {
                let draw = |_| (-100_000.0 * (1.0 - random.unit()).ln()) as u64;
                let quantile = of((0..n).map(draw)).quantile(q).unwrap();
                let above = quantile.low_ns.is_none_or(|low| low <= truth);
                let below = quantile.high_ns.is_none_or(|high| truth <= high);
                inside += u32::from(above && below);
            }
            let coverage = f64::from(inside) / f64::from(rounds);
            // The test requires a coverage of 95 % minus three standard errors. Buckets and integer
            // ranks can only increase the coverage.
            assert!(
                coverage >= 0.95 - 3.0 * (0.0475_f64 / f64::from(rounds)).sqrt(),
                "{n} {q}: {coverage}"
            );
            assert!(coverage < 0.999, "{n} {q}: the interval is far too wide, {coverage}");
        }
    }

    proptest! {
        #[test]
        fn a_quantile_is_ordered_and_inside_the_extremes(
            values in proptest::collection::vec(0_u64..1 << 45, 1..400),
            q in 0.001_f64..0.999,
        ) {
            let histogram = of(values.iter().copied());
            let quantile = histogram.quantile(q).unwrap();
            let moments = histogram.moments();
            let (min, max) = (moments.min().unwrap(), moments.max().unwrap());
            let (low, high) = (quantile.low_ns.unwrap_or(min), quantile.high_ns.unwrap_or(max));
            prop_assert!(min <= low && low <= high && high <= max);
            if let Some(value) = quantile.value_ns {
                prop_assert!(low <= value && value <= high);
                let mut sorted = values.clone();
                sorted.sort_unstable();
                let exact = sorted[nearest_rank(quantile.count, q) as usize - 1];
                prop_assert!(exact <= value && value <= exact + exact / 64);
            }
        }
    }
}
