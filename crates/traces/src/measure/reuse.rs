//! Reuse distances: the number of bytes in other blocks used between two uses of a block.
//!
//! SHARDS with a fixed number of samples (Waldspurger et al., FAST '15): the distances within a
//! spatial sample of the blocks, divided by the sampling rate. Distances in the sample are counted
//! with a Fenwick tree over the order of last uses.

use super::histogram::WeightedHistogram;
use writecliff_base::SLOT_BYTES;

#[derive(Clone, Copy, Default)]
struct Use {
    hash: u64,
    /// Last use of each block, as a sequence number among the uses in the sample.
    at: u32,
}

pub(crate) struct Reuse {
    slots: Vec<Use>,
    used: usize,
    max: usize,
    threshold: u64,
    pub(crate) scale: f64,
    /// Fenwick tree with the value 1 at the last use of each block.
    tree: Vec<u32>,
    now: u32,
    /// Number of uses of all blocks, including blocks outside the sample.
    uses: u64,
    distances: WeightedHistogram,
    /// Number of first uses of blocks.
    pub(crate) cold: f64,
}

impl Reuse {
    pub(crate) fn new(max: usize) -> Self {
        let slots = (max * 2).next_power_of_two().max(16);
        Self {
            slots: vec![Use::default(); slots],
            used: 0,
            max,
            threshold: u64::MAX,
            scale: 1.0,
            tree: vec![0; slots * 4 + 1],
            now: 0,
            uses: 0,
            distances: WeightedHistogram::default(),
            cold: 0.0,
        }
    }

    #[inline]
    pub(crate) fn touch(&mut self, hash: u64) {
        self.uses += 1;
        if hash <= self.threshold && hash != 0 {
            self.sampled(hash);
        }
    }

    /// Returns the distances of all uses except first uses. If the sample represents more or fewer
    /// uses than the trace has, the reason is usually a few hot blocks. The difference therefore
    /// counts as uses at distance 0 (SHARDS-adj in the paper).
    pub(crate) fn distances(&self) -> WeightedHistogram {
        let mut distances = self.distances.clone();
        let missing = self.uses as f64 - (distances.total + self.cold);
        distances.add(0, missing.max(-distances.at_zero()));
        distances
    }

    fn sampled(&mut self, hash: u64) {
        if self.now as usize + 1 >= self.tree.len() {
            self.renumber();
        }
        let at = self.find(hash);
        let before = self.slots[at];
        if before.hash == 0 {
            self.cold += self.scale;
            self.used += 1;
        } else {
            // Number of blocks that were last used later.
            debug_assert!(before.at < self.now && self.sum(before.at + 1) <= self.used as u32);
            let later = self.used as u32 - self.sum(before.at + 1);
            let bytes = f64::from(later) * self.scale * SLOT_BYTES as f64;
            self.distances.add(bytes as u64, self.scale);
            self.change(before.at, u32::MAX);
        }
        debug_assert!(self.used < self.slots.len() && (self.now as usize) + 1 < self.tree.len());
        self.slots[at] = Use { hash, at: self.now };
        self.change(self.now, 1);
        self.now += 1;
        if self.used > self.max {
            self.shrink();
        }
    }

    fn find(&self, hash: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = (hash >> 8) as usize & mask;
        while self.slots[at].hash != 0 && self.slots[at].hash != hash {
            at = (at + 1) & mask;
        }
        at
    }

    /// Adds a value to the tree; `u32::MAX` subtracts 1.
    fn change(&mut self, at: u32, by: u32) {
        let mut n = at as usize + 1;
        while n < self.tree.len() {
            self.tree[n] = self.tree[n].wrapping_add(by);
            n += n & n.wrapping_neg();
        }
    }

    /// Returns the number of last uses before `at`.
    fn sum(&self, at: u32) -> u32 {
        let (mut n, mut sum) = (at as usize, 0_u32);
        while n > 0 {
            sum = sum.wrapping_add(self.tree[n]);
            n &= n - 1;
        }
        sum
    }

    fn shrink(&mut self) {
        self.threshold >>= 1;
        self.scale *= 2.0;
        self.renumber();
    }

    /// Renumbers the last uses of the sampled blocks consecutively, starting at 0.
    fn renumber(&mut self) {
        let threshold = self.threshold;
        let mut all: Vec<Use> = self
            .slots
            .iter()
            .copied()
            .filter(|block| block.hash != 0 && block.hash <= threshold)
            .collect();
        all.sort_unstable_by_key(|block| block.at);
        self.slots.fill(Use::default());
        self.tree.fill(0);
        self.used = all.len();
        self.now = all.len() as u32;
        for (at, block) in (0..).zip(&all) {
            let slot = self.find(block.hash);
            self.slots[slot] = Use { hash: block.hash, at };
            self.change(at, 1);
        }
        debug_assert_eq!(self.sum(self.now) as usize, self.used, "a last use of each block");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::blocks::mixed;

    /// Computes distances with a list ordered by last use.
    fn by_list(uses: &[u64]) -> (Vec<u64>, u64) {
        let (mut list, mut distances, mut cold) = (Vec::new(), Vec::new(), 0);
        for &block in uses {
            match list.iter().rev().position(|&other| other == block) {
                Some(distance) => {
                    distances.push(distance as u64);
                    let at = list.len() - 1 - distance;
                    list.remove(at);
                }
                None => cold += 1,
            }
            list.push(block);
        }
        (distances, cold)
    }

    fn uses(blocks: u64, count: u64) -> Vec<u64> {
        (0..count).map(|n| mixed(n) % blocks * (mixed(n + count) % 4) / 3).collect()
    }

    #[test]
    fn distances_are_exact_while_all_blocks_are_kept() {
        let uses = uses(300, 20_000);
        let (wanted, cold) = by_list(&uses);
        let mut reuse = Reuse::new(400);
        for &block in &uses {
            reuse.touch(mixed(block));
        }
        assert!((reuse.cold - cold as f64).abs() < 0.5);
        let mut expected = WeightedHistogram::default();
        for &distance in &wanted {
            expected.add(distance * SLOT_BYTES, 1.0);
        }
        assert_eq!(reuse.distances().cumulative(), expected.cumulative());
    }

    #[test]
    fn a_sample_has_nearly_the_same_distances() {
        let uses = uses(20_000, 200_000);
        let mut whole = Reuse::new(1 << 15);
        let mut part = Reuse::new(2000);
        for &block in &uses {
            whole.touch(mixed(block));
            part.touch(mixed(block));
        }
        assert!(part.scale >= 8.0);
        for exponent in [22, 24, 25, 26] {
            let share = |of: &Reuse| of.distances().below_power(exponent) / of.uses as f64;
            assert!((share(&whole) - share(&part)).abs() < 0.05, "2^{exponent}");
        }
    }
}
