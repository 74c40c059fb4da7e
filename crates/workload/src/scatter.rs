//! Pieces of the range in a random order, so that hot units do not lie next to each other.
//!
//! Hot pages of a database are spread over its files, and files over the drive. Where zones are
//! contiguous, whole reclaim units hold data of one zone only and collection is cheap; scattered
//! page by page, every unit holds data of all zones.

use writecliff_base::Permutation;

/// A bijection of units that keeps the units of each piece together.
#[derive(Clone, Debug)]
pub(crate) struct Scatter {
    pieces: Permutation,
    /// Number of whole pieces; units behind them stay where they are.
    count: u64,
    /// Units of a piece.
    length: u64,
}

impl Scatter {
    /// Scatters `units` units in pieces of `length`; a range that is shorter than a piece stays in
    /// order.
    pub(crate) fn new(units: u64, length: u64, seed: u64) -> Self {
        debug_assert!(length > 0);
        let count = units / length;
        Self { pieces: Permutation::seeded(count.max(1), seed), count, length }
    }

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
    fn every_unit_has_its_place_and_pieces_stay_whole() {
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
