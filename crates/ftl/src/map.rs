//! Map between logical pages and physical page addresses, in both directions.

use std::io::Read;
use std::mem::{MaybeUninit, replace};
use std::ops::Range;

use writecliff_base::codec::{CodecError, StateReader};
use writecliff_base::{Lpn, Ppa, ensure, memory};
use writecliff_flash::Geometry;

use crate::reduce::{Pieces, is_shared};
use crate::state::damaged;
use crate::{FlashSink, FtlConfig};
use writecliff_host_interface::content::SECTORS_PER_SLOT;

/// Number of slots ahead of a frontier that are prefetched into the cache. A core retires stores in
/// order, so a store that misses the cache delays all later stores.
const WRITE_AHEAD: usize = 64;
/// Prefetch distances in slots for a victim's map entries, and in entries for their slots.
const AHEAD: usize = 32;
/// Slots whose map entries are prefetched together, so that their TLB misses overlap.
const FETCHED: usize = 128;
/// Distance in slots of the prefetches of a victim's entries, which hardware does not follow.
const FAR_AHEAD: usize = AHEAD + FETCHED + 64;

const GROUP_MAX: usize = writecliff_flash::geometry::READ_GROUP_SLOTS_MAX as usize;

/// Logical pages of a read group; only the first `count` are initialised.
pub(crate) struct LiveSlots {
    holders: [MaybeUninit<Lpn>; GROUP_MAX],
    count: usize,
}

impl LiveSlots {
    #[inline]
    pub(crate) fn new() -> Self {
        Self { holders: [const { MaybeUninit::uninit() }; GROUP_MAX], count: 0 }
    }

    #[inline]
    pub(crate) fn get(&self) -> &[Lpn] {
        debug_assert!(self.count <= GROUP_MAX);
        // SAFETY: the first `count` elements are initialised.
        unsafe { std::slice::from_raw_parts(self.holders.as_ptr().cast::<Lpn>(), self.count) }
    }

    /// Collects the current holders. `is_current` receives an address and its holder.
    #[inline(always)]
    fn gather(&mut self, first: u32, holders: &[Lpn], is_current: impl Fn(Ppa, Lpn) -> bool) {
        assert!(holders.len() <= GROUP_MAX, "more slots than a read group holds");
        let (mut ppa, mut count) = (first, 0);
        let mut add = |holder: Lpn| {
            // The store is unconditional and the count is arithmetic, because branch predictors
            // cannot predict which slots are live. SAFETY: `count` is at most the number of
            // previously visited holders, which is below `GROUP_MAX`.
            unsafe { self.holders.get_unchecked_mut(count) }.write(holder);
            count += usize::from(is_current(Ppa(ppa), holder));
            ppa += 1;
        };
        // Process four elements per iteration, because the compiler does not unroll a loop that can
        // panic.
        let (fours, rest) = holders.as_chunks::<4>();
        for four in fours {
            for &holder in four {
                add(holder);
            }
        }
        for &holder in rest {
            add(holder);
        }
        self.count = count;
    }
}

/// Allocation units at an address that no longer hold valid data; 0 if other pages share the data.
#[must_use]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Released {
    pub ppa: Ppa,
    pub alloc_units: u32,
}

/// Forward and reverse map of a drive.
#[derive(Clone, Debug, Default)]
pub(crate) struct Map {
    /// Physical address of every logical page; `NONE` if nothing is stored.
    pub forward: Vec<Ppa>,
    /// Logical page last written to each slot. An entry is current only if `forward` points back to
    /// the slot. A slot without data can therefore contain 0, and no "none" value is needed.
    pub reverse: Vec<Lpn>,
    /// Number of logical pages that hold data.
    pub mapped: u64,
    /// Sizes and sharing of data, if the controller compresses or deduplicates.
    pub pieces: Option<Box<Pieces>>,
}

impl Map {
    pub(crate) fn new(config: &FtlConfig, geometry: &Geometry) -> Self {
        let pages = config.user_slots as usize;
        assert!(config.user_slots < u64::from(Lpn::NONE.0), "each logical page has a number");
        assert!(geometry.raw_ppas() < u64::from(Ppa::NONE.0), "each slot has an address");
        Self {
            forward: memory::filled(Ppa::NONE, pages),
            reverse: memory::zeroed(geometry.raw_ppas() as usize),
            mapped: 0,
            pieces: config.reduction.map(|_| Box::new(Pieces::new(pages))),
        }
    }

