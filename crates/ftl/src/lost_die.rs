//! Parity across dies, and the loss of a die.

use writecliff_base::saved;
use writecliff_flash::Geometry;

/// Stripes of program units across dies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DieParity {
    /// Lost die, which the FTL no longer writes to.
    pub lost_die: Option<u32>,
    /// `true` if dies are organised in stripes or a die is lost.
    pub is_in_use: bool,
    /// Number of parity units programmed.
    pub programs: u64,
}

saved! { DieParity { lost_die, is_in_use, programs } }

impl DieParity {
    pub(crate) fn new(geometry: &Geometry) -> Self {
        Self { lost_die: None, is_in_use: geometry.stripes().is_some(), programs: 0 }
    }

    pub(crate) fn lose_die(&mut self, die: u32) {
        assert!(self.lost_die.is_none(), "a drive loses one die");
        (self.lost_die, self.is_in_use) = (Some(die), true);
    }

    /// Counts the parity that is programmed after a program unit.
    #[cold]
    pub(crate) fn count_behind(&mut self, unit: u32, geometry: &Geometry) {
        if let Some(stripes) = geometry.stripes() {
            let (row, place) = geometry.row_and_place(unit);
            self.programs += u64::from(stripes.parity_behind(row, place, self.lost_die).is_some());
        }
    }
}
