//! Parity across dies: which dies of a row of program units hold data, and which the parity.
//!
//! A stripe consists of `n` dies in a row. In each row of program units, one die of the stripe
//! holds the parity of the other dies. The parity die rotates from row to row and from stripe to
//! stripe, so reads are spread evenly over all dies (RAID 5 with rotating parity: Patterson,
//! Gibson, Katz, SIGMOD 1988). The numbering of data program units skips the parity units.

/// Stripes of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stripes {
    /// Dies per stripe, including the parity die.
    pub dies: u32,
    /// Number of data positions in a row, which equals the number of dies with data.
    pub data_dies: u32,
    /// Die of each position in a row, for each position of the parity.
    places: Vec<u16>,
}

impl Stripes {
    /// Creates stripes of `dies` dies (at least two), which must divide the drive's `all` dies.
    pub fn new(all: u32, dies: u32) -> Self {
        assert!(dies >= 2 && all.is_multiple_of(dies));
        let mut new = Self { dies, data_dies: all - all / dies, places: Vec::new() };
        for row in 0..dies {
            for place in 0..new.data_dies {
                let (stripe, member) = new.split(place);
                let is_behind = member >= new.position(row, stripe);
                new.places.push((stripe * dies + member + u32::from(is_behind)) as u16);
            }
        }
        assert_eq!(new.places.len() as u32, dies * new.data_dies, "each place has a die");
        new
    }

    /// Returns the stripe of a position, and the number of the position in the stripe.
    fn split(&self, place: u32) -> (u32, u32) {
        (place / (self.dies - 1), place % (self.dies - 1))
    }

    /// Returns the die of a stripe that holds the parity of a row.
    fn position(&self, row: u32, stripe: u32) -> u32 {
        (row + stripe) % self.dies
    }

    /// Returns the die of a position in a row.
    // This function is not inlined, so that the code for drives without parity stays small.
    #[cold]
    #[inline(never)]
    pub fn die(&self, row: u32, place: u32) -> u32 {
        debug_assert!(place < self.data_dies, "no place of the row");
        u32::from(self.places[((row % self.dies) * self.data_dies + place) as usize])
    }

    fn parity_die(&self, row: u32, place: u32) -> u32 {
        let (stripe, _) = self.split(place);
        stripe * self.dies + self.position(row, stripe)
    }

    /// Returns the die on which parity is programmed after the unit at `place`: if it is the last
    /// data of its stripe in the row outside the lost die, and the parity is not on that die.
    pub fn parity_behind(&self, row: u32, place: u32, lost: Option<u32>) -> Option<u32> {
        let (stripe, _) = self.split(place);
        debug_assert!(place < self.data_dies, "no place of the row");
        let answers = |die: u32| lost != Some(die);
        let mut behind = place + 1..(stripe + 1) * (self.dies - 1);
        let die = self.parity_die(row, place);
        (answers(die) && !behind.any(|place| answers(self.die(row, place)))).then_some(die)
    }

    /// Returns the other dies of the stripe that contains a die.
    pub fn others(&self, die: u32) -> impl Iterator<Item = u32> + use<> {
        debug_assert!(die < self.data_dies / (self.dies - 1) * self.dies, "no die of a stripe");
        let first = die / self.dies * self.dies;
        (first..first + self.dies).filter(move |&other| other != die)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_die_holds_a_share_of_the_parity_and_no_data_beside_it() {
        for (all, dies) in [(4, 2), (8, 4), (8, 8), (12, 3)] {
            let stripes = Stripes::new(all, dies);
            assert_eq!(stripes.data_dies * dies, all * (dies - 1));
            let mut parities = vec![0; all as usize];
            for row in 0..2 * dies {
                let mut used: Vec<u32> =
                    (0..stripes.data_dies).map(|place| stripes.die(row, place)).collect();
                for place in 0..stripes.data_dies {
                    let Some(die) = stripes.parity_behind(row, place, None) else { continue };
                    assert_eq!(die / dies, stripes.die(row, place) / dies, "in its stripe");
                    parities[die as usize] += 1;
                    used.push(die);
                }
                used.sort_unstable();
                assert_eq!(used, (0..all).collect::<Vec<_>>(), "row {row}");
            }
            assert!(parities.iter().all(|&count| count == 2), "{parities:?}");
            let others: Vec<_> = stripes.others(all - 1).collect();
            assert_eq!(others, (all - dies..all - 1).collect::<Vec<_>>());
        }
    }

    #[test]
    fn parity_comes_behind_the_last_die_that_answers() {
        let stripes = Stripes::new(4, 4);
        // Row 0 has parity on die 0 and data on dies 1, 2 and 3.
        let behind = |lost| -> Vec<Option<u32>> {
            (0..3).map(|place| stripes.parity_behind(0, place, lost)).collect()
        };
        assert_eq!(behind(None), [None, None, Some(0)]);
        assert_eq!(behind(Some(3))[1], Some(0));
        assert_eq!(behind(Some(1)), [None, None, Some(0)]);
        assert_eq!(behind(Some(0)), [None, None, None]);
    }
}
