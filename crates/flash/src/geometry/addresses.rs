//! Capacity limits from 32-bit page numbers.
//!
//! A geometry may exceed these limits: such a drive can be described in full and simulated at a
//! reduced scale. The limits are checked only when a simulated drive is constructed.

use writecliff_base::{Bytes, reject};

use super::{ConfigError, Geometry, SLOT_BYTES, Values};

impl Geometry {
    /// Checks that a `Ppa` can represent every flash address plus `more` additional addresses.
    ///
    /// # Errors
    /// Returns an error if there are 2^32 - 1 addresses or more.
    pub fn check_addresses(&self, more: u64) -> Result<(), ConfigError> {
        let addresses = self.raw_ppas() + more;
        let per_slot = u64::from(self.ppas_per_reclaim_unit / self.slots_per_reclaim_unit);
        let flash = Bytes(addresses / per_slot * u64::from(SLOT_BYTES));
        reject! { Values,
            "blocks_per_plane" if addresses >= u64::from(u32::MAX) =>
                "{flash} of flash cannot be simulated at full capacity: 32-bit page numbers of \
                 4 KiB pages address at most 16 TiB";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Shape;
    use super::super::tests::shape;
    use super::*;

    #[test]
    fn flash_beyond_page_numbers_has_a_geometry_but_no_addresses() {
        let of_blocks = |blocks_per_plane| {
            let dies = Shape { channels: 16, dies_per_channel: 16, ..shape() };
            Geometry::new(Shape { blocks_per_plane, pages_per_block: 768, ..dies }).unwrap()
        };
        // Each reclaim unit has 6 GiB, so the totals are 16 TiB minus 4 GiB and 16 TiB plus 2 GiB.
        let (below, beyond) = (of_blocks(2730), of_blocks(2731));
        assert_eq!(below.check_addresses(0), Ok(()));
        assert!(below.check_addresses(1 << 20).is_err(), "a log of 4 GiB behind it");
        assert_eq!(beyond.raw_bytes(), Bytes(2731 * (6 << 30)));
        let refused = beyond.check_addresses(0).unwrap_err();
        assert!(refused.message.contains("at most 16 TiB"), "{refused}");
    }
}
