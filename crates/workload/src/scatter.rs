//! Permutes pieces of the range, so that hot units do not lie next to each other.
//!
//! Hot pages of a database are spread over its files, and files over the drive. If zones are
//! contiguous, whole reclaim units hold data of only one zone, and garbage collection is cheap. If
//! zones are scattered page by page, every reclaim unit holds data of all zones.

use writecliff_base::Permutation;

/// A bijection of units that keeps the units of each piece together.
#[derive(Clone, Debug)]
pub(crate) struct Scatter {
    pieces: Permutation,
    /// Number of whole pieces. Units after them do not move.
    count: u64,
    /// Number of units in a piece.
    length: u64,
}

impl Scatter {
    /// Scatters `units` units in pieces of `length` units. A range that is shorter than a piece
    /// stays in order.
    pub(crate) fn new(units: u64, length: u64, seed: u64) -> Self {
        debug_assert!(length > 0);
        let count = units / length;
        Self { pieces: Permutation::seeded(count.max(1), seed), count, length }
    }

    /// Returns the unit to which `unit` moves.
    #[inline]
    pub(crate) fn apply(&self, unit: u64) -> u64 {
        if self.length == 1 {
            return self.pieces.apply(unit);
        }
        let piece = unit / self.length;
        if piece >= self.count {
            return unit;
        }
        self.pieces.apply(piece) * self.length + unit % self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scattering_is_a_bijection_that_keeps_pieces_whole() {
        for (units, length) in [(1, 1), (1000, 1), (1003, 4), (3, 8), (4096, 16)] {
            let scatter = Scatter::new(units, length, 5);
            let placed: Vec<u64> = (0..units).map(|unit| scatter.apply(unit)).collect();
            let mut sorted = placed.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..units).collect::<Vec<_>>(), "{units} in pieces of {length}");
            for piece in placed.chunks(length as usize) {
                assert!(piece.windows(2).all(|pair| pair[1] == pair[0] + 1), "{piece:?}");
            }
        }
    }
}
