//! Random number generator: xoshiro256++ (Blackman, Vigna: "Scrambled linear pseudorandom number
//! generators", ACM TOMS 47, 2021), seeded through splitmix64 as its authors recommend.
//!
//! The generator is implemented here instead of taken from the `rand` crate because a dependency
//! update must not change results. The period is 2^256 - 1 and every output bit is usable, which
//! meets the 48-bit range that the PTS requires of a test tool.

use serde::{Deserialize, Serialize};

/// A seeded sequence of random numbers. A clone continues with the same numbers as the original.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prng {
    state: [u64; 4],
}

/// 2^64 divided by the golden ratio: the increment of splitmix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(GOLDEN);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns output number `n` of a splitmix64 generator seeded with `seed`. Numbered outputs are
/// computed directly, without the outputs before them.
#[inline]
pub fn nth(seed: u64, n: u64) -> u64 {
    splitmix64(&mut seed.wrapping_add(n.wrapping_mul(GOLDEN)))
}

impl Prng {
    /// Expands `seed` to the 256-bit state with `SplitMix64`.
    pub fn new(seed: u64) -> Self {
        let mut s = seed;
        let state = std::array::from_fn(|_| splitmix64(&mut s));
        debug_assert_ne!(state, [0; 4], "all further numbers would be equal");
        Self { state }
    }

    /// Returns an independent generator for component `label` of a seed's scope (thread, job, FTL).
    pub fn derive(seed: u64, label: u64) -> Self {
        let mut s = seed;
        let mixed = splitmix64(&mut s) ^ label.wrapping_mul(0xd605_1a8f_2d5b_6e25);
        Self::new(mixed)
    }

    /// Returns 64 uniformly distributed bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let t = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= t;
        *d = d.rotate_left(45);
        result
    }

    /// Returns a uniformly distributed number in `0..bound` by multiply-shift; the bias is below
    /// `bound` / 2^64.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0);
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns a uniformly distributed number in `[0, 1)` with 53 bits of resolution.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Returns the internal state, which determines all subsequent numbers.
    pub fn state(&self) -> [u64; 4] {
        self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First outputs of the reference C implementation for the state {1, 2, 3, 4}.
    #[test]
    fn matches_the_reference_implementation() {
        let mut random = Prng { state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..4).map(|_| random.next_u64()).collect();
        assert_eq!(first, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }

    #[test]
    fn below_is_uniform_by_chi_square() {
        let mut random = Prng::new(7);
        let (cells, draws) = (64_u64, 640_000);
        let mut seen = vec![0_u32; cells as usize];
        for _ in 0..draws {
            seen[random.below(cells) as usize] += 1;
        }
        let expected = f64::from(draws) / cells as f64;
        let chi2: f64 = seen.iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
        // The chi-square statistic has 63 degrees of freedom: its mean is 63 and its standard
        // deviation is 11.2. The test accepts a statistic within five standard deviations of the
        // mean.
        assert!((7.0..119.0).contains(&chi2), "chi-square {chi2}");
    }

    #[test]
    fn numbered_draws_match_the_sequence() {
        let mut state = 5;
        let in_order: Vec<u64> = (0..10).map(|_| splitmix64(&mut state)).collect();
        let numbered: Vec<u64> = (0..10).map(|n| nth(5, n)).collect();
        assert_eq!(numbered, in_order);
    }

    #[test]
    fn derived_generators_differ() {
        assert_ne!(Prng::derive(1, 0), Prng::derive(1, 1));
        assert_eq!(Prng::derive(1, 1), Prng::derive(1, 1));
    }
}
