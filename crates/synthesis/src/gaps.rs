//! Pages that a sweep skips within its span.
//!
//! A checkpoint writes the changed pages, and most of these change again before the next
//! checkpoint. Sweeps over the same addresses therefore mostly use and skip the same pages. Each
//! page is selected with a weight that is equal in all sweeps.

use std::ops::Range;

use writecliff_base::{Prng, SECTOR_BYTES, SLOT_BYTES, random};

const WEIGHTS_LABEL: u64 = 0x10d_0005;
/// Maximum number of skipped pages, both per gap and in total. Above the limit per gap, few pages
/// would be used twice in any case; the total is limited because the pages are stored in memory.
const PAGES_OF_GAP_MAX: u64 = 256;
const PAGES_MAX: u64 = 1 << 22;

/// Selection probabilities of the pages, by weight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Popularity<'a> {
    /// Page weights; empty if all pages are equally likely.
    pub(super) weights: &'a [u32],
    pub(super) seed: u64,
}

impl Popularity<'_> {
    fn of(&self, page: u64) -> f64 {
        let drawn = u128::from(random::nth(self.seed ^ WEIGHTS_LABEL, page));
        f64::from(self.weights[((drawn * self.weights.len() as u128) >> 64) as usize])
    }

    /// Returns the gaps between groups of I/Os, starting at `begin`, with `left_out` bytes in
    /// total. `groups` contains the size of each group in bytes.
    pub(super) fn gaps(
        &self,
        begin: u64,
        groups: &[u64],
        left_out: u64,
        random: &mut Prng,
    ) -> Vec<u64> {
        let gaps = groups.len() as u64 - 1;
        let whole = |bytes: u64| bytes.is_multiple_of(SLOT_BYTES);
        let pages = whole(begin) && whole(left_out) && groups.iter().all(|bytes| whole(*bytes));
        let many = left_out / SLOT_BYTES > PAGES_MAX.min(PAGES_OF_GAP_MAX * gaps);
        if gaps == 0 {
            vec![]
        } else if self.weights.is_empty() || !pages || many || left_out < gaps * SLOT_BYTES {
            at_random(gaps, left_out, random)
        } else {
            let groups: Vec<u64> = groups.iter().map(|bytes| bytes / SLOT_BYTES).collect();
            let begins = self.begins(begin / SLOT_BYTES, &groups, left_out / SLOT_BYTES, random);
            let ends = begins.iter().zip(&groups).map(|(begin, pages)| begin + pages);
            begins[1..].iter().zip(ends).map(|(begin, end)| (begin - end) * SLOT_BYTES).collect()
        }
    }

    /// Returns the first page of each group. The first and last groups are at the ends of the span.
    /// The others are at randomly selected pages, or next to these pages if two groups would touch.
    fn begins(&self, begin: u64, groups: &[u64], left_out: u64, random: &mut Prng) -> Vec<u64> {
        debug_assert!(groups.len() >= 2, "no gap between {} groups", groups.len());
        let end = begin + groups.iter().sum::<u64>() + left_out;
        let (first, last) = (groups[0], groups[groups.len() - 1]);
        let between = begin + first + 1..(end - last).saturating_sub(1);
        let drawn = self.drawn(between, groups.len() - 2, random);
        let mut begins = vec![begin];
        for (n, page) in drawn.into_iter().chain([end - last]).enumerate() {
            begins.push(page.max(begins[n] + groups[n] + 1));
        }
        let mut behind = end + 1;
        for (begin, pages) in begins.iter_mut().zip(groups).rev() {
            *begin = (*begin).min(behind - 1 - pages);
            behind = *begin;
        }
        begins
    }

    /// Selects `count` of the pages `among` at random by their weights; returns them in ascending
    /// order. The method selects the pages with the shortest exponential times whose rates are the
    /// weights (Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006).
    fn drawn(&self, among: Range<u64>, count: usize, random: &mut Prng) -> Vec<u64> {
        let mut timed: Vec<(f64, u64)> =
            among.map(|page| (-(1.0 - random.unit()).ln() / self.of(page), page)).collect();
        timed.sort_by(|a, b| a.0.total_cmp(&b.0));
        timed.truncate(count);
        let mut pages: Vec<u64> = timed.into_iter().map(|page| page.1).collect();
        pages.sort_unstable();
        // If there are too few pages, the last groups are adjacent to each other.
        pages.extend(std::iter::repeat_n(u64::MAX / 2, count - pages.len()));
        pages
    }
}

/// Divides the bytes into pieces at random positions; no piece is empty if there are enough bytes.
fn at_random(parts: u64, bytes: u64, random: &mut Prng) -> Vec<u64> {
    debug_assert!(parts > 0 && bytes.is_multiple_of(SECTOR_BYTES), "{bytes} B in {parts} parts");
    let unit = if bytes.is_multiple_of(SLOT_BYTES) { SLOT_BYTES } else { SECTOR_BYTES };
    let least = u64::from(bytes / unit >= parts);
    let free = bytes / unit - least * parts;
    let mut cuts: Vec<u64> = (1..parts).map(|_| random.below(free + 1)).collect();
    cuts.sort_unstable();
    cuts.push(free);
    let mut before = 0;
    let parts = cuts.into_iter().map(|cut| {
        let part = cut - before + least;
        before = cut;
        part * unit
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 3;

    fn random(n: u64) -> Prng {
        Prng::derive(SEED, n)
    }

    /// Returns the pages of single-page groups with these gaps.
    fn pages(gaps: &[u64]) -> Vec<u64> {
        gaps.iter()
            .scan(0, |at, gap| {
                *at += 1 + gap / SLOT_BYTES;
                Some(*at)
            })
            .collect()
    }

    #[test]
    fn gaps_are_what_is_left_out_and_none_is_empty() {
        let groups: Vec<u64> = [1, 3, 1, 2, 8, 1, 1].map(|pages| pages * SLOT_BYTES).to_vec();
        for weights in [&[][..], &[1000; 4], &[1, 5, 20_000]] {
            let popular = Popularity { weights, seed: SEED };
            for left_out in [6, 7, 20, 1000, 10_000] {
                let gaps = popular.gaps(0, &groups, left_out * SLOT_BYTES, &mut random(left_out));
                assert_eq!(gaps.iter().sum::<u64>(), left_out * SLOT_BYTES);
                assert_eq!(gaps.len(), 6);
                assert!(gaps.iter().all(|gap| *gap >= SLOT_BYTES));
            }
        }
        let popular = Popularity { weights: &[1, 2], seed: SEED };
        let sectors = popular.gaps(512, &[512, 1024], 1536, &mut random(1));
        assert_eq!(sectors, [1536]);
        assert_eq!(popular.gaps(0, &[SLOT_BYTES], 0, &mut random(1)), [0; 0]);
    }

    /// A sweep uses about 100 of 1000 pages. A second sweep uses a tenth of these pages if all
    /// weights are equal, and more than half of them if every tenth page has a weight of one
    /// hundred.
    #[test]
    fn sweeps_use_the_same_pages_as_far_as_weights_differ() {
        let same = |weights: &[u32]| {
            let popular = Popularity { weights, seed: SEED };
            let used = |n| pages(&popular.gaps(0, &[SLOT_BYTES; 100], 900 << 12, &mut random(n)));
            let (first, other) = (used(1), used(2));
            first.iter().filter(|page| other.contains(page)).count()
        };
        let (alike, popular) = (same(&[1000; 10]), same(&[1, 1, 1, 1, 1, 1, 1, 1, 1, 100]));
        assert!((3..25).contains(&alike), "{alike}");
        assert!(popular > 50, "{popular}");
    }
}
