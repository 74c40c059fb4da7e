//! Segments of the active range (PTS): equal portions of the range, to which all accesses are
//! restricted.
//!
//! Definition: n contiguous LBA ranges of equal size inside the active range. The starts of the
//! ranges are randomly distributed, the set spans the active range, and no two ranges touch (SNIA
//! PTS, terms "AR Segments" and "AR Amount"; segment size = AR amount / n). In this implementation,
//! the first segment starts at the beginning of the range and the last segment ends at the end of
//! the range. The starts of the other segments are uniform over all arrangements with gaps of at
//! least one block. The standard does not specify the distribution.

use writecliff_base::{Bytes, Prng};

use crate::spec::JobSpec;

/// Start offsets of the segments, relative to the start of the range, and the segment size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentMap {
    pub(crate) starts: Vec<u64>,
    /// Size of each segment in bytes.
    pub size: u64,
}

impl SegmentMap {
    /// Distributes the segments of `job` over a range of `range` bytes; returns an error message if
    /// they do not fit or the job has none.
    pub fn new(job: &JobSpec, range: Bytes) -> Result<Self, String> {
        let spec = job.segments.ok_or("the job has no segments")?;
        let lengths = job.block_sizes.iter().map(|size| size.bytes);
        let largest = lengths.max().unwrap_or(0).max(job.align_bytes.unwrap_or(0)).max(1);
        let size = spec.amount_bytes / spec.count.max(1) / largest * largest;
        if size == 0 {
            return Err(format!(
                "{} in {} segments is less than one block of {} per segment",
                Bytes(spec.amount_bytes),
                spec.count,
                Bytes(largest)
            ));
        }
        // From this point on, all units are blocks: every start is aligned, and every gap has at
        // least one block.
        let (blocks, range_blocks) = (size / largest, range.0 / largest);
        let needed = spec.count.checked_mul(blocks + 1).map(|all| all - 1);
        let Some(free) = needed.and_then(|needed| range_blocks.checked_sub(needed)) else {
            return Err(format!(
                "{} segments of {} do not fit into {range} without touching",
                spec.count,
                Bytes(size)
            ));
        };
        let starts = shifts(spec.count, free, spec.seed)
            .into_iter()
            .enumerate()
            .map(|(i, shift)| (shift + i as u64 * (blocks + 1)) * largest)
            .collect::<Vec<_>>();
        debug_assert!(
            starts.is_sorted_by(|first, second| first + size < *second),
            "segments touch"
        );
        assert!(
            starts.last().is_some_and(|last| last + size <= range.0),
            "a segment leaves the range"
        );
        Ok(Self { starts, size })
    }

    /// Maps a byte position in the active range amount, with the segments laid end to end, to the
    /// start of its segment and the offset in the segment.
    #[inline]
    pub(crate) fn locate(&self, position: u64) -> (u64, u64) {
        let segment = position / self.size;
        (self.starts[segment as usize], position - segment * self.size)
    }

    /// Draws a segment uniformly and returns its start.
    #[inline]
    pub(crate) fn draw(&self, random: &mut Prng) -> u64 {
        self.starts[random.below(self.starts.len() as u64) as usize]
    }
}

/// Returns `count` ascending numbers in `0..=free`: the first is 0, the last is `free`, and the
/// others are uniform.
fn shifts(count: u64, free: u64, seed: u64) -> Vec<u64> {
    let mut random = Prng::derive(seed, 0x5e6_0000_0000);
    let inner = count.saturating_sub(2);
    let mut shifts: Vec<u64> = (0..inner).map(|_| random.below(free + 1)).collect();
    shifts.sort_unstable();
    shifts.insert(0, 0);
    if count > 1 {
        shifts.push(free);
    }
    shifts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::spec::SegmentSpec;

    fn job(count: u64, amount_bytes: u64, seed: u64) -> JobSpec {
        let segments = Some(SegmentSpec { count, amount_bytes, seed });
        JobSpec { segments, ios: Some(1), ..JobSpec::default() }
    }

    #[test]
    fn a_pts_range_has_its_2048_segments() {
        let range = Bytes(120_034_123_776);
        let map = SegmentMap::new(&job(2048, 8 << 30, 1), range).unwrap();
        assert_eq!((map.starts.len(), map.size), (2048, 4 << 20));
        assert_eq!(map, SegmentMap::new(&job(2048, 8 << 30, 1), range).unwrap());
        assert_ne!(map, SegmentMap::new(&job(2048, 8 << 30, 2), range).unwrap());
    }

    /// Tests that the starts between the fixed first and last start are uniform, with
    /// Kolmogorov-Smirnov at 1 %.
    #[test]
    fn starts_are_spread_evenly() {
        let map = SegmentMap::new(&job(10_000, 10_000 * 4096, 3), Bytes(1 << 40)).unwrap();
        let last = *map.starts.last().unwrap() as f64;
        let n = map.starts.len() as f64;
        let distance = |(i, &start): (usize, &u64)| (start as f64 / last - i as f64 / n).abs();
        let worst = map.starts.iter().enumerate().map(distance).fold(0.0, f64::max);
        assert!(worst < 1.63 / n.sqrt(), "distance {worst}");
    }

    #[test]
    fn segments_that_do_not_fit_are_rejected() {
        let full = SegmentMap::new(&job(4, 64 << 10, 1), Bytes(64 << 10)).unwrap_err();
        assert_eq!(full, "4 segments of 16 KiB do not fit into 64 KiB without touching");
        let tiny = SegmentMap::new(&job(1000, 4096, 1), Bytes(1 << 30)).unwrap_err();
        assert_eq!(tiny, "4 KiB in 1000 segments is less than one block of 4 KiB per segment");
        let exact = SegmentMap::new(&job(4, 64 << 10, 1), Bytes(76 << 10)).unwrap();
        assert_eq!(exact.starts, [0, 20 << 10, 40 << 10, 60 << 10]);
    }

    proptest! {
        #[test]
        fn segments_never_touch_and_span_the_range(
            count in 1_u64..200, blocks in 1_u64..50, slack in 0_u64..10_000, seed: u64,
        ) {
            let range = (count * (blocks + 1) - 1 + slack) * 4096;
            let job = job(count, count * blocks * 4096, seed);
            let map = SegmentMap::new(&job, Bytes(range)).unwrap();
            let starts = &map.starts;
            prop_assert_eq!(starts.len() as u64, count);
            prop_assert_eq!(starts[0], 0);
            prop_assert!(starts.windows(2).all(|pair| pair[0] + map.size < pair[1]));
            prop_assert!(starts.iter().all(|start| start % 4096 == 0));
            let end = starts[starts.len() - 1] + map.size;
            prop_assert!(end == range || count == 1 && end < range);
        }
    }
}