    pub(crate) fn purge(&mut self) {
        self.forward.fill(Ppa::NONE);
        self.mapped = 0;
        if let Some(pieces) = &mut self.pieces {
            (pieces.shared, pieces.free) = (Vec::new(), Vec::new());
        }
    }

    /// Copies the state of a map of the same size into the memory of this one, with its huge pages.
    pub(crate) fn copy_from(&mut self, other: &Self) {
        assert_eq!(self.pieces.is_some(), other.pieces.is_some(), "only one reduces data");
        self.forward.copy_from_slice(&other.forward);
        self.reverse.copy_from_slice(&other.reverse);
        self.mapped = other.mapped;
        self.pieces.clone_from(&other.pieces);
    }

    #[inline]
    pub(crate) fn lookup(&self, lpn: Lpn) -> Ppa {
        let ppa = self.forward[lpn.index()];
        match &self.pieces {
            Some(pieces) => pieces.get(ppa).map_or(ppa, |data| data.ppa),
            None => ppa,
        }
    }

    #[inline]
    pub(crate) fn holder(&self, ppa: Ppa) -> Option<Lpn> {
        let lpn = self.reverse[ppa.index()];
        let is_current = self.forward.get(lpn.index()).is_some_and(|&mapped| mapped == ppa);
        is_current.then_some(lpn)
    }

    #[inline]
    pub(crate) fn alloc_units_of(&self, lpn: Lpn) -> u32 {
        let Some(pieces) = &self.pieces else { return 1 };
        pieces.size(lpn, self.forward[lpn.index()])
    }

    /// Returns the number of sectors of the piece that a reverse entry refers to.
    pub(crate) fn piece_size(&self, holder: Lpn) -> u32 {
        self.pieces.as_ref().map_or(1, |pieces| pieces.size(holder, Ppa(holder.0)))
    }

    /// Records the holder of the address that a frontier writes next.
    #[inline]
    pub(crate) fn hold(&mut self, ppa: u32, holder: Lpn) {
        debug_assert!(self.holder(Ppa(ppa)).is_none(), "a slot with valid data is overwritten");
        self.reverse[ppa as usize] = holder;
        prefetch(&self.reverse, ppa as usize + WRITE_AHEAD);
    }

    /// Maps a logical page to the address that holds its data. Returns the previous map entry.
    #[inline]
    pub(crate) fn place(&mut self, lpn: Lpn, ppa: Ppa) -> Ppa {
        debug_assert!(self.pieces.is_some() || self.reverse[ppa.index()] == lpn, "see hold");
        debug_assert!(!ppa.is_none(), "data are placed without an address");
        let old = replace(&mut self.forward[lpn.index()], ppa);
        debug_assert!(old != ppa, "a page is placed where it already is");
        if old.is_none() {
            self.mapped += 1;
            debug_assert!(self.mapped <= self.forward.len() as u64, "more pages than exist");
        }
        old
    }

    /// Maps a logical page to a piece of `sectors` sectors. Returns the replaced data.
    pub(crate) fn place_piece(&mut self, lpn: Lpn, ppa: Ppa, sectors: u32) -> Option<Released> {
        let old = self.place(lpn, ppa);
        debug_assert!((1..=SECTORS_PER_SLOT).contains(&sectors), "a piece is of one slot");
        let released = self.release(lpn, old);
        let pieces = self.pieces.as_mut().expect("a drive that reduces data");
        pieces.sectors[lpn.index()] = sectors as u8;
        released
    }

    /// Unmaps a logical page. Returns the data that the page held.
    #[inline]
    pub(crate) fn remove(&mut self, lpn: Lpn) -> Option<Released> {
        let old = replace(&mut self.forward[lpn.index()], Ppa::NONE);
        let released = self.release(lpn, old);
        debug_assert!(released.is_none() || self.mapped > 0, "an uncounted page is removed");
        self.mapped -= u64::from(released.is_some());
        released
    }

    /// Makes `lpn` refer to the data of `original`. Returns the data that `lpn` held before.
    pub(crate) fn refer(&mut self, lpn: Lpn, original: Lpn) -> Option<Released> {
        let (ppa, old) = (self.forward[original.index()], self.forward[lpn.index()]);
        debug_assert!(!ppa.is_none(), "the original has data");
        if lpn == original || ppa == old {
            return None;
        }
        let pieces = self.pieces.as_mut().expect("a drive that reduces data");
        let shared = if is_shared(ppa.0) {
            ppa
        } else {
            let shared = pieces.share(original, ppa);
            self.reverse[ppa.index()] = Lpn(shared.0);
            self.forward[original.index()] = shared;
            shared
        };
        pieces.of(shared).references += 1;
        self.place(lpn, shared);
        self.release(lpn, old)
    }

