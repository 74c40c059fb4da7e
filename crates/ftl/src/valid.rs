//! Which slots hold valid data: one bit a slot.
//!
//! It says no more than the two maps do together (a slot is valid if the map of its logical page
//! points back to it), but in a 32nd of their memory. So collection finds what to move without
//! looking up the map entries of what is stale, and the map entries of what it moves are only
//! written.

use writecliff_base::{Ppn, memory};

use crate::ftl::prefetch;

const WORD: usize = u64::BITS as usize;

/// One bit for every slot of the flash.
#[derive(Clone, Debug)]
pub(crate) struct ValidSlots {
    /// One word more than the slots need: a range may be looked up across the end of the last one.
    words: Vec<u64>,
}

/// The lowest `count` bits.
#[inline]
const fn low_bits(count: usize) -> u64 {
    debug_assert!(0 < count && count <= WORD);
    u64::MAX >> (WORD - count)
}

impl ValidSlots {
    pub(crate) fn none(slots: usize) -> Self {
        Self { words: memory::zeroed(slots.div_ceil(WORD) + 1) }
    }

    pub(crate) fn clear(&mut self) {
        self.words.fill(0);
    }

    #[inline]
    pub(crate) fn contains(&self, slot: Ppn) -> bool {
        self.words[slot.index() / WORD] >> (slot.index() % WORD) & 1 == 1
    }

    #[inline]
    pub(crate) fn insert(&mut self, slot: Ppn) {
        self.words[slot.index() / WORD] |= 1 << (slot.index() % WORD);
    }

    #[inline]
    pub(crate) fn remove(&mut self, slot: Ppn) {
        self.words[slot.index() / WORD] &= !(1 << (slot.index() % WORD));
    }

    /// The bits of `first..first + count`, the lowest first; `count` is 1 to 64.
    #[inline]
    pub(crate) fn range(&self, first: usize, count: usize) -> u64 {
        let (word, shift) = (first / WORD, first % WORD);
        // Two shifts: a single one by 64 would be none at all.
        let bits = self.words[word] >> shift | self.words[word + 1] << (WORD - 1 - shift) << 1;
        bits & low_bits(count)
    }

    /// Insert all of `first..first + count`; `count` is 1 to 64.
    #[inline]
    pub(crate) fn insert_range(&mut self, first: usize, count: usize) {
        let (word, shift) = (first / WORD, first % WORD);
        let bits = low_bits(count);
        self.words[word] |= bits << shift;
        self.words[word + 1] |= bits >> (WORD - 1 - shift) >> 1;
    }

    /// Remove all of `first..first + count`; `count` is 1 to 64.
    #[inline]
    pub(crate) fn remove_range(&mut self, first: usize, count: usize) {
        let (word, shift) = (first / WORD, first % WORD);
        let bits = low_bits(count);
        self.words[word] &= !(bits << shift);
        self.words[word + 1] &= !(bits >> (WORD - 1 - shift) >> 1);
    }

    /// Ask the cache for a slot's bit.
    #[inline]
    pub(crate) fn prefetch(&self, slot: Ppn) {
        prefetch(&self.words, slot.index() / WORD);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SLOTS: usize = 300;

    proptest! {
        /// Every operation does to the bits what it says, and nothing to others.
        #[test]
        fn as_a_set_of_numbers(
            steps in prop::collection::vec((0..4, 0_usize..SLOTS, 1_usize..=64), 0..60),
        ) {
            let (mut valid, mut set) = (ValidSlots::none(SLOTS), [false; SLOTS]);
            for (what, first, count) in steps {
                let count = count.min(SLOTS - first);
                match what {
                    0 => {
                        valid.insert(Ppn(first as u32));
                        set[first] = true;
                    }
                    1 => {
                        valid.remove(Ppn(first as u32));
                        set[first] = false;
                    }
                    2 => {
                        valid.insert_range(first, count);
                        set[first..first + count].fill(true);
                    }
                    _ => {
                        valid.remove_range(first, count);
                        set[first..first + count].fill(false);
                    }
                }
                for (slot, &is) in set.iter().enumerate() {
                    prop_assert_eq!(valid.contains(Ppn(slot as u32)), is);
                }
                let range = (0..count).map(|n| u64::from(set[first + n]) << n).sum::<u64>();
                prop_assert_eq!(valid.range(first, count), range);
            }
        }
    }
}
