//! Content of the data that a host writes: compressibility and duplication.

use writecliff_base::{Lpn, SECTOR_BYTES, SLOT_BYTES};

/// Number of sectors in a mapping unit.
pub const SECTORS_PER_SLOT: u32 = (SLOT_BYTES / SECTOR_BYTES) as u32;

/// Content of a write, for controllers that compress or deduplicate. Other controllers store every
/// slot uncompressed, regardless of its content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C, align(8))] // Every request carries this value, so it must fit into one word.
pub struct Content {
    /// Compressed size of each slot in sectors, 1 to 8.
    pub sectors: u32,
    /// First logical page whose data this write duplicates, slot by slot; `NONE` if no duplicate is
    /// known.
    pub same_as: Lpn,
}

impl Content {
    /// Random data.
    pub const INCOMPRESSIBLE: Self = Self { sectors: SECTORS_PER_SLOT, same_as: Lpn::NONE };

    /// Returns data that compression shrinks by `percent`, rounded to whole sectors; a slot takes
    /// at least one sector.
    #[must_use]
    pub fn compressible(percent: f64) -> Self {
        debug_assert!((0.0..=100.0).contains(&percent), "{percent} % of the data");
        let sectors = f64::from(SECTORS_PER_SLOT) * (1.0 - percent / 100.0);
        Self { sectors: sectors.ceil().max(1.0) as u32, ..Self::INCOMPRESSIBLE }
    }

    /// Returns the content of slot `n` in the write.
    #[inline]
    #[must_use]
    pub const fn of_slot(self, n: u32) -> Self {
        if self.same_as.is_none() {
            self
        } else {
            Self { same_as: Lpn(self.same_as.0 + n), ..self }
        }
    }
}

impl Default for Content {
    fn default() -> Self {
        Self::INCOMPRESSIBLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressible_data_take_whole_sectors() {
        let sectors = |percent| Content::compressible(percent).sectors;
        assert_eq!([0.0, 12.5, 46.0, 50.0, 99.0, 100.0].map(sectors), [8, 7, 5, 4, 1, 1]);
        assert_eq!(sectors(0.1), 8, "saving part of a sector saves no sector");
    }

    #[test]
    fn each_slot_of_a_duplicate_write_duplicates_its_slot() {
        let repeated = Content { same_as: Lpn(40), ..Content::INCOMPRESSIBLE };
        assert_eq!(repeated.of_slot(3).same_as, Lpn(43));
        assert!(Content::INCOMPRESSIBLE.of_slot(3).same_as.is_none());
    }
}