    /// Removes the reference of `lpn` to its previous entry `old`, if that entry exists.
    #[inline]
    fn release(&mut self, lpn: Lpn, old: Ppa) -> Option<Released> {
        if old.is_none() {
            return None;
        }
        let Some(pieces) = &mut self.pieces else {
            return Some(Released { ppa: old, alloc_units: 1 });
        };
        let alloc_units = pieces.size(lpn, old);
        let Some(data) = pieces.get(old) else { return Some(Released { ppa: old, alloc_units }) };
        let ppa = data.ppa;
        let is_last = pieces.drop_reference(old);
        Some(Released { ppa, alloc_units: if is_last { alloc_units } else { 0 } })
    }

    /// Maps a logical page to its previous address, if any; returns the replaced entry.
    pub(crate) fn return_to(&mut self, lpn: Lpn, before: Ppa) -> Ppa {
        let lost = replace(&mut self.forward[lpn.index()], before);
        debug_assert!(lost != before || lost.is_none(), "an undone change had no effect");
        self.mapped = self.mapped + u64::from(!before.is_none()) - u64::from(!lost.is_none());
        if !before.is_none() {
            self.reverse[before.index()] = lpn;
        }
        lost
    }

    /// Maps relocated logical pages to consecutive addresses, starting at `first`.
    #[inline(always)]
    pub(crate) fn move_run<S: FlashSink>(&mut self, lpns: &[Lpn], first: u32, sink: &mut S) {
        debug_assert!(self.pieces.is_none(), "`move_piece` moves pieces");
        let reverse = &mut self.reverse[first as usize..first as usize + lpns.len()];
        // With this order, one comparison detects the end of both slices.
        for ((back, &lpn), slot) in reverse.iter_mut().zip(lpns).zip(first..) {
            *back = lpn;
            let before = replace(&mut self.forward[lpn.index()], Ppa(slot));
            debug_assert!(!before.is_none() && before.0 != slot, "a live slot is relocated");
            sink.moved(lpn, Ppa(slot), before);
        }
        prefetch(&self.reverse, first as usize + WRITE_AHEAD);
    }

    /// Maps the piece of a reverse entry to its new address after relocation.
    pub(crate) fn move_piece(&mut self, holder: Lpn, to: Ppa) {
        let pieces = self.pieces.as_mut().expect("a drive that reduces data");
        if is_shared(holder.0) {
            pieces.of(Ppa(holder.0)).ppa = to;
        } else {
            debug_assert!(!self.forward[holder.index()].is_none(), "an unmapped piece is moved");
            self.forward[holder.index()] = to;
        }
    }

    /// Collects the logical pages, or pieces, whose current address is in `first..first + group`.
    #[inline(always)]
    pub(crate) fn gather_live(&self, first: u32, group: u32, live: &mut LiveSlots) {
        debug_assert!(first.is_multiple_of(group), "not the start of a read group");
        let holders = &self.reverse[first as usize..first as usize + group as usize];
        match &self.pieces {
            None => live.gather(first, holders, |ppa, lpn| self.forward[lpn.index()] == ppa),
            Some(pieces) => self.gather_pieces(pieces, first, holders, live),
        }
    }

    #[inline(never)]
    fn gather_pieces(&self, pieces: &Pieces, first: u32, holders: &[Lpn], live: &mut LiveSlots) {
        live.gather(first, holders, |ppa, holder| {
            if is_shared(holder.0) {
                pieces.is_at(holder, ppa)
            } else {
                self.forward[holder.index()] == ppa
            }
        });
    }

    /// Prefetches the memory that later read groups of a victim will access. The next group is at
    /// `first`, which is `position` addresses after the start of the victim.
    #[inline]
    pub(crate) fn fetch_ahead(&self, first: u32, group: u32, position: u32) {
        let (begin, into_burst) = (first as usize, position as usize % FETCHED);
        prefetch(&self.reverse, begin + FAR_AHEAD);
        if into_burst < group as usize {
            let from = begin - into_burst + AHEAD;
            let to = self.reverse.len().min(from + FETCHED);
            let soon = self.reverse.get(from..to).unwrap_or_default();
            // Process chunks, because the compiler does not unroll a loop of prefetches. The few
            // slots at the end of the drive that do not fill a chunk do not need a prefetch.
            for eight in soon.as_chunks::<8>().0 {
                for lpn in eight {
                    prefetch_far(&self.forward, lpn.index());
                }
            }
        }
    }

