//! Write cache: data that are acknowledged to the host but not yet on the media.

use serde::{Deserialize, Serialize};
use writecliff_base::{SECTOR_BYTES, ensure, saved};

use crate::config::CacheConfig;
use crate::mechanics::Extent;

/// A write in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Dirty {
    pub(crate) extent: Extent,
    /// Sequence number, ascending in order of arrival.
    pub(crate) sequence: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct WriteCache {
    /// Cached writes, oldest first.
    pub(crate) writes: Vec<Dirty>,
    sectors_most: u64,
    writes_most: usize,
    /// Sectors occupied by cached writes or reserved for writes in transfer.
    sectors: u64,
    reserved: usize,
    /// Next sequence number, above the numbers of all previous writes.
    pub(crate) next: u64,
}

saved! { WriteCache { writes, sectors, reserved, next } check is_possible }

impl WriteCache {
    pub(crate) fn new(config: &CacheConfig) -> Self {
        Self {
            writes: Vec::new(),
            sectors_most: config.size.0 / 2 / SECTOR_BYTES,
            writes_most: config.cached_writes as usize,
            sectors: 0,
            reserved: 0,
            next: 0,
        }
    }

    /// Reserves space for a write before its transfer; returns `false` if the cache has no space. A
    /// write larger than the cache may occupy the entire cache.
    pub(crate) fn reserve(&mut self, sectors: u64) -> bool {
        let is_room = self.sectors + sectors <= self.sectors_most || self.sectors == 0;
        let has_entry = self.writes.len() + self.reserved < self.writes_most;
        if is_room && has_entry {
            self.sectors += sectors;
            self.reserved += 1;
        }
        is_room && has_entry
    }

    /// Inserts a write whose space was reserved. Drops older writes that it fully covers.
    pub(crate) fn insert(&mut self, extent: Extent) {
        debug_assert!(self.reserved > 0, "inserted without a reservation");
        self.reserved -= 1;
        let covered = |d: &Dirty| extent.first <= d.extent.first && d.extent.last <= extent.last;
        self.sectors -=
            self.writes.iter().filter(|d| covered(d)).map(|d| d.extent.sectors()).sum::<u64>();
        self.writes.retain(|d| !covered(d));
        self.writes.push(Dirty { extent, sequence: self.next });
        self.next += 1;
        debug_assert!(self.writes.len() + self.reserved <= self.writes_most, "see `reserve`");
    }

    /// Removes a write for write-back; its space remains occupied until `written` is called.
    pub(crate) fn take(&mut self, index: usize) -> Dirty {
        self.reserved += 1;
        self.writes.remove(index)
    }

    /// Releases the space of a removed write that is now on the media.
    pub(crate) fn written(&mut self, sectors: u64) {
        debug_assert!(self.reserved > 0, "written without having been taken");
        debug_assert!(self.sectors >= sectors, "more is written than was cached");
        self.reserved -= 1;
        self.sectors -= sectors;
    }

    pub(crate) fn holds(&self, first: u64, last: u64) -> bool {
        self.writes.iter().any(|d| d.extent.first <= first && last <= d.extent.last)
    }

    /// Checks the fields that do not depend on the write extents. The disk checks the extents.
    fn is_possible(&mut self) -> bool {
        self.reserved <= self.writes_most
            && self.writes.len() + self.reserved <= self.writes_most
            && self.sectors <= u64::MAX / 2
            && self.next <= u64::MAX / 2
            && self.writes.iter().all(|dirty| dirty.sequence < self.next)
    }

    /// Checks the counters against the cached writes; `moving` sectors are being written back.
    pub(crate) fn check(&self, moving: u64) -> Result<(), String> {
        let held: u64 = self.writes.iter().map(|d| d.extent.sectors()).sum();
        let reserved = usize::from(moving > 0);
        let (sectors, is_sorted) = (self.sectors, self.writes.is_sorted_by_key(|d| d.sequence));
        let is_counted = (sectors, self.reserved) == (held + moving, reserved);
        ensure!(is_counted, "the write cache counts {sectors} sectors but holds {held}");
        ensure!(is_sorted, "cached writes are out of order");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use writecliff_base::fields::{Impossible, from_bytes, to_bytes};

    use super::*;

    fn cache() -> WriteCache {
        WriteCache {
            writes: Vec::new(),
            sectors_most: 2048,
            writes_most: 4,
            sectors: 0,
            reserved: 0,
            next: 0,
        }
    }

    #[test]
    fn impossible_caches_are_not_restored() {
        let restored = |change: fn(&mut WriteCache)| {
            let mut saved = cache();
            for first in [0, 8] {
                assert!(saved.reserve(8));
                let mut extent: Option<Extent> = None;
                from_bytes(&[1, first, first + 7, 0, 0, 0], &mut extent).unwrap();
                saved.insert(extent.unwrap());
            }
            change(&mut saved);
            from_bytes(&to_bytes(&saved), &mut cache())
        };
        assert_eq!(restored(|_| ()), Ok(()));
        assert_eq!(restored(|cache| cache.next = 1), Err(Impossible), "a write of the future");
        assert_eq!(restored(|cache| cache.next = u64::MAX), Err(Impossible));
        assert_eq!(restored(|cache| cache.sectors = u64::MAX), Err(Impossible));
        assert_eq!(restored(|cache| cache.reserved = 3), Err(Impossible), "five writes");
        assert_eq!(restored(|cache| cache.reserved = usize::MAX), Err(Impossible));
    }
}
