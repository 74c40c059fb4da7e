//! Host operations of the FTL and the allocation of physical addresses.

use std::collections::VecDeque;

use writecliff_base::{Lpn, Ppa, Prng, ReclaimUnitId, StreamId, memory};
use writecliff_flash::geometry::SLOT_BYTES;
use writecliff_flash::{Geometry, Wear};

use crate::bad_blocks::BadBlocks;
use crate::config::{ConfigError, FtlConfig};
use crate::counters::{Allocated, Counters};
use crate::frontier::{Frontier, FrontierId};
use crate::garbage_collection::Collection;
use crate::gc_log::GcLog;
use crate::groups::Groups;
use crate::reduce::Reduction;
use crate::sink::{FlashSink, ProgramUnit};
use crate::spare::{Spare, StreamSpare};
use crate::table::{UnitState, UnitTable};

/// Label of the random generator for the FTL's choices.
const SEED_LABEL: u64 = 0x0046_544c;

/// Slots ahead of a frontier that are prefetched into the cache: a core retires stores in order, so
/// one that misses delays all that follow.
pub(crate) const WRITE_AHEAD: usize = 64;

/// A flash translation layer and its state. See the crate documentation for its contract.
#[derive(Clone, Debug)]
pub struct Ftl {
    pub(crate) geometry: Geometry,
    pub(crate) config: FtlConfig,
    /// Physical address of every logical page; `NONE` if nothing is stored.
    pub(crate) forward: Vec<Ppa>,
    /// Last logical page written to each slot. An entry is current only if `forward` points back to
    /// the slot, so a slot without data can contain 0 and no "none" value is needed.
    pub(crate) reverse: Vec<Lpn>,
    pub(crate) table: UnitTable,
    pub(crate) wear: Wear,
    pub(crate) free: VecDeque<ReclaimUnitId>,
    pub(crate) frontiers: Vec<Frontier>,
    pub(crate) collection: Collection,
    pub(crate) spare: Spare,
    pub(crate) counters: Counters,
    /// Allocation units that GC and wear levelling have moved, by the stream of the unit that they
    /// were in; the last element is of units that hold relocated data of several streams. Not
    /// saved: it counts from when the FTL was made or restored.
    pub(crate) moved_by_stream: Vec<u64>,
    pub(crate) gc_log: GcLog,
    pub(crate) random: Prng,
    pub(crate) mapped: u64,
    /// Allocation units that can be written without garbage collection: those of free reclaim
    /// units and the unwritten rest of open ones.
    pub(crate) idle: i64,
    /// Target of pacing for `idle`.
    pub(crate) idle_target: i64,
    /// State of data reduction, if the controller compresses or deduplicates.
    pub(crate) reduction: Option<Box<Reduction>>,
    /// The blocks that fail, if the device file says how.
    pub(crate) bad_blocks: Option<Box<BadBlocks>>,
    /// A die that is not written to any more.
    pub(crate) lost_die: Option<u32>,
    /// Whether dies are in stripes, or one is lost.
    pub(crate) has_stripes: bool,
    /// Parity units programmed.
    pub(crate) parity_programs: u64,
    /// The reclaim groups, if there are several.
    pub(crate) groups: Option<Box<Groups>>,
}

impl Ftl {
    pub fn new(geometry: Geometry, config: FtlConfig) -> Result<Self, ConfigError> {
        config.check(&geometry)?;
        let geometry = match config.reduction {
            Some(reduction) => reduction.addresses(geometry)?,
            None => geometry,
        };
        geometry.check_addresses(0)?;
        let units = geometry.reclaim_units;
        let table = UnitTable::new(units, config.alloc_units(geometry.slots_per_reclaim_unit));
        let mut ftl = Self {
            forward: memory::filled(Ppa::NONE, config.user_slots as usize),
            reverse: memory::zeroed(geometry.raw_ppas() as usize),
            idle: i64::from(units) * i64::from(table.alloc_units_per_reclaim_unit),
            table,
            wear: Wear::new(units, config.rated_cycles),
            free: (0..units).map(ReclaimUnitId).collect(),
            frontiers: vec![Frontier::CLOSED; 2 * config.streams as usize],
            collection: Collection::default(),
            spare: Spare::new(config.spare, config.streams, units),
            counters: Counters::default(),
            moved_by_stream: vec![0; config.streams as usize + 1],
            gc_log: GcLog::default(),
            random: Prng::derive(config.seed, SEED_LABEL),
            mapped: 0,
            idle_target: 0,
            reduction: Reduction::of(&config),
            bad_blocks: config.blocks(&geometry).map(Box::new),
            lost_die: None,
            has_stripes: geometry.stripes().is_some(),
            parity_programs: 0,
            groups: Groups::of(&geometry, &config),
            geometry,
            config,
        };
        ftl.drop_factory_units();
        ftl.update_idle_target();
        ftl.divide_units();
        Ok(ftl)
    }

    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    pub fn config(&self) -> &FtlConfig {
        &self.config
    }

