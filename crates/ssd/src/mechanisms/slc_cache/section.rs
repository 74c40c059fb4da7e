//! The section `[slc_cache]` of a device file.

use writecliff_base::located::{LocatedError, Table, positive_time};
use writecliff_base::{Bytes, Nanos};
use writecliff_flash::geometry::SLOT_BYTES;
use writecliff_flash::{CellType, Geometry};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlcCacheConfig {
    /// Capacity for host data.
    pub size: Bytes,
    /// tPROG of a page on all planes.
    pub program: Nanos,
    /// tR.
    pub read: Nanos,
    /// Whether host writes go to the main flash while the cache is full; else each write folds as
    /// much as it needs.
    pub bypass: bool,
    /// Share of `size` from which writes fold data, the more the fuller the cache is.
    pub fold_at: Option<f64>,
    /// Whether it uses flash of the drive that holds no data, and shrinks as the drive fills.
    pub dynamic: bool,
    /// Of a dynamic cache, what it may hold whatever the drive holds.
    pub static_size: Bytes,
    /// Firmware time of a folded slot, spent during the write that folds it; `None`: that of a slot
    /// that the host writes.
    pub fold_time: Option<Nanos>,
}

impl SlcCacheConfig {
    /// Page numbers that are kept for it behind those of the main flash.
    pub(crate) fn addresses(&self) -> u64 {
        2 * self.size.0 / u64::from(SLOT_BYTES)
    }
}

/// Reads the section.
///
/// # Errors
/// Returns an error at the key that is missing or invalid for this flash and capacity.
pub fn read(
    table: Table<'_>,
    geometry: &Geometry,
    user: Bytes,
) -> Result<SlcCacheConfig, LocatedError> {
    let size = table.required_size("size")?;
    if geometry.shape.cell == CellType::Slc {
        let message = "the flash already has one bit per cell; remove the section";
        return Err(table.error("size", message, None));
    }
    let least = Bytes(u64::from(geometry.dies * geometry.slots_per_read_group * SLOT_BYTES));
    if size < least || size > user {
        let message = format!(
            "size is {size}; it must be {least} (a page of every plane and die) to {user} (the \
             user capacity)"
        );
        return Err(table.error("size", message, None));
    }
    let fold_at = table.optional_percent("fold_at", 0.0..=99.0)?.map(|percent| percent / 100.0);
    let dynamic = table.or("dynamic", false, Table::optional_flag)?;
    let static_size = table.optional_size("static_size")?;
    for (key, is_wrong, message) in [
        ("static_size", static_size.is_some() && !dynamic, "static_size needs dynamic = true"),
        ("static_size", static_size > Some(size), "static_size is more than size"),
        ("fold_at", fold_at.is_some() && dynamic, "fold_at is of a cache with a fixed size"),
    ] {
        if is_wrong {
            return Err(table.error(key, message.to_owned(), None));
        }
    }
    let config = SlcCacheConfig {
        size,
        program: positive_time(&table, "program")?,
        read: positive_time(&table, "read")?,
        bypass: table.or("bypass", true, Table::optional_flag)?,
        fold_at,
        dynamic,
        static_size: static_size.unwrap_or(Bytes(0)),
        fold_time: table.optional_time("fold_time")?,
    };
    table.finish()?;
    Ok(config)
}
