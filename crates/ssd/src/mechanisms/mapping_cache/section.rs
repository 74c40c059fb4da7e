//! Section `[mapping_cache]` of a device file.

use writecliff_base::keys::{PositiveTime, Size, Time};
use writecliff_base::located::{Change, Table};
use writecliff_base::{Bytes, reject, section};
use writecliff_flash::SLOT_BYTES;

use crate::device_file::scaled::size;
use crate::mechanisms::{Checked, Described, MechanismSection, Resizing};

/// Entry size in bytes: a 32-bit address.
const ENTRY_BYTES: u32 = 4;

section! {
    /// Mapping table on flash, partly cached by the controller.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct MappingCacheConfig {
        page: default Size = Bytes(u64::from(SLOT_BYTES)),
            "translation page size: a power of two up to one page of every plane of a die";
        size: required Size,
            "controller memory for the mapping table, which has 4 B per indirection unit";
        read: required PositiveTime,
            "tR of translation pages, which most drives keep in flash with one bit per cell";
        program: required PositiveTime,
            "tPROG of translation pages, for a page of every plane of a die";
        host_memory_buffer: optional Size,
            "host memory that holds further pages (NVMe HMB); at least `size` + `page`";
        host_memory_latency: optional Time,
            "round-trip time to the host memory, excluding the transfer; required with \
             `host_memory_buffer`";
    }
}

impl MappingCacheConfig {
    pub(crate) fn entries_per_page(&self) -> u32 {
        self.page.0 as u32 / ENTRY_BYTES
    }

    pub(crate) fn page_slots(&self) -> u32 {
        self.page.0 as u32 / SLOT_BYTES
    }

    /// Returns the number of pages in the controller, and the number of further pages in the host
    /// memory buffer.
    pub(crate) fn pages_held(&self) -> [u32; 2] {
        let pages = |size: Bytes| (size.0 / self.page.0) as u32;
        let controller = pages(self.size);
        [controller, self.host_memory_buffer.map_or(0, |held| pages(held) - controller)]
    }
}

impl MechanismSection for MappingCacheConfig {
    type Keys = Self;

    fn check(config: Self, table: &Table<'_>, drive: &mut Described<'_>) -> Checked<Self> {
        let Self { page, size, .. } = config;
        let slot = Bytes(u64::from(SLOT_BYTES));
        let most = Bytes(u64::from(drive.geometry.slots_per_read_group) * slot.0);
        let limit = Bytes(u64::from(u32::MAX));
        let (key, latency_key) = ("host_memory_buffer", "host_memory_latency");
        let buffer = config.host_memory_buffer;
        let least = Bytes(size.0.saturating_add(page.0));
        let memory = buffer.unwrap_or(least);
        reject! { table,
            "page" if !page.0.is_power_of_two() || page < slot || page > most =>
                "page is {page}; it must be a power of two from {slot} to {most} (a page of every \
                 plane of a die)";
            "size" if size < page || size > limit =>
                "size is {size}; it must be {page} (a translation page) to {limit}";
            key if buffer.is_some() && (memory < least || memory > limit) =>
                "{key} is {memory}; it holds what the controller does, too, so it must be {least} \
                 or more, up to {limit}";
        }
        let refusal = format!("{latency_key} has no effect without {key}");
        table.needed_if(buffer.is_some(), latency_key, config.host_memory_latency, refusal)?;
        Ok(Some(config))
    }

    /// Keeps the cached fraction of the table constant, but holds at least one translation page.
    fn resized(&self, drive: &Resizing<'_>) -> Vec<Change> {
        let pages =
            |held: Bytes| (held.0 as f64 * drive.factor / self.page.0 as f64).round_ties_even();
        let held =
            |key, least: f64, held| size(key, Bytes(pages(held).max(least) as u64 * self.page.0));
        let controller = held("mapping_cache.size", 1.0, self.size);
        let least = pages(self.size).max(1.0) + 1.0;
        let memory = self.host_memory_buffer;
        let memory = memory.map(|memory| held("mapping_cache.host_memory_buffer", least, memory));
        [controller].into_iter().chain(memory).collect()
    }

    fn places_alike(ours: Option<&Self>, theirs: Option<&Self>) -> bool {
        ours.or(theirs).is_none()
    }
}
