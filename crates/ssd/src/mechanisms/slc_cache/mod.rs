//! SLC cache: flash with one bit per cell that receives host writes first (`[slc_cache]`).
//!
//! The cache is a log in front of the FTL, in flash that the FTL does not manage. Host data are
//! appended at the head of the log at SLC speed. While the host is idle, the oldest data are
//! folded, which means that they are read and the FTL writes them to the main flash. When all data
//! are folded, their blocks are erased. Data that are overwritten or trimmed before folding become
//! invalid in the log and are never folded. The log is full when the distance between tail and head
//! is `size`. The distance includes invalid data, which occupy pages until the tail passes them.
//!
//! The FTL's copy of a page becomes invalid as soon as the log has newer data, so GC does not
//! relocate the old copy. All decisions here depend on the writes and not on time, so timed and
//! fast-forwarded drives pass through the same states, except for folding in idle time.

mod dynamic;
mod flash;
mod front;
mod in_front;
mod power_up;
mod section;

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use writecliff_base::{Lpn, Ppa, StreamId, counters, counts, saved};
use writecliff_flash::{Geometry, SLOT_BYTES};
use writecliff_ftl::{FrontierId, Ftl};

use crate::DeviceConfig;
use crate::front::PlacementSink;
use dynamic::Borrowed;
use in_front::Origin;

pub(crate) use flash::FrontFlash;
pub(crate) use in_front::InFront;
pub use section::SlcCacheConfig;

counts! {
    /// Counters in slots since the drive was new.
    pub struct SlcCounters {
        /// Host slots written to the cache.
        writes,
        folds,
        coalesced,
        /// Slots in the cache that the host deallocated.
        trimmed,
        /// Slots left unused in units that were closed early.
        padding,
        /// Slots that the host wrote to the main flash because the cache was full.
        bypassed,
        held,
    }
}

counters! { |c: SlcCounters|
    Integer "slc_write_bytes" Bytes: (c.writes + c.padding) * SLOT,
        "portion of `nand_write_bytes` programmed in the SLC cache (`[slc_cache]`)";
    Integer "slc_fold_bytes" Bytes: c.folds * SLOT,
        "bytes folded from the SLC cache to the main flash (`[slc_cache]`)";
    Integer "slc_coalesced_bytes" Bytes: c.coalesced * SLOT,
        "bytes overwritten in the SLC cache before being folded (`[slc_cache]`)";
    Integer "slc_held_bytes" Bytes level: c.held * SLOT,
        "bytes in the SLC cache that have not been folded yet (`[slc_cache]`)";
}

const SLOT: u64 = SLOT_BYTES as u64;

/// Log slot; invalid data and padding have no logical page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    lpn: Lpn,
    stream: StreamId,
}

const EMPTY: Entry = Entry { lpn: Lpn::NONE, stream: StreamId::DEFAULT };

/// Returns the number of slots in one block of each plane of all dies, with one bit per cell.
pub(crate) fn block_slots(geometry: &Geometry) -> u64 {
    let shape = &geometry.shape;
    let pages = (shape.pages_per_block / shape.cell.page_types()).max(1);
    let planes = if shape.multi_plane { 1 } else { shape.planes_per_die };
    u64::from(geometry.dies * planes * pages) * u64::from(geometry.slots_per_read_group)
}

/// Runtime state of the section.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlcCache {
    pub(crate) frontier: FrontierId,
    /// Address of the first cache slot, which follows the last address of the FTL.
    base: u32,
    /// `true` if a power loss discards the data that are not on flash.
    is_volatile: bool,
    capacity: usize,
    bypass: bool,
    borrowed: Option<Borrowed>,
    /// Fill level of the log, in slots, from which writes fold data.
    fold_from: usize,
    unit_slots: u64,
    /// Slots in one block of each plane of all dies, which are erased together.
    block_slots: u64,
    blocks: u64,
    /// Position up to which blocks are erased.
    erased_to: u64,
    /// Position of the oldest entry; positions increase without limit.
    tail: u64,
    entries: VecDeque<Entry>,
    /// Position of a logical page's newest data.
    newest: BTreeMap<u32, u64>,
    /// Bitmap of the logical pages in `newest`; most look-ups are of other pages.
    cached: Vec<u64>,
    /// Number of the unit whose data were last read for folding, plus one.
    fetched: u64,
    /// Pending folding work of writes beyond `fold_from`, in fractions of a fold.
    owed: u64,
    /// Streams that have bypassed the cache since a flush closed their units.
    pub(crate) direct: u128,
    host_bytes: u64,
    /// Reclaim units freed before the unit being filled held data; see `ProgramUnit::since`.
    since: u64,
    pub(crate) counters: SlcCounters,
}

saved! {
    SlcCache { tail, erased_to, entries, fetched, owed, direct, host_bytes, counters, since }
    check find_newest
}