    /// User capacity in slots, of which there are no more than page numbers.
    #[inline]
    pub fn user_slots(&self) -> u32 {
        self.config.user_slots as u32
    }

    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    pub fn wear(&self) -> &Wear {
        &self.wear
    }

    pub fn table(&self) -> &UnitTable {
        &self.table
    }

    /// GC's actions on host units, for data placement events.
    pub fn gc_log(&self) -> &GcLog {
        &self.gc_log
    }

    pub fn gc_log_mut(&mut self) -> &mut GcLog {
        &mut self.gc_log
    }

    /// Allocation units moved since the FTL was made or restored, by the stream of the unit that
    /// they were in; the last element is of units that hold relocated data of several streams.
    pub fn moved_by_stream(&self) -> &[u64] {
        &self.moved_by_stream
    }

    /// What the drive has measured about its streams; empty unless `spare = "self-tuned"`.
    pub fn stream_spare(&self) -> &[StreamSpare] {
        self.spare.streams()
    }

    /// The drive's blocks, if it has bad ones.
    pub fn bad_blocks(&self) -> Option<&BadBlocks> {
        self.bad_blocks.as_deref()
    }

    pub fn bad_blocks_mut(&mut self) -> Option<&mut BadBlocks> {
        self.bad_blocks.as_deref_mut()
    }

    pub fn free_units(&self) -> u32 {
        self.free.len() as u32
    }

    /// Logical pages that hold data.
    pub fn mapped_slots(&self) -> u64 {
        self.mapped
    }

    /// Bytes allocated on flash since the drive was new, by cause; data that are not yet programmed
    /// count.
    #[inline]
    pub fn allocated(&self) -> Allocated {
        match &self.reduction {
            None => Allocated::in_slots(&self.counters),
            Some(reduction) => Allocated::in_sectors(&reduction.counters),
        }
    }

    /// Physical address of a logical page; `Ppa::NONE` if it holds nothing.
    #[inline]
    pub fn lookup(&self, lpn: Lpn) -> Ppa {
        let ppa = self.forward[lpn.index()];
        match &self.reduction {
            Some(reduction) => reduction.shared.resolve(ppa),
            None => ppa,
        }
    }

    /// The frontier that host writes of `stream` go to.
    #[inline]
    pub fn host_frontier(&self, stream: StreamId) -> FrontierId {
        debug_assert!(stream.0 < self.config.streams);
        FrontierId(stream.0)
    }

    pub fn is_host_frontier(&self, frontier: FrontierId) -> bool {
        frontier.0 < self.config.streams
    }

    /// Slots that the host has written in the open unit of `frontier`, a host frontier.
    pub fn filled(&self, frontier: FrontierId) -> u32 {
        let f = &self.frontiers[frontier.index()];
        if let Some(r) = &self.reduction {
            return r.pieces(frontier) - f.moved;
        }
        f.filled(self.geometry.ppas_per_program_unit) - f.moved
    }

    /// Whether the slot, which is in reclaim unit `unit`, is in a program unit that is not full
    /// yet.
    #[inline]
    pub fn is_filling(&self, ppa: Ppa, unit: ReclaimUnitId) -> bool {
        self.table.state[unit.index()] == UnitState::Open
            && self.frontiers.iter().any(|f| {
                (f.fill_end - self.geometry.ppas_per_program_unit.min(f.fill_end)..f.next)
                    .contains(&ppa.0)
                    && f.unit == unit
            })
    }

    /// Prefetches the memory that a later `write(lpn)` will access. Has no effect on the state.
    /// (The per-unit counters are few and always cached.)
    #[inline]
    pub fn prefetch(&self, lpn: Lpn) {
        prefetch_far(&self.forward, lpn.index());
    }

    /// The same for an access that is about to come.
    #[inline]
    pub fn prefetch_now(&self, lpn: Lpn) {
        prefetch(&self.forward, lpn.index());
    }

