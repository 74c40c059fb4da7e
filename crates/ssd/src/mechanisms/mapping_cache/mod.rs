//! Mapping table that does not fit into the controller: section `[mapping_cache]`.
//!
//! The table is on flash in translation pages, and the controller caches the most recently used
//! pages, as in DFTL (Gupta, Kim, Urgaonkar, ASPLOS 2009). A command that needs another page reads
//! that page first. A changed page is written back when it leaves the cache. A host memory buffer
//! (NVMe) holds further recently used pages, which are read over the link.
//!
//! The mapping itself is in the FTL. Translation pages have separate flash, like the SLC cache.

mod commands;
mod pages;

use serde::{Deserialize, Serialize};
use writecliff_base::keys::{PositiveTime, Size, Time};
use writecliff_base::located::{Change, Table};
use writecliff_base::{Bytes, Lpn, counters, counts, reject, saved, section};
use writecliff_flash::SLOT_BYTES;

use crate::FillId;
use crate::device_file::scaled::size;
use crate::mechanisms::{Checked, Described, MechanismSection, Resizing};
use pages::{DIRTY, EXISTS, LOADING, Pages, Tier};

/// Load number; numbers are reused.
pub(crate) type LoadId = u16;

counts! {
    /// Counters of the cache since the drive was new.
    pub struct MappingCacheCounts {
        hits,
        host_hits,
        misses,
        written_slots,
    }
}

counters! { |c: MappingCacheCounts|
    Integer "mapping_hits" Count: c.hits,
        "translation pages that commands found in the controller (`[mapping_cache]`)";
    Integer "mapping_host_hits" Count: c.host_hits,
        "translation pages that commands found in the host memory buffer (`[mapping_cache]`)";
    Integer "mapping_misses" Count: c.misses,
        "translation pages that had to be read from flash (`[mapping_cache]`)";
    Integer "mapping_write_bytes" Bytes: c.written_slots * u64::from(SLOT_BYTES),
        "portion of `nand_write_bytes` that is mapping table written back (`[mapping_cache]`)";
}

/// Location of a page when a command needed it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// In the controller, or absent because the page's addresses were never written.
    Here,
    /// Being loaded into the controller.
    Loading(LoadId),
    HostMemory,
    Flash {
        die: u16,
    },
}

/// Transfers that a look-up causes in addition to the page itself.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Traffic {
    /// Number of pages copied to the host memory buffer.
    pub to_host: u32,
    /// Number of pages fetched from the host memory buffer for write-back.
    pub from_host: u32,
    /// Die that programs the pages being written back.
    pub program: Option<u16>,
}

/// A page that is being loaded into the controller, with the commands and fills that wait for it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PageLoad {
    page: u32,
    #[serde(skip)]
    pub commands: Vec<u16>,
    pub fills: Vec<FillId>,
}

#[derive(Clone, Debug)]
pub(crate) struct MappingCache {
    pub config: MappingCacheConfig,
    pages: Pages,
    /// Number of logical pages mapped by one translation page.
    lpns_per_page: u32,
    /// Changed pages that have left the cache and wait until a program unit is full.
    leaving: Vec<u32>,
    /// Number of pages written by one program, and the flash slots that it occupies.
    per_program: usize,
    program_slots: u32,
    die_of: Vec<u16>,
    dies: u16,
    next_die: u16,
    loads: Vec<Option<PageLoad>>,
    pub counts: MappingCacheCounts,
}

saved! { MappingCache { pages, leaving, [die_of], next_die, loads, counts } check is_possible }

impl MappingCache {
    fn is_possible(&mut self) -> bool {
        let is_page = |page: u32| (page as usize) < self.die_of.len();
        self.leaving.iter().all(|&page| is_page(page))
            && self.leaving.len() < self.per_program
            && self.die_of.iter().chain([&self.next_die]).all(|&die| die < self.dies)
            && self.loads.iter().flatten().all(|load| is_page(load.page))
    }

    /// Returns the translation pages for `slots` logical pages, starting at `first`.
    fn pages_of(&self, first: Lpn, slots: u32) -> std::ops::Range<u32> {
        first.0 / self.lpns_per_page..(first.0 + slots).div_ceil(self.lpns_per_page)
    }

