//! Blocks in a specified, repeated order, as with fio's `random_distribution=sequence`.

use writecliff_host_interface::Operation;

use crate::spec::AddressSpec;

/// Block numbers; each operation has a separate position.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    blocks: Vec<u64>,
    /// Number of blocks by which each pass advances; 0 if all passes are equal.
    advance: u64,
    /// Base of the last pass that fits into the range.
    last_base: u64,
    /// Base of the pass and position in the pass, by operation.
    places: [(u64, usize); 3],
}

impl Sequence {
    /// Creates the sequence; returns an error if a block is outside the range of `units` blocks.
    pub(crate) fn new(spec: &AddressSpec, units: u64) -> Result<Self, String> {
        let largest = spec.blocks.iter().max().copied().unwrap_or(0);
        let Some(last_base) = units.checked_sub(largest + 1) else {
            return Err(format!("block {largest} is outside the range of {units} blocks"));
        };
        assert!(!spec.blocks.is_empty(), "the check rejects empty sequences");
        let advance = if spec.advancing { spec.blocks.len() as u64 } else { 0 };
        Ok(Self { blocks: spec.blocks.clone(), advance, last_base, places: [(0, 0); 3] })
    }

    pub(crate) fn next(&mut self, operation: Operation) -> u64 {
        let (base, place) = &mut self.places[operation as usize];
        debug_assert!(*base <= self.last_base, "a pass leaves the range");
        let block = *base + self.blocks[*place];
        *place += 1;
        if *place == self.blocks.len() {
            *place = 0;
            *base += self.advance;
            if *base > self.last_base {
                *base = 0;
            }
        }
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(advancing: bool, units: u64, count: usize) -> Vec<u64> {
        let spec = AddressSpec { blocks: vec![2, 0, 1], advancing, ..AddressSpec::default() };
        let mut sequence = Sequence::new(&spec, units).unwrap();
        (0..count).map(|_| sequence.next(Operation::Read)).collect()
    }

    #[test]
    fn a_sequence_repeats_or_advances_to_the_end_of_the_range() {
        assert_eq!(blocks(false, 12, 7), [2, 0, 1, 2, 0, 1, 2]);
        assert_eq!(blocks(true, 6, 8), [2, 0, 1, 5, 3, 4, 2, 0]);
    }

    #[test]
    fn each_operation_has_its_own_place() {
        let spec = AddressSpec { blocks: vec![3, 1], ..AddressSpec::default() };
        let mut sequence = Sequence::new(&spec, 4).unwrap();
        assert_eq!((sequence.next(Operation::Read), sequence.next(Operation::Write)), (3, 3));
        assert!(Sequence::new(&spec, 3).is_err());
    }
}