impl SlcCache {
    /// Finds the newest data in the restored log. Returns `false` if the log is invalid.
    fn find_newest(&mut self) -> bool {
        let live = (self.tail..).zip(&self.entries).filter(|(_, entry)| entry.lpn != Lpn::NONE);
        self.newest = live.map(|(position, entry)| (entry.lpn.0, position)).collect();
        self.cached.fill(0);
        for &lpn in self.newest.keys() {
            let Some(word) = self.cached.get_mut(lpn as usize / 64) else { return false };
            *word |= 1 << (lpn % 64);
        }
        let live = self.entries.iter().filter(|entry| entry.lpn != Lpn::NONE).count();
        let streams = self.frontier.0 / 2;
        live == self.newest.len()
            && self.entries.len() as u64 <= self.ring()
            && self.entries.iter().all(|entry| entry.stream.0 < streams)
    }

    pub(crate) fn of(config: &DeviceConfig) -> Option<Box<Self>> {
        let section = config.sections.slc_cache.as_ref()?;
        let geometry = &config.geometry;
        let capacity = (section.size.0 / u64::from(SLOT_BYTES)) as usize;
        let unit_slots = u64::from(geometry.slots_per_read_group);
        let block_units = block_slots(geometry) / unit_slots;
        // One block more than the capacity: the block being erased never holds waiting data.
        let blocks = (capacity as u64 + unit_slots).div_ceil(block_units * unit_slots) + 1;
        let fold_from =
            section.fold_at.map_or(capacity, |pct| (pct / 100.0 * capacity as f64) as usize);
        assert!(fold_from <= capacity, "folding begins before the cache is full");
        assert!(block_units > 0 && blocks > 1, "one block is erased while another is written");
        Some(Box::new(Self {
            frontier: FrontFlash::of(config).frontier,
            base: geometry.raw_ppas() as u32,
            is_volatile: config.ftl.volatile_buffer,
            capacity,
            bypass: section.bypass,
            borrowed: section.dynamic.then(|| Borrowed {
                bits: u64::from(geometry.shape.cell.page_types()),
                least: section.static_size.map_or(0, |part| part.0 / u64::from(SLOT_BYTES))
                    as usize,
            }),
            fold_from,
            unit_slots,
            block_slots: block_units * unit_slots,
            blocks,
            erased_to: blocks * block_units * unit_slots,
            cached: vec![0; config.ftl.user_slots.div_ceil(64) as usize],
            ..Self::default()
        }))
    }

    pub(crate) fn counters(&self) -> SlcCounters {
        SlcCounters { held: self.newest.len() as u64, ..self.counters }
    }

    fn head(&self) -> u64 {
        self.tail + self.entries.len() as u64
    }

    /// Returns the number of slots in all flash blocks of the cache.
    fn ring(&self) -> u64 {
        self.block_slots * self.blocks
    }

    fn unit_at(&self, position: u64) -> u32 {
        (position % self.ring() / self.unit_slots) as u32
    }

    fn is_filling(&self, position: u64) -> bool {
        self.filled() > 0 && position / self.unit_slots == self.head() / self.unit_slots
    }

    /// Returns the position of a logical page's newest data if they are in the log.
    fn position_of(&self, lpn: Lpn) -> Option<u64> {
        if self.cached[lpn.index() / 64] >> (lpn.0 % 64) & 1 == 0 {
            return None;
        }
        self.newest.get(&lpn.0).copied()
    }

    fn address(&self, position: u64) -> Ppa {
        Ppa(self.base + (position % self.ring()) as u32)
    }

    /// Returns `true` if the next slot goes to the log; folds data to make room for the slot.
    fn admit<S: PlacementSink>(&mut self, ftl: &mut Ftl, sink: &mut S) -> bool {
        self.drop_dead();
        if let Some(borrowed) = self.borrowed {
            return borrowed.admit(self, ftl, sink);
        }
        if self.entries.len() >= self.capacity {
            if self.bypass {
                return false;
            }
            while self.entries.len() >= self.capacity && self.fold(ftl, sink) {
                self.drop_dead();
            }
        } else if self.entries.len() > self.fold_from {
            let span = (self.capacity - self.fold_from) as u64;
            self.owed += (self.entries.len() - self.fold_from) as u64;
            while self.owed >= span {
                self.owed -= span;
                self.fold(ftl, sink);
            }
        }
        true
    }

    /// Appends `bytes` bytes of a slot at the head; the rest of the slot is read first.
    fn write<S: PlacementSink>(
        &mut self,
        lpn: Lpn,
        stream: StreamId,
        bytes: u32,
        ftl: &mut Ftl,
        sink: &mut S,
    ) {
        let (cached, old) = (self.location(lpn), ftl.lookup(lpn));
        if !self.replace(lpn, self.frontier, bytes, sink) {
            if bytes < SLOT_BYTES && !old.is_none() {
                sink.read_for(self.frontier, old, 1);
            }
            ftl.supersede(lpn);
        }
        let head = self.head();
        if head == self.erased_to {
            // Data folded from that block may be waiting in a unit of the main flash.
            self.direct = u128::MAX;
            self.erase_next(ftl, sink);
        }
        if self.filled() == 0 {
            self.since = ftl.counters().collections;
        }
        debug_assert!(head < self.erased_to, "the log writes to flash that is not erased");
        self.entries.push_back(Entry { lpn, stream });
        debug_assert!(self.head() <= self.tail + self.ring(), "the head runs into the tail");
        self.newest.insert(lpn.0, head);
        self.cached[lpn.index() / 64] |= 1 << (lpn.0 % 64);
        self.counters.writes += 1;
        self.host_bytes += u64::from(bytes);
        sink.placed(lpn, self.address(head), if cached.is_none() { old } else { cached });
        if self.filled() == 0 {
            sink.program_slc(self.unit_at(head), self.unit_slots as u32, self.since);
        }
    }