    /// Looks a page up for a command, which may change it, and makes it the most recently used.
    pub(crate) fn touch(&mut self, page: u32, changes: bool) -> (Found, Traffic) {
        let mut traffic = Traffic::default();
        let location = match self.pages.tier(page) {
            _ if !self.pages.has(page, EXISTS) && !changes => {
                self.counts.hits += 1;
                return (Found::Here, traffic);
            }
            Some(Tier::HostMemory) => Found::HostMemory,
            Some(Tier::Controller) => Found::Here,
            None if !self.pages.has(page, EXISTS) => Found::Here,
            None => match self.leaving.iter().position(|&other| other == page) {
                Some(place) => {
                    self.leaving.swap_remove(place);
                    Found::Here
                }
                None => Found::Flash { die: self.die_of[page as usize] },
            },
        };
        let location = self.counted(page, location);
        if matches!(location, Found::Flash { .. }) && self.config.host_memory_buffer.is_some() {
            traffic.to_host += 1;
        }
        self.make_last_used(page, &mut traffic);
        if changes {
            self.pages.change(page);
        }
        (location, traffic)
    }

    /// Counts a look-up and returns the load if the page is being loaded.
    fn counted(&mut self, page: u32, access: Found) -> Found {
        if self.pages.has(page, LOADING) {
            self.counts.hits += 1;
            let is_it = |load: &Option<PageLoad>| load.as_ref().is_some_and(|l| l.page == page);
            let load = self.loads.iter().position(is_it);
            return load.map_or(Found::Here, |load| Found::Loading(load as LoadId));
        }
        match access {
            Found::HostMemory => self.counts.host_hits += 1,
            Found::Flash { .. } => self.counts.misses += 1,
            Found::Here | Found::Loading(_) => self.counts.hits += 1,
        }
        access
    }

    fn make_last_used(&mut self, page: u32, traffic: &mut Traffic) {
        let Some(evicted) = self.pages.use_now(page, |is_changed| {
            traffic.to_host += u32::from(is_changed);
        }) else {
            return;
        };
        if !self.pages.has(evicted, DIRTY) {
            return;
        }
        traffic.from_host += u32::from(self.config.host_memory_buffer.is_some());
        debug_assert!(self.leaving.len() < self.per_program, "dirty pages were not written back");
        self.leaving.push(evicted);
        if self.leaving.len() < self.per_program {
            return;
        }
        for page in self.leaving.drain(..) {
            debug_assert!(self.pages.tier(page).is_none(), "a held page is written back");
            self.die_of[page as usize] = self.next_die;
            self.pages.written_back(page);
        }
        self.counts.written_slots += u64::from(self.program_slots);
        traffic.program = Some(self.next_die);
        self.next_die = (self.next_die + 1) % self.dies;
    }

    /// Starts loading a page into the controller; returns `None` if all load numbers are in use.
    fn begin_load(&mut self, page: u32) -> Option<LoadId> {
        debug_assert!(!self.pages.has(page, LOADING), "a page is loaded once at a time");
        let free = self.loads.iter().position(Option::is_none);
        let number = free.unwrap_or(self.loads.len());
        let id = LoadId::try_from(number).ok()?;
        if free.is_none() {
            self.loads.push(None);
        }
        self.loads[number] = Some(PageLoad { page, ..PageLoad::default() });
        self.pages.set_loading(page, true);
        Some(id)
    }

    fn end_load(&mut self, load: LoadId) -> Option<PageLoad> {
        let ended = self.loads.get_mut(usize::from(load))?.take()?;
        self.pages.set_loading(ended.page, false);
        Some(ended)
    }

    fn page_bytes(&self) -> u32 {
        self.config.page.0 as u32
    }
}

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

    /// Returns the pages that the controller holds, and further ones in the host memory buffer.
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
        let pages = |n: Bytes| (n.0 as f64 * drive.factor / self.page.0 as f64).round_ties_even();
        let held = |key, least: f64, n| size(key, Bytes(pages(n).max(least) as u64 * self.page.0));
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