    /// Writes `bytes` bytes of one slot. A partial write is merged with the slot's old data, which
    /// costs a flash read if there are any.
    #[inline]
    pub fn write<S: FlashSink>(&mut self, lpn: Lpn, stream: StreamId, bytes: u32, sink: &mut S) {
        self.write_inlined(lpn, stream, bytes, sink);
    }

    /// The same for a loop that does nothing else.
    #[expect(clippy::inline_always)]
    #[inline(always)]
    pub fn write_inlined<S: FlashSink>(
        &mut self,
        lpn: Lpn,
        stream: StreamId,
        bytes: u32,
        sink: &mut S,
    ) {
        debug_assert!(self.reduction.is_none(), "see write_reduced");
        let frontier = self.host_frontier(stream);
        debug_assert!(self.is_in_charge(frontier), "see choose_stream");
        if bytes < SLOT_BYTES {
            self.merge(frontier, lpn, sink);
        }
        let ppa = self.allocate(frontier, lpn, sink);
        // Look up only now, because making room for the new slot may have relocated the old one.
        let old = self.forward[lpn.index()];
        if old.is_none() {
            self.mapped += 1;
        } else {
            self.invalidate(old);
        }
        self.forward[lpn.index()] = ppa;
        sink.placed(lpn, ppa, old);
        self.counters.host_slots += 1;
        self.counters.host_bytes += u64::from(bytes);
        self.pace(sink);
    }

    /// Reads the rest of a slot of which only a part is written.
    #[cold]
    pub(crate) fn merge<S: FlashSink>(&mut self, frontier: FrontierId, lpn: Lpn, sink: &mut S) {
        let old = self.lookup(lpn);
        if !old.is_none() {
            sink.read_for(frontier, old, 1);
        }
    }

    /// Unmaps a logical page (TRIM, deallocate).
    pub fn trim(&mut self, lpn: Lpn) {
        if self.supersede(lpn) {
            self.counters.trimmed_slots += 1;
        }
    }

    /// Invalidates the flash data of a logical page, because newer data are elsewhere. Returns
    /// whether it had any.
    #[inline]
    pub fn supersede(&mut self, lpn: Lpn) -> bool {
        let old = self.forward[lpn.index()];
        if old.is_none() {
            return false;
        }
        if self.reduction.is_some() {
            self.release(lpn, old);
        } else {
            self.invalidate(old);
        }
        self.forward[lpn.index()] = Ppa::NONE;
        self.mapped -= 1;
        true
    }

    /// Closes the program unit that a host frontier is filling by padding it. Returns whether there
    /// was one.
    pub fn pad<S: FlashSink>(&mut self, frontier: FrontierId, sink: &mut S) -> bool {
        if self.reduction.is_some() {
            return self.pad_packed(frontier, sink);
        }
        let slots = self.geometry.slots_per_program_unit;
        let f = &mut self.frontiers[frontier.index()];
        let filled = f.filled(slots);
        if filled == 0 {
            return false;
        }
        let padding = slots - filled;
        f.next = f.fill_end;
        self.enter_for(frontier);
        self.counters.padding_slots += u64::from(padding);
        self.idle -= i64::from(padding);
        self.program_filled(frontier, filled, sink);
        true
    }

    /// Slots that can still be written to the open unit of a host frontier, and whether any part of
    /// it has been written. A frontier without a unit will open an empty one.
    pub fn host_room(&self, frontier: FrontierId) -> (u32, bool) {
        let f = &self.frontiers[frontier.index()];
        let size = self.geometry.slots_per_reclaim_unit;
        if f.needs_unit() { (size, false) } else { (f.end - f.next, f.end - f.next < size) }
    }

    /// The partly written unit of a host frontier.
    pub fn host_unit(&self, frontier: FrontierId) -> Option<ReclaimUnitId> {
        self.host_room(frontier).1.then(|| self.frontiers[frontier.index()].unit)
    }

    /// Closes the open unit of a host frontier early: its next write opens an empty one. Returns
    /// how many slots stay unwritten, 0 if there was no unit.
    pub fn abandon<S: FlashSink>(&mut self, frontier: FrontierId, sink: &mut S) -> u32 {
        self.pad(frontier, sink);
        self.enter_for(frontier);
        let f = &mut self.frontiers[frontier.index()];
        let rest = f.end - f.next;
        if rest > 0 {
            self.table.close(f.unit, self.counters.host_slots);
            *f = Frontier::CLOSED;
            self.idle -= i64::from(rest);
            self.update_idle_target();
        }
        rest
    }

