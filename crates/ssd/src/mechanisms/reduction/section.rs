//! Section `[reduction]` of a device file.

use writecliff_base::keys::{Flag, Section, Size};
use writecliff_base::located::{Answer, Table};
use writecliff_base::{Bytes, SECTOR_BYTES, reject, section};
use writecliff_flash::Geometry;
use writecliff_ftl::ReductionConfig;
use writecliff_host_interface::content::SECTORS_PER_SLOT;

section! {
    pub(crate) struct Keys {
        compression: required Flag,
            "compressed pages of whole 512-byte sectors are packed one after another";
        duplicates: required Flag, "data that are already on the drive are not stored again";
        min_stored_size: optional Size,
            "minimum flash per 4 KiB page: 512 B to 2 KiB; required with `compression`";
    }
}

/// Reads the section; also returns the geometry with addresses for all pieces of data that the
/// flash may hold.
///
/// # Errors
/// Returns an error at a key that is missing or invalid for this flash.
pub(crate) fn read(table: &Table<'_>, geometry: Geometry) -> Answer<(ReductionConfig, Geometry)> {
    let Keys { compression, duplicates, min_stored_size } = Keys::read_keys(table)?;
    reject! { table,
        "compression" if !compression && !duplicates =>
            "neither compression nor duplicates is enabled; remove the section";
    }
    let refusal = "min_stored_size requires compression = true";
    let least = table.needed_if(compression, "min_stored_size", min_stored_size, refusal)?;
    let sectors = least.map(|size| min_stored_sectors(table, size)).transpose()?;
    let min_stored_sectors = sectors.unwrap_or(SECTORS_PER_SLOT);
    let config = ReductionConfig { min_stored_sectors, duplicates };
    let addressed = config.addresses(geometry);
    let geometry = addressed.map_err(|e| {
        table.error(
            e.key,
            e.message,
            Some("a larger min_stored_size requires fewer addresses".to_owned()),
        )
    })?;
    Ok((config, geometry))
}

/// Returns the size of the smallest piece in sectors.
fn min_stored_sectors(table: &Table<'_>, bytes: Bytes) -> Answer<u32> {
    let sectors = bytes.0 / SECTOR_BYTES;
    reject! { table,
        "min_stored_size"
            if !bytes.0.is_multiple_of(SECTOR_BYTES) || ![1, 2, 4].contains(&sectors) =>
            "min_stored_size is {bytes}; it must be 512 B, 1 KiB or 2 KiB"
            ["it is the least space of a 4 KiB page, however well it compresses"];
    }
    Ok(sectors as u32)
}
