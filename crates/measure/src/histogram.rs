//! A log-linear latency histogram: exact below 128 ns, then 64 buckets for each power of two.
//!
//! The buckets equal those of fio's json+ output (`stat.h`, `FIO_IO_U_PLAT_BITS` 6), so real and
//! simulated drives share one file format and the same code for quantiles. However, fio folds all
//! values above 2^34 ns (17 s) into its last bucket, whereas these buckets continue to 2^64.
//!
//! A bucket is at most 1/64 of its lower bound wide. Minimum, maximum, mean and standard deviation
//! are computed from the I/Os ([`Moments`]), never from the buckets.

use thiserror::Error;
use writecliff_base::log_linear;

use crate::moments::Moments;
use crate::quantile::nearest_rank;

/// Base-2 logarithm of the number of buckets per power of two, fio's `FIO_IO_U_PLAT_BITS`.
const BITS: u32 = 6;
pub(crate) const BUCKETS: usize = log_linear::buckets::<BITS>();
const MAGIC: &[u8; 4] = b"WCH1";

/// Error while building or reading a histogram.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum HistogramError {
    /// Number of bucket values, and the number of counts, which differs.
    #[error("histogram: {0} bucket values but {1} counts")]
    Lengths(usize, usize),
    /// Contradiction between counts, bounds and moments.
    #[error("histogram: {0}")]
    Inconsistent(&'static str),
    /// Quantile outside (0, 1), as text.
    #[error("histogram: quantile {0} is not between 0 and 1 (exclusive)")]
    Quantile(String),
    /// The data do not start with the magic bytes `WCH1`.
    #[error("not a writecliff histogram (the data do not start with WCH1)")]
    NotAHistogram,
    /// Element of the data that is truncated or impossible.
    #[error("histogram data are damaged: {0}")]
    Damaged(&'static str),
}

/// Latency histogram in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    counts: Box<[u64; BUCKETS]>,
    moments: Moments,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

#[inline]
pub(crate) const fn bucket_of(value: u64) -> usize {
    log_linear::bucket_of::<BITS>(value)
}

pub(crate) const fn lower_bound(bucket: usize) -> u64 {
    log_linear::lower_bound::<BITS>(bucket)
}

pub(crate) const fn upper_bound(bucket: usize) -> u64 {
    log_linear::upper_bound::<BITS>(bucket)
}

impl Histogram {
    /// Returns an empty histogram.
    pub fn new() -> Self {
        let counts: Box<[u64]> = vec![0; BUCKETS].into_boxed_slice();
        let counts =
            counts.try_into().unwrap_or_else(|_| unreachable!("BUCKETS long by construction"));
        Self { counts, moments: Moments::EMPTY }
    }

    /// Counts a latency of `value_ns` nanoseconds.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        self.record_many(value_ns, 1);
    }

    /// Records a latency without its moments, which [`Self::add_moments`] adds later.
    #[inline]
    pub fn record_bucket(&mut self, value_ns: u64) {
        self.counts[bucket_of(value_ns)] += 1;
    }

    /// Adds the moments of latencies that were recorded without their moments.
    #[inline]
    pub fn add_moments(&mut self, moments: &Moments) {
        self.moments.merge(moments);
    }

    /// Records the same latency `count` times.
    #[inline]
    pub fn record_many(&mut self, value_ns: u64, count: u64) {
        self.counts[bucket_of(value_ns)] += count;
        self.moments.record_many(value_ns, count);
    }

    /// Adds all values recorded in `other`.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts.iter()) {
            *count += more;
        }
        self.moments.merge(&other.moments);
    }

    /// Returns the exact count, minimum, maximum, mean and variance.
    pub fn moments(&self) -> &Moments {
        &self.moments
    }

    /// Returns the number of recorded values.
    pub fn count(&self) -> u64 {
        self.moments.count
    }

    pub(crate) fn bucket_counts(&self) -> &[u64; BUCKETS] {
        &self.counts
    }

    /// Returns the bucket that contains the sample with rank `ceil(share * total)`, where `total`
    /// is the sum over all buckets.
    pub(crate) fn bucket_of_share(&self, share: f64, total: u64) -> usize {
        let rank = nearest_rank(total, share);
        let mut below = 0;
        let reaches = |&count: &u64| {
            below += count;
            below >= rank
        };
        self.counts.iter().position(reaches).unwrap_or(BUCKETS - 1)
    }

    /// Returns the non-empty buckets in ascending order, as (lower bound, upper bound, count); both
    /// bounds are inclusive.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let filled = self.counts.iter().enumerate().filter(|&(_, &count)| count > 0);
        filled.map(|(bucket, &count)| (lower_bound(bucket), upper_bound(bucket), count))
    }

    /// Returns the bounds of the sample with rank `rank` (from 1), narrowed by the exact minimum
    /// and maximum.
    ///
    /// The outermost buckets extend to the extremes, even beyond their own bounds. fio counts all
    /// values above 17 s in one bucket, and only the maximum reveals its actual upper end.
    pub(crate) fn bounds_of_rank(&self, rank: u64) -> (u64, u64) {
        debug_assert!((1..=self.count()).contains(&rank));
        let mut below = 0;
        for (lower, upper, count) in self.buckets() {
            let first = below == 0;
            below += count;
            if below >= rank {
                let last = below == self.count();
                let low = if first { self.moments.min } else { lower.max(self.moments.min) };
                let high = if last { self.moments.max } else { upper.min(self.moments.max) };
                return (low, high);
            }
        }
        unreachable!("the counts of the buckets add up to the count of the I/Os")
    }

    /// Creates a histogram from pairs like fio's json+ `bins` (each value anywhere in its bucket)
    /// and the exact moments that the tool reported with them; `sd_ns` uses n - 1, as in fio.
    pub fn from_buckets(
        values_ns: &[u64],
        counts: &[u64],
        (min_ns, max_ns): (u64, u64),
        (mean_ns, sd_ns): (f64, f64),
    ) -> Result<Self, HistogramError> {
        use HistogramError::Inconsistent;
        if values_ns.len() != counts.len() {
            return Err(HistogramError::Lengths(values_ns.len(), counts.len()));
        }
        let mut histogram = Self::new();
        let mut total = 0_u64;
        for (&value, &count) in values_ns.iter().zip(counts) {
            // No bucket can overflow because the total bounds every count.
            total = total
                .checked_add(count)
                .ok_or(Inconsistent("the histogram has more than 2^64 I/Os"))?;
            histogram.counts[bucket_of(value)] += count;
        }
        if total == 0 {
            return Ok(histogram);
        }
        if min_ns > max_ns {
            return Err(Inconsistent("the minimum exceeds the maximum"));
        }
        // Reported means are rounded, so the last digit of a mean may lie outside the range from
        // minimum to maximum.
        let slack = 1e-6 * mean_ns + 1.0;
        if !(min_ns as f64 - slack..=max_ns as f64 + slack).contains(&mean_ns) {
            return Err(Inconsistent("the mean is not between minimum and maximum"));
        }
        if !(sd_ns.is_finite() && sd_ns >= 0.0) {
            return Err(Inconsistent("the standard deviation is negative or not a number"));
        }
        histogram.moments = Moments::from_measured(total, min_ns, max_ns, mean_ns, sd_ns);
        Ok(histogram)
    }

    /// Encodes the histogram in a compact format: `WCH1`, then, in LEB128, the count, minimum,
    /// maximum, sum and sum of squares, and for each non-empty bucket its distance from the
    /// previous bucket and its count.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        let m = &self.moments;
        assert_eq!(self.counts.iter().sum::<u64>(), m.count, "latencies without moments");
        let narrow = [m.count, m.min, m.max].map(u128::from);
        for value in narrow.into_iter().chain([m.sum, m.sum_of_squares]) {
            put(&mut out, value);
        }
        let mut next = 0;
        for (bucket, &count) in self.counts.iter().enumerate().filter(|&(_, &count)| count > 0) {
            put(&mut out, (bucket - next) as u128);
            put(&mut out, u128::from(count));
            next = bucket + 1;
        }
        out
    }

    /// Restores a histogram from the output of [`Self::to_bytes`]; the result equals the original.
    pub fn from_bytes(data: &[u8]) -> Result<Self, HistogramError> {
        use HistogramError::Damaged;
        let mut rest = data.strip_prefix(MAGIC).ok_or(HistogramError::NotAHistogram)?;
        let mut histogram = Self::new();
        let count = take_u64(&mut rest)?;
        let min = take_u64(&mut rest)?;
        let max = take_u64(&mut rest)?;
        let (sum, sum_of_squares) = (take(&mut rest)?, take(&mut rest)?);
        let mut total = 0_u64;
        let mut next = 0_usize;
        while !rest.is_empty() {
            let gap = take_u64(&mut rest)?.min(BUCKETS as u64) as usize;
            let slot = histogram
                .counts
                .get_mut(next + gap)
                .ok_or(Damaged("a bucket number is out of range"))?;
            *slot = take_u64(&mut rest)?;
            total = total.checked_add(*slot).ok_or(Damaged("more than 2^64 I/Os"))?;
            next += gap + 1;
        }
        if total != count {
            return Err(Damaged("the bucket counts do not add up to the total count"));
        }
        if (count == 0) != (min > max) {
            return Err(Damaged("the minimum and maximum are inconsistent with the count"));
        }
        histogram.moments = Moments { count, min, max, sum, sum_of_squares };
        Ok(histogram)
    }
}

fn put(out: &mut Vec<u8>, mut value: u128) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn take(rest: &mut &[u8]) -> Result<u128, HistogramError> {
    let mut value = 0_u128;
    for shift in (0..u128::BITS).step_by(7) {
        let (&byte, tail) = rest.split_first().ok_or(HistogramError::Damaged("truncated"))?;
        *rest = tail;
        value |= u128::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(HistogramError::Damaged("a number has more than 128 bits"))
}

fn take_u64(rest: &mut &[u8]) -> Result<u64, HistogramError> {
    u64::try_from(take(rest)?)
        .map_err(|_| HistogramError::Damaged("a number has more than 64 bits"))
}

#[cfg(test)]
mod tests;
