//! Data reduction: controllers that store fewer bytes than the host writes.
//!
//! A compressing controller packs pieces of whole sectors into program units. A deduplicating
//! controller stores data that several logical pages share only once. Space is then measured in
//! sectors instead of slots. Valid counts, idle space, pacing and victims use the same unit, so GC
//! benefits from all space that reduction saves. The user capacity is unchanged, as in actual
//! drives of this kind. An address consists of a page and the offset where a piece starts, which is
//! finer than a read (Cohen, "Variable-size flash translation layer", US patent 9,495,288, claim
//! 1).
//!
//! | file | content |
//! |---|---|
//! | `mod.rs` | configuration and counters |
//! | `pack.rs` | packing of pieces into units |
//! | `pieces.rs` | sizes of pieces, and data that several logical pages share |
//!
//! Simplifications: Sizes are whole sectors. A piece may cross from one program unit into the next,
//! but not into another reclaim unit. Reading a piece costs one read of the page where it starts. A
//! duplicate is detected if the host previously wrote the same data and they are still stored.

mod pack;
mod pieces;

use writecliff_base::{counters, counts};
use writecliff_flash::{Geometry, SLOT_BYTES};
use writecliff_host_interface::content::SECTORS_PER_SLOT;

use crate::ConfigError;

pub(crate) use pack::{Pack, Packer};
pub(crate) use pieces::{Pieces, is_shared};

/// Data reduction by the controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReductionConfig {
    /// Minimum piece size in sectors: 1, 2, 4 or 8; 8 disables compression.
    pub min_stored_sectors: u32,
    /// `true` if data already on the drive are not stored again (deduplication).
    pub duplicates: bool,
}

impl ReductionConfig {
    /// Returns the geometry with addresses for as many pieces as the flash may hold.
    ///
    /// # Errors
    /// Returns an error if `min_stored_sectors` is not one of its valid values, or if there are too
    /// many addresses.
    pub fn addresses(self, geometry: Geometry) -> Result<Geometry, ConfigError> {
        if ![1, 2, 4, 8].contains(&self.min_stored_sectors) {
            let message = format!(
                "min_stored_sectors is {}; it must be 1, 2, 4 or 8",
                self.min_stored_sectors
            );
            return Err(ConfigError { key: "min_stored_size", message });
        }
        Ok(geometry.with_ppas_per_slot(SECTORS_PER_SLOT / self.min_stored_sectors)?)
    }
}

counts! {
    /// Data stored since the drive was new, in sectors (512 B).
    pub struct ReductionCounters {
        /// Sectors stored for the host.
        host_sectors,
        /// Sectors relocated by garbage collection.
        gc_sectors,
        /// Sectors relocated by wear levelling.
        wear_sectors,
        /// Sectors left unused because a unit was closed early.
        padding_sectors,
        /// Host slots whose data were already on the drive.
        duplicate_slots,
    }
}

counters! { |c: ReductionCounters|
    Integer "stored_bytes" Bytes: c.stored_bytes(),
        "host data stored after reduction (`[reduction]`)";
    Integer "duplicate_bytes" Bytes: c.duplicate_slots * u64::from(SLOT_BYTES),
        "host data that were already on the drive (`[reduction]`)";
}

impl ReductionCounters {
    /// Returns the number of bytes of host data stored after reduction.
    pub fn stored_bytes(&self) -> u64 {
        self.host_sectors * u64::from(SLOT_BYTES / SECTORS_PER_SLOT)
    }
}
