//! HyperLogLog (Flajolet et al., 2007) estimates the number of distinct blocks in fixed memory.

const BITS: u32 = 12;
const REGISTERS: usize = 1 << BITS;

/// Relative standard error of a count.
pub(crate) const RELATIVE_ERROR: f64 = 1.04 / 64.0;

#[derive(Clone, Debug)]
pub(crate) struct Distinct {
    registers: Vec<u8>,
}

impl Default for Distinct {
    fn default() -> Self {
        Self { registers: vec![0; REGISTERS] }
    }
}

impl Distinct {
    /// Counts an item by its hash, all of whose bits must be random.
    #[inline]
    pub(crate) fn add(&mut self, hash: u64) {
        let register = &mut self.registers[hash as usize & (REGISTERS - 1)];
        let rank = (hash >> BITS).trailing_zeros().min(64 - BITS) as u8 + 1;
        *register = (*register).max(rank);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (register, other) in self.registers.iter_mut().zip(&other.registers) {
            *register = (*register).max(*other);
        }
    }

    pub(crate) fn estimate(&self) -> f64 {
        let count = REGISTERS as f64;
        let sum: f64 = self.registers.iter().map(|&rank| (-f64::from(rank)).exp2()).sum();
        let raw = 0.7213 / (1.0 + 1.079 / count) * count * count / sum;
        let zeros = memchr::memchr_iter(0, &self.registers).count();
        // Small counts are estimated more accurately from the number of empty registers.
        if raw <= 2.5 * count && zeros > 0 { count * (count / zeros as f64).ln() } else { raw }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::blocks::mixed;

    #[test]
    fn counts_are_within_their_error() {
        for count in [0_u64, 1, 100, 5000, 100_000] {
            let mut distinct = Distinct::default();
            for n in (0..count).chain(0..count) {
                distinct.add(mixed(n));
            }
            let error = (distinct.estimate() - count as f64).abs();
            assert!(
                error <= 4.0 * RELATIVE_ERROR * count as f64,
                "{count}: {}",
                distinct.estimate()
            );
        }
    }
}