    /// Returns to the state of "no writes": every block erased, nothing mapped. Counters and wear
    /// are kept.
    pub fn purge(&mut self) {
        self.forward.fill(Ppa::NONE);
        self.mapped = 0;
        for index in 0..self.table.len() {
            if !self.table.erased[index as usize] {
                self.wear.record_erase(ReclaimUnitId(index));
            }
        }
        let new = UnitTable::new(self.table.len(), self.table.alloc_units_per_reclaim_unit);
        let old = std::mem::replace(&mut self.table, new);
        self.free = (0..self.table.len()).map(ReclaimUnitId).collect();
        self.frontiers.fill(Frontier::CLOSED);
        self.collection = Collection::default();
        self.spare = Spare::new(self.config.spare, self.config.streams, self.table.len());
        self.idle =
            i64::from(self.table.len()) * i64::from(self.table.alloc_units_per_reclaim_unit);
        if let Some(reduction) = &mut self.reduction {
            reduction.forget_data();
        }
        if self.bad_blocks.is_some() {
            self.purge_dropped(&old.state);
        }
        self.update_idle_target();
        self.groups = Groups::of(&self.geometry, &self.config);
        self.divide_units();
    }

    #[inline]
    fn invalidate(&mut self, ppa: Ppa) {
        debug_assert!(self.reduction.is_none(), "pieces have sizes");
        let unit = self.geometry.reclaim_unit_of(ppa);
        debug_assert!(self.table.valid[unit.index()] > 0);
        self.table.valid[unit.index()] -= 1;
    }

    /// Allocates the next slot of a host frontier to `lpn` and returns its address. The caller
    /// updates the map.
    #[expect(clippy::inline_always)]
    #[inline(always)]
    pub(crate) fn allocate<S: FlashSink>(
        &mut self,
        frontier: FrontierId,
        lpn: Lpn,
        sink: &mut S,
    ) -> Ppa {
        if self.frontiers[frontier.index()].needs_unit() {
            self.open_for_host(frontier, sink);
        }
        let f = &mut self.frontiers[frontier.index()];
        let slot = f.next;
        f.next += 1;
        self.idle -= 1;
        self.table.valid[f.unit.index()] += 1;
        let full = f.next == f.fill_end;
        self.reverse[slot as usize] = lpn;
        prefetch(&self.reverse, slot as usize + WRITE_AHEAD);
        if full {
            self.program_filled(frontier, self.geometry.slots_per_program_unit, sink);
        }
        Ppa(slot)
    }

    pub(crate) fn program_filled<S: FlashSink>(
        &mut self,
        frontier: FrontierId,
        data: u32,
        sink: &mut S,
    ) {
        let ppas = self.geometry.ppas_per_program_unit;
        let f = &mut self.frontiers[frontier.index()];
        let first = self.geometry.first_ppa(f.unit);
        let unit = (f.fill_end - first) / ppas - 1;
        let (reclaim_unit, at_end) = (f.unit, f.next == f.end);
        let moved_slots = std::mem::take(&mut f.moved);
        let since = f.since.min(self.counters.collections);
        f.since = u64::MAX;
        if at_end {
            self.table.close(reclaim_unit, self.counters.host_slots);
        } else {
            f.fill_end += ppas;
        }
        if self.awaits_failure() {
            self.program_may_fail(reclaim_unit, unit, sink);
        }
        self.counters.programs += 1;
        self.counters.programmed_slots += u64::from(self.geometry.slots_per_program_unit);
        let data_slots = data;
        let full = ProgramUnit { reclaim_unit, unit, data_slots, moved_slots, since };
        sink.program(frontier, full);
        if self.has_stripes {
            self.programmed_in_stripe(frontier, unit);
        }
    }
}

/// Prefetches an element that will be needed soon. `index` may be beyond the end: then nothing that
/// is used is fetched.
#[inline]
pub(crate) fn prefetch<T>(array: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no architectural effect, at any address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(array.as_ptr().wrapping_add(index).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (array, index);
}

/// Prefetches one of many elements into the second-level cache, which supports more outstanding
/// misses than the first and has room for them.
#[inline]
pub(crate) fn prefetch_far<T>(array: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as above.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(array.as_ptr().wrapping_add(index).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (array, index);
}
