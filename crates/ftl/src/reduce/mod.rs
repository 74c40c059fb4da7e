//! Data reduction: controllers that store fewer bytes than the host writes.
//!
//! A compressing controller packs pieces of whole sectors into program units; a deduplicating one
//! stores data that several logical pages share only once. Space is then counted in sectors instead
//! of slots: valid counts, idle space, pacing and victims use the same unit, so GC benefits from
//! all space that reduction saves. The user capacity is unchanged, as on real drives of this kind.
//! An address is a page and the offset at which a piece starts, finer than a read (Cohen,
//! "Variable-size flash translation layer", US patent 9,495,288, claim 1).
//!
//! Simplifications: sizes are whole sectors; a piece may cross from a program unit into the next
//! but not into another reclaim unit, and reading it costs the read of the page where it starts. A
//! duplicate is detected if the host wrote the same data before and they are still stored.

mod pack;
mod pieces;

use writecliff_base::{counters, counts, reject};
use writecliff_flash::geometry::Values;
use writecliff_flash::{ConfigError, Geometry, SLOT_BYTES};
use writecliff_host_interface::content::SECTORS_PER_SLOT;

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
        let least = self.min_stored_sectors;
        reject! { Values,
            "min_stored_size" if ![1, 2, 4, 8].contains(&least) =>
                "min_stored_sectors is {least}; it must be 1, 2, 4 or 8";
        }
        geometry.with_ppas_per_slot(SECTORS_PER_SLOT / least)
    }
}

counts! {
    /// Data stored since the drive was new, in sectors (512 B).
    pub struct ReductionCounters {
        host_sectors,
        /// Sectors relocated by garbage collection.
        gc_sectors,
        /// Sectors relocated by wear levelling.
        wear_sectors,
        /// Sectors left unused because a unit was closed early.
        padding_sectors,
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
