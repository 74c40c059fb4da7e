//! Write data: random and new for each write, with an optional fraction of zeros.
//!
//! The data of each write are a range of a pool of random words, combined by XOR with a word
//! specific to the write. Data within a write are as incompressible as the pool, and different
//! writes have no word in common. This method costs no more than a copy, whereas a random number
//! for every word would delay large I/Os.

use writecliff_base::{Prng, SECTOR_BYTES};

const POOL_WORDS: usize = 1 << 16;
const LABEL: u64 = 0x6461_7461;
/// An odd constant without structure (from the golden ratio), which spreads counters over all bits.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

pub(crate) struct Data {
    pool: Vec<u64>,
    seed: u64,
    writes: u64,
    /// Number of each lane's last write with new data.
    last: Vec<u64>,
}

impl Data {
    pub(crate) fn new(seed: u64, lanes: usize) -> Self {
        let mut random = Prng::derive(seed, LABEL);
        let pool = (0..POOL_WORDS).map(|_| random.next_u64()).collect();
        Self { pool, seed: random.next_u64(), writes: 0, last: vec![0; lanes] }
    }

    /// Fills the data of a lane's write. If `repeats`, uses the data of the lane's last write with
    /// new data. The last `compressible_pct` % of each sector are zeros.
    pub(crate) fn fill(
        &mut self,
        bytes: &mut [u8],
        lane: usize,
        repeats: bool,
        compressible_pct: f64,
    ) {
        if !repeats || self.last[lane] == 0 {
            self.writes += 1;
            self.last[lane] = mixed(self.seed ^ self.writes.wrapping_mul(SPREAD));
        }
        let mut key = self.last[lane];
        let mut from = (key >> 32) as usize % POOL_WORDS;
        let mut rest = &mut bytes[..];
        while !rest.is_empty() {
            let words = (POOL_WORDS - from).min(rest.len().div_ceil(8));
            let (now, later) = rest.split_at_mut((words * 8).min(rest.len()));
            for (to, word) in now.chunks_mut(8).zip(&self.pool[from..]) {
                let word = (word ^ key).to_le_bytes();
                to.copy_from_slice(&word[..to.len()]);
            }
            // The data pool wraps around, so the next pass uses another key.
            (rest, from, key) = (later, 0, mixed(key));
        }
        let zeros = (SECTOR_BYTES as f64 * compressible_pct / 100.0).round() as usize;
        if zeros > 0 {
            for sector in bytes.chunks_mut(SECTOR_BYTES as usize) {
                let begin = sector.len().saturating_sub(zeros);
                sector[begin..].fill(0);
            }
        }
    }
}

/// Returns the `SplitMix64` finaliser (Steele, Lea, Flood 2014); never 0 for practical purposes.
fn mixed(of: u64) -> u64 {
    let of = (of ^ (of >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let of = (of ^ (of >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (of ^ (of >> 31)) | 1
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn words(bytes: &[u8]) -> HashSet<u64> {
        bytes.chunks_exact(8).map(|w| u64::from_le_bytes(w.try_into().unwrap())).collect()
    }

    #[test]
    fn writes_have_no_word_in_common_with_each_other_or_within() {
        let mut data = Data::new(1, 1);
        let mut seen = HashSet::new();
        for length in [4096, 512, 2 << 20, 131_072] {
            let mut bytes = vec![0; length];
            data.fill(&mut bytes, 0, false, 0.0);
            let distinct = words(&bytes);
            assert_eq!(distinct.len(), length / 8, "a write contains a word twice");
            assert!(seen.is_disjoint(&distinct), "two writes contain the same word");
            seen.extend(distinct);
        }
    }

    #[test]
    fn a_repeat_is_the_same_up_to_its_length_and_lanes_are_apart() {
        let mut data = Data::new(1, 2);
        let (mut first, mut other, mut again) = (vec![0; 8192], vec![0; 8192], vec![0; 4096]);
        data.fill(&mut first, 0, false, 0.0);
        data.fill(&mut other, 1, false, 0.0);
        data.fill(&mut again, 0, true, 0.0);
        assert_eq!(first[..4096], again);
        assert!(words(&first).is_disjoint(&words(&other)));
    }

    #[test]
    fn a_share_of_each_sector_is_zeros() {
        let mut bytes = vec![1; 4096];
        Data::new(7, 1).fill(&mut bytes, 0, false, 25.0);
        for sector in bytes.chunks(512) {
            assert!(sector[384..].iter().all(|&byte| byte == 0));
            assert!(sector[..384].iter().filter(|&&byte| byte != 0).count() > 350);
        }
    }
}
