//! Data reduction by compression or deduplication: section `[reduction]` of a device file.
//!
//! Data are reduced between buffer and flash: link and buffer carry them as sent by the host,
//! everything behind carries the reduced data. The space saved serves GC as spare space; the user
//! capacity does not change.

use writecliff_base::located::{LocatedError, Table};
use writecliff_flash::Geometry;
use writecliff_ftl::ReductionConfig;
use writecliff_host_interface::content::SECTORS_PER_SLOT;

const SECTOR_BYTES: u64 = 512;

/// Reads the section; also returns the geometry with addresses for all the pieces of data that the
/// flash may hold.
///
/// # Errors
/// Returns an error at the key that is missing or invalid for this flash.
pub(crate) fn read(
    table: Table<'_>,
    geometry: Geometry,
) -> Result<(ReductionConfig, Geometry), LocatedError> {
    let compression = table.required_flag("compression")?;
    let duplicates = table.required_flag("duplicates")?;
    if !compression && !duplicates {
        let message =
            "neither compression nor duplicates is enabled; remove the section".to_owned();
        return Err(table.error("compression", message, None));
    }
    let mut config = ReductionConfig { min_stored_sectors: SECTORS_PER_SLOT, duplicates };
    if compression {
        config.min_stored_sectors = min_stored_sectors(&table)?;
    } else if table.has("min_stored_size") {
        let message = "min_stored_size needs compression = true".to_owned();
        return Err(table.error("min_stored_size", message, None));
    }
    let addressed = config.addresses(geometry);
    let geometry = addressed.map_err(|e| {
        table.error(
            e.key,
            e.message,
            Some("a larger min_stored_size needs fewer addresses".to_owned()),
        )
    })?;
    table.finish()?;
    Ok((config, geometry))
}

/// Sectors of the smallest piece.
fn min_stored_sectors(table: &Table<'_>) -> Result<u32, LocatedError> {
    let bytes = table.required_size("min_stored_size")?;
    let sectors = bytes.0 / SECTOR_BYTES;
    if bytes.0 % SECTOR_BYTES != 0 || ![1, 2, 4].contains(&sectors) {
        let message = format!("min_stored_size is {bytes}; it must be 512 B, 1 KiB or 2 KiB");
        let hint = "it is the least space of a 4 KiB page, however well it compresses".to_owned();
        return Err(table.error("min_stored_size", message, Some(hint)));
    }
    Ok(sectors as u32)
}