    /// Reads logical pages, with one flash read for adjacent pages of a read group.
    pub(crate) fn read_runs(&self, lpns: Range<u32>, group: u32, mut read: impl FnMut(Ppa, u32)) {
        let mut run: Option<(Ppa, u32)> = None;
        for at in lpns.map(|lpn| self.lookup(Lpn(lpn))).filter(|at| !at.is_none()) {
            match &mut run {
                Some((first, count))
                    if at.0 == first.0 + *count && at.0 / group == first.0 / group =>
                {
                    *count += 1;
                }
                _ => {
                    if let Some((first, count)) = run.replace((at, 1)) {
                        read(first, count);
                    }
                }
            }
        }
        if let Some((first, count)) = run {
            read(first, count);
        }
    }

    /// Checks the map; returns the valid allocation units of each reclaim unit. O(drive).
    pub(crate) fn check(&self, geometry: &Geometry) -> Result<Vec<u32>, String> {
        let mut valid = vec![0_u32; geometry.reclaim_units as usize];
        let mut mapped = 0;
        for (lpn, &ppa) in (0..).map(Lpn).zip(&self.forward).filter(|(_, ppa)| !ppa.is_none()) {
            mapped += 1;
            if self.pieces.is_some() && is_shared(ppa.0) {
                continue;
            }
            let back = self.reverse[ppa.index()];
            ensure!(back == lpn, "{lpn:?} maps to {ppa:?}, which contains {back:?}");
            valid[geometry.reclaim_unit_of(ppa).index()] += self.alloc_units_of(lpn);
        }
        if let Some(pieces) = &self.pieces {
            pieces.check(&self.forward, &self.reverse, |ppa, alloc_units| {
                valid[geometry.reclaim_unit_of(ppa).index()] += alloc_units;
            })?;
        }
        let counted = self.mapped;
        ensure!(mapped == counted, "{mapped} pages are mapped, but the counter shows {counted}");
        Ok(valid)
    }

    /// Restores both maps. Returns the logical pages that map to addresses in each reclaim unit.
    pub(crate) fn restore<R: Read>(
        &mut self,
        input: &mut StateReader<R>,
        geometry: &Geometry,
    ) -> Result<Vec<u32>, CodecError> {
        self.mapped = 0;
        let mut valid = vec![0; geometry.reclaim_units as usize];
        input.u32s_each("ftl.forward", self.forward.len(), |first, ppas| {
            self.restore_pages(first, ppas, |ppa| valid[geometry.reclaim_unit_of(ppa).index()] += 1)
        })?;
        Ok(valid)
    }

    /// Maps consecutive logical pages, starting at `first`, to `ppas`.
    fn restore_pages(
        &mut self,
        first: usize,
        ppas: &[u32],
        mut add_valid: impl FnMut(Ppa),
    ) -> Result<(), CodecError> {
        for (i, &ppa) in ppas.iter().enumerate() {
            let lpn = first + i;
            self.forward[lpn] = Ppa(ppa);
            if let Some(&soon) = ppas.get(i + AHEAD) {
                prefetch(&self.reverse, soon as usize);
            }
            if ppa == Ppa::NONE.0 {
                continue;
            }
            self.mapped += 1;
            if self.pieces.is_some() && is_shared(ppa) {
                continue;
            }
            let slot = self.reverse.get_mut(ppa as usize);
            let slot = slot.ok_or_else(|| damaged("ftl.forward"))?;
            // The reverse map entry may be stale. Only pages below this page number have been
            // restored.
            let before = replace(slot, Lpn(lpn as u32)).index();
            if before < lpn && self.forward[before] == Ppa(ppa) {
                return Err(damaged("ftl.forward"));
            }
            add_valid(Ppa(ppa));
        }
        Ok(())
    }
}

/// Prefetches an element that will be needed soon; `index` may be beyond the end.
#[inline]
pub(crate) fn prefetch<T>(array: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address has no architectural effect.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(array.as_ptr().wrapping_add(index).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (array, index);
}

/// Prefetches one of many elements into the second-level cache, which allows more misses.
#[inline]
pub(crate) fn prefetch_far<T>(array: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address has no architectural effect.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(array.as_ptr().wrapping_add(index).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (array, index);
}
