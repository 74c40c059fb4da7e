//! Latency by cause: for each bucket of a latency histogram, the total time of its I/Os by cause.
//!
//! Bucket sums need one pass and little memory, and any band of percentiles can be computed from
//! the sums afterwards. Each row adds up exactly to the latencies of its I/Os, to the nanosecond.

use writecliff_host_interface::{CAUSES, TimeByCause};

use crate::histogram::{BUCKETS, bucket_of, lower_bound, upper_bound};

/// I/Os in one latency bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketCauses {
    /// Lower bound of the latencies, inclusive.
    pub lower_ns: u64,
    /// Upper bound of the latencies, inclusive.
    pub upper_ns: u64,
    /// Number of I/Os in the bucket.
    pub ios: u64,
    /// Total time of the I/Os by cause, in the order of `Cause::ALL`.
    pub spent_ns: [u64; CAUSES],
}

#[derive(Clone, Debug, Default)]
struct BucketRow {
    bucket: usize,
    ios: u64,
    spent: TimeByCause,
}

const _: () = assert!(BUCKETS < u16::MAX as usize, "positions have 16 bits");

/// Times by cause for the I/Os of one operation.
#[derive(Clone, Debug)]
pub struct LatencyCauses {
    /// Position of each bucket in `rows`, plus 1; 0 if the bucket is empty.
    positions: Box<[u16; BUCKETS]>,
    rows: Vec<BucketRow>,
}

impl Default for LatencyCauses {
    fn default() -> Self {
        Self { positions: Box::new([0; BUCKETS]), rows: Vec::new() }
    }
}

impl LatencyCauses {
    /// Records an I/O; the times in `spent` must add up to its latency.
    #[inline]
    pub fn record(&mut self, latency_ns: u64, spent: &TimeByCause) {
        debug_assert_eq!(spent.total().0, latency_ns, "causes do not add up: {spent:?}");
        let bucket = bucket_of(latency_ns);
        let position = &mut self.positions[bucket];
        if *position == 0 {
            self.rows.push(BucketRow { bucket, ..BucketRow::default() });
            *position = self.rows.len() as u16;
        }
        let row = &mut self.rows[usize::from(*position) - 1];
        debug_assert_eq!(row.bucket, bucket);
        row.ios += 1;
        for (sum, &time) in row.spent.0.iter_mut().zip(&spent.0) {
            *sum += time;
        }
    }

    /// Returns the non-empty buckets in ascending order.
    pub fn buckets(&self) -> Vec<BucketCauses> {
        let filled = self.positions.iter().filter(|&&position| position > 0);
        let row = |&position: &u16| {
            let BucketRow { bucket, ios, spent } = &self.rows[usize::from(position) - 1];
            let (lower_ns, upper_ns) = (lower_bound(*bucket), upper_bound(*bucket));
            BucketCauses { lower_ns, upper_ns, ios: *ios, spent_ns: spent.0.map(|time| time.0) }
        };
        filled.map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use writecliff_base::Nanos;
    use writecliff_host_interface::Cause;

    use super::*;
    use crate::Histogram;

    fn spent(flash: u64, link: u64) -> TimeByCause {
        let mut spent = TimeByCause::default();
        spent.add(Cause::Flash, Nanos(flash));
        spent.add(Cause::Link, Nanos(link));
        spent
    }

    proptest! {
        /// Tests that the rows match the buckets of a histogram of the same latencies, and that no
        /// time is lost.
        #[test]
        fn rows_are_those_of_the_histogram(
            ios in prop::collection::vec((0_u64..1 << 40, 0_u64..1 << 20), 0..200),
        ) {
            let (mut causes, mut histogram) = (LatencyCauses::default(), Histogram::new());
            for &(flash, link) in &ios {
                causes.record(flash + link, &spent(flash, link));
                histogram.record(flash + link);
            }
            let rows = causes.buckets();
            let counted: Vec<_> = rows.iter().map(|r| (r.lower_ns, r.upper_ns, r.ios)).collect();
            prop_assert_eq!(counted, histogram.buckets().collect::<Vec<_>>());
            let sum: u64 = rows.iter().flat_map(|row| row.spent_ns).sum();
            prop_assert_eq!(sum, ios.iter().map(|(flash, link)| flash + link).sum::<u64>());
        }
    }
}
