//! A fixed permutation of the integers below n.

use crate::Prng;

/// A fixed bijection of `0..n` that scatters neighbouring ranks over the address range.
///
/// The permutation is a Feistel network of four rounds over the next power of two, repeated until
/// the result is below n (J. Black, P. Rogaway: "Ciphers with arbitrary finite domains", CT-RSA
/// 2002). On average, fewer than two repetitions are necessary. The permutation scatters well but
/// is not cryptographically secure.
#[derive(Clone, Debug)]
pub struct Permutation {
    n: u64,
    low_bits: u32,
    low_mask: u64,
    high_mask: u64,
    keys: [u64; 4],
}

/// Seed of the permutation that determines which blocks are hot. The seed is arbitrary, but another
/// seed would change all zipf results.
const KEY: u64 = 0x77c1_f7ed_0b10_c45a;

impl Permutation {
    /// Returns the permutation of `0..n` for seed 0.
    #[inline]
    pub fn new(n: u64) -> Self {
        Self::seeded(n, 0)
    }

    /// Returns the permutation of `0..n` for `seed`. [`Self::new`] uses seed 0.
    pub fn seeded(n: u64, seed: u64) -> Self {
        debug_assert!(n > 0);
        let bits = (u64::BITS - (n - 1).leading_zeros()).max(2);
        debug_assert!(n - 1 <= u64::MAX >> (64 - bits), "the network covers all indices");
        let low_bits = bits / 2;
        let mut random = Prng::derive(KEY ^ seed, n);
        Self {
            n,
            low_bits,
            low_mask: (1 << low_bits) - 1,
            high_mask: (1 << (bits - low_bits)) - 1,
            keys: std::array::from_fn(|_| random.next_u64()),
        }
    }

    /// Returns the image of `index`, which must be below `n`.
    #[inline]
    pub fn apply(&self, index: u64) -> u64 {
        debug_assert!(index < self.n);
        let mut value = index;
        loop {
            value = self.round_trip(value);
            if value < self.n {
                return value;
            }
        }
    }

    #[inline]
    fn round_trip(&self, value: u64) -> u64 {
        let (mut low, mut high) = (value & self.low_mask, value >> self.low_bits);
        // Every round is invertible because each half changes by a function of the other half.
        high ^= mix(low, self.keys[0]) & self.high_mask;
        low ^= mix(high, self.keys[1]) & self.low_mask;
        high ^= mix(low, self.keys[2]) & self.high_mask;
        low ^= mix(high, self.keys[3]) & self.low_mask;
        high << self.low_bits | low
    }
}

/// Returns the upper bits of a product with a random odd factor, folded to fewer bits.
#[inline]
fn mix(half: u64, key: u64) -> u64 {
    let product = (half ^ key).wrapping_mul(key | 1);
    let product = (product ^ (product >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product >> 32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn seeds_choose_other_permutations() {
        let permuted = |seed| -> Vec<u64> {
            let permutation = Permutation::seeded(1000, seed);
            (0..1000).map(|index| permutation.apply(index)).collect()
        };
        let plain = Permutation::new(1000);
        assert_eq!(permuted(0), (0..1000).map(|index| plain.apply(index)).collect::<Vec<_>>());
        let equal = permuted(1).iter().zip(permuted(2)).filter(|(a, b)| **a == *b).count();
        assert!(equal < 10, "{equal} of 1000 indices have the same image");
    }

    #[test]
    fn hot_ranks_are_not_neighbours() {
        let n = 1 << 20;
        let permutation = Permutation::new(n);
        let mut positions: Vec<u64> = (0..1000).map(|rank| permutation.apply(rank)).collect();
        positions.sort_unstable();
        let touching = positions.windows(2).filter(|pair| pair[1] - pair[0] == 1).count();
        // A thousand random positions among a million contain about one adjacent pair.
        assert!(touching <= 6, "{touching} neighbours");
        let n = n as f64;
        let distance =
            |(i, &position): (usize, &u64)| (position as f64 / n - i as f64 / 1000.0).abs();
        let worst = positions.iter().enumerate().map(distance).fold(0.0, f64::max);
        assert!(worst < 1.63 / 1000_f64.sqrt(), "distance {worst}");
    }

    proptest! {
        #[test]
        fn the_permutation_is_a_bijection(n in 1_u64..5000) {
            let permutation = Permutation::new(n);
            let mut seen = vec![false; n as usize];
            for index in 0..n {
                let position = permutation.apply(index) as usize;
                prop_assert!(!std::mem::replace(&mut seen[position], true));
            }
        }
    }
}
