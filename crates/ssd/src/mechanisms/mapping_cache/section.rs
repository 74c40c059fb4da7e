//! The section `[mapping_cache]` of a device file.

use writecliff_base::located::{LocatedError, Table, positive_time};
use writecliff_base::{Bytes, Nanos};
use writecliff_flash::Geometry;
use writecliff_flash::geometry::SLOT_BYTES;

/// Bytes of an entry: an address of 32 bits.
const ENTRY_BYTES: u32 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappingCacheConfig {
    /// What the controller holds of the table.
    pub size: Bytes,
    /// What is read, kept and written back at a time.
    pub page: Bytes,
    /// tR and tPROG of translation pages.
    pub read: Nanos,
    pub program: Nanos,
    pub host_memory: Option<HostMemory>,
}

/// The host memory buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostMemory {
    /// What it holds of the table, including what the controller does.
    pub size: Bytes,
    /// Time of a page from there in addition to its transfer.
    pub latency: Nanos,
}

impl MappingCacheConfig {
    pub(crate) fn entries_per_page(&self) -> u32 {
        self.page.0 as u32 / ENTRY_BYTES
    }

    pub(crate) fn page_slots(&self) -> u32 {
        self.page.0 as u32 / SLOT_BYTES
    }

    /// Pages that the controller holds, and that the host memory buffer holds besides.
    pub(crate) fn pages_held(&self) -> [u32; 2] {
        let pages = |size: Bytes| (size.0 / self.page.0) as u32;
        let own = pages(self.size);
        [own, self.host_memory.map_or(0, |memory| pages(memory.size) - own)]
    }
}

/// Reads the section, if there is one.
///
/// # Errors
/// Returns an error at the key that is missing or invalid for this flash, or at a section that is
/// not modelled together with it.
pub fn section(
    root: &Table<'_>,
    geometry: &Geometry,
) -> Result<Option<MappingCacheConfig>, LocatedError> {
    let Some(table) = root.optional_table("mapping_cache")? else { return Ok(None) };
    if root.has("die_parity") {
        let message = "[mapping_cache] and [die_parity] are not modelled together".to_owned();
        return Err(root.error("die_parity", message, Some("remove one of them".to_owned())));
    }
    let slot = Bytes(u64::from(SLOT_BYTES));
    let page = table.or("page", slot, Table::optional_size)?;
    let most = Bytes(u64::from(geometry.slots_per_read_group) * slot.0);
    if !page.0.is_power_of_two() || page < slot || page > most {
        let message = format!(
            "page is {page}; it must be a power of two from {slot} to {most} (a page of every \
             plane of a die)"
        );
        return Err(table.error("page", message, None));
    }
    let size = table.required_size("size")?;
    let limit = Bytes(u64::from(u32::MAX));
    if size < page || size > limit {
        let message = format!("size is {size}; it must be {page} (a translation page) to {limit}");
        return Err(table.error("size", message, None));
    }
    let config = MappingCacheConfig {
        size,
        page,
        read: positive_time(&table, "read")?,
        program: positive_time(&table, "program")?,
        host_memory: host_memory(&table, size, page, limit)?,
    };
    table.finish()?;
    Ok(Some(config))
}

fn host_memory(
    table: &Table<'_>,
    size: Bytes,
    page: Bytes,
    limit: Bytes,
) -> Result<Option<HostMemory>, LocatedError> {
    const KEY: &str = "host_memory_buffer";
    const LATENCY: &str = "host_memory_latency";
    let Some(buffer) = table.optional_size(KEY)? else {
        if table.has(LATENCY) {
            let message = format!("{LATENCY} has no effect without {KEY}");
            return Err(table.error(LATENCY, message, None));
        }
        return Ok(None);
    };
    if buffer.0 < size.0 + page.0 || buffer > limit {
        let least = Bytes(size.0 + page.0);
        let message = format!(
            "{KEY} is {buffer}; it holds what the controller does, too, so it must be {least} or \
             more, up to {limit}"
        );
        return Err(table.error(KEY, message, None));
    }
    Ok(Some(HostMemory { size: buffer, latency: table.required_time(LATENCY)? }))
}