    /// Writes to the main flash, bypassing the full log.
    fn write_past<S: PlacementSink>(
        &mut self,
        lpn: Lpn,
        stream: StreamId,
        bytes: u32,
        ftl: &mut Ftl,
        sink: &mut S,
    ) {
        let cached = self.location(lpn);
        self.replace(lpn, ftl.host_frontier(stream), bytes, sink);
        self.counters.bypassed += 1;
        self.direct |= 1 << stream.0;
        let origin = if cached.is_none() { Origin::Main } else { Origin::Replaced(cached) };
        ftl.write(lpn, stream, bytes, &mut InFront { log: Some(self), sink, origin });
    }

    /// Invalidates a page's data in the log, if any; first reads what a partial write keeps.
    fn replace<S: PlacementSink>(
        &mut self,
        lpn: Lpn,
        frontier: FrontierId,
        bytes: u32,
        sink: &mut S,
    ) -> bool {
        let Some((unit, filling)) = self.find(lpn) else { return false };
        if bytes < SLOT_BYTES && !filling {
            sink.read_slc_for(frontier, unit, 1);
        }
        self.counters.coalesced += 1;
        self.kill(lpn)
    }

    fn forget(&mut self, lpn: Lpn) -> Option<u64> {
        let word = &mut self.cached[lpn.index() / 64];
        let bit = 1 << (lpn.0 % 64);
        if *word & bit == 0 {
            return None;
        }
        *word &= !bit;
        let position = self.newest.remove(&lpn.0);
        debug_assert!(position.is_some(), "a page that the bitmap has is not in the log");
        position
    }

    fn kill(&mut self, lpn: Lpn) -> bool {
        let Some(position) = self.forget(lpn) else { return false };
        let dead = &mut self.entries[(position - self.tail) as usize].lpn;
        debug_assert_eq!(*dead, lpn, "the log has another page there");
        *dead = Lpn::NONE;
        true
    }

    fn drop_dead(&mut self) {
        while self.entries.front().is_some_and(|entry| entry.lpn == Lpn::NONE) {
            self.entries.pop_front();
            self.tail += 1;
        }
    }

    /// Folds the oldest data to the main flash. Returns `false` if the log is empty.
    fn fold<S: PlacementSink>(&mut self, ftl: &mut Ftl, sink: &mut S) -> bool {
        self.drop_dead();
        let Some(&Entry { lpn, stream }) = self.entries.front() else { return false };
        let unit = self.tail / self.unit_slots;
        if !self.is_filling(self.tail) && self.fetched != unit + 1 {
            // Read all valid data of a page at once; data not folded now wait in the controller.
            self.fetched = unit + 1;
            let rest = (self.unit_slots - self.tail % self.unit_slots) as usize;
            let live = self.entries.iter().take(rest).filter(|entry| entry.lpn != Lpn::NONE);
            let slots = live.count() as u32;
            sink.read_slc_for(ftl.host_frontier(stream), self.unit_at(self.tail), slots);
        }
        let origin = Origin::Folded(self.address(self.tail));
        let folded = self.forget(lpn);
        debug_assert_eq!(folded, Some(self.tail), "data that are not the newest are folded");
        self.entries.pop_front();
        self.tail += 1;
        debug_assert!(self.tail <= self.erased_to, "the tail passes the erased flash");
        self.counters.folds += 1;
        ftl.write(lpn, stream, SLOT_BYTES, &mut InFront { log: Some(self), sink, origin });
        true
    }

    /// Returns `true` if the cache is empty and a block can be erased before the head needs it.
    fn wants_erase(&self) -> bool {
        self.newest.is_empty() && self.erased_to + self.block_slots <= self.head() + self.ring()
    }

    /// Erases the next block, whose data are all invalid. Main flash units that are not full may
    /// hold the replacing data, so they are closed first.
    fn erase_next<S: PlacementSink>(&mut self, ftl: &mut Ftl, sink: &mut S) {
        self.drop_dead();
        if self.is_volatile {
            for stream in 0..ftl.config().streams {
                ftl.pad(FrontierId(stream), sink);
            }
        }
        let block = self.erased_to % self.ring() / self.block_slots;
        self.erased_to += self.block_slots;
        debug_assert!(self.erased_to <= self.tail + self.ring(), "data are not folded yet");
        sink.erase_slc(block as u32);
    }
}
