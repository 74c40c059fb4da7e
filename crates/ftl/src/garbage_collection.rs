//! Garbage collection (GC): relocates the valid data of a victim so that it can be erased.
//!
//! It runs in four modes, all built from the same steps:
//!
//! * **incremental** (normal): the idle slots (free reclaim units and the unwritten rest of open
//!   ones) are kept at a target. After every host slot, enough of the victim is relocated to return
//!   to the target; a partly emptied victim is credited in proportion to the space that it will
//!   yield. Writes thus stay smooth, and the spare space that GC circulates through is constant.
//!   With `GcPacing::Quanta` it relocates at least a quantum each time and is then ahead of the
//!   host; with `GcPacing::PerVictim` a whole victim is relocated at once instead, as in simple
//!   drives; with `GcPacing::OnDemand` there is no such target;
//! * **foreground**: with `gc_low_watermark` free units or fewer, the host waits for the relocation
//!   of whole victims;
//! * **background**: while the device is idle, victims are emptied until `gc_idle_watermark` units
//!   are free;
//! * **early**: the caller requests the relocation of a victim that is nearly empty.

use std::mem::MaybeUninit;

use writecliff_base::{Lpn, Ppa, ReclaimUnitId, StreamId};

use crate::config::GcPacing;
use crate::frontier::{Frontier, FrontierId};
use crate::ftl::{Ftl, WRITE_AHEAD, prefetch, prefetch_far};
use crate::gc_log::GcEvent;
use crate::sink::FlashSink;
use crate::table::{Owner, UnitState};

/// Distance in slots at which the map entries of a victim are prefetched.
const AHEAD: usize = 32;
/// Slots whose map entries are prefetched together, so that the address translations (TLB misses)
/// of the prefetches overlap.
const FETCHED: usize = 128;
/// Distance in slots at which the victim's own entries are prefetched: the scan is too slow for the
/// hardware prefetcher to follow.
const FAR_AHEAD: usize = AHEAD + FETCHED + 64;
pub(crate) const GROUP_MAX: usize = writecliff_flash::geometry::READ_GROUP_SLOTS_MAX as usize;
/// Buffer for the logical pages of a read group; filled from the start, uninitialised beyond.
pub(crate) type LiveSlots = [MaybeUninit<Lpn>; GROUP_MAX];
/// Limit on the slots relocated for one host slot: a victim that yields next to nothing must not
/// stall a write.
const BURST_MAX: u32 = 64;
/// Background GC skips units with this valid share or more: relocating them would wear the flash
/// for little space.
const IDLE_VALID_MAX: f64 = 0.95;

/// The victim being emptied, if any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collection {
    pub(crate) victim: ReclaimUnitId,
    /// Next address to examine, counted from the start of the victim.
    pub(crate) next_position: u32,
    /// Valid allocation units when the victim was chosen.
    pub(crate) valid_at_start: u32,
    /// Allocation units relocated from the victim so far.
    pub(crate) moved: u32,
    /// Whether the victim was chosen for wear levelling instead of space.
    pub(crate) for_wear: bool,
    /// Total erases when wear levelling last relocated data.
    pub(crate) last_wear_move: u64,
}

impl Default for Collection {
    fn default() -> Self {
        Self {
            victim: ReclaimUnitId::NONE,
            next_position: 0,
            valid_at_start: 0,
            moved: 0,
            for_wear: false,
            last_wear_move: 0,
        }
    }
}

impl Collection {
    #[inline]
    pub fn is_running(&self) -> bool {
        !self.victim.is_none()
    }

    pub fn is_for_wear(&self) -> bool {
        self.for_wear
    }
}

impl Ftl {
    /// Relocates slots after one host slot, until idle space is back at its target.
    #[inline]
    pub(crate) fn pace<S: FlashSink>(&mut self, sink: &mut S) {
        if self.idle < self.idle_target {
            self.catch_up(sink);
        }
    }

    #[inline]
    fn catch_up<S: FlashSink>(&mut self, sink: &mut S) {
        match self.config.gc_pacing {
            GcPacing::Incremental | GcPacing::OnDemand => self.relocate_owed(0, sink),
            GcPacing::Quanta { slots } => self.relocate_quantum(slots, sink),
            GcPacing::PerVictim => self.relocate_victim(sink),
        }
    }

    /// Relocates what is owed; if that is anything, at least `quantum` slots.
    #[expect(clippy::inline_always, reason = "the usual quantum is the constant 0")]
    #[inline(always)]
    fn relocate_owed<S: FlashSink>(&mut self, quantum: u32, sink: &mut S) {
        let mut burst = 0;
        while burst < BURST_MAX.max(quantum) && self.idle < self.idle_target {
            if !self.collection.is_running() && !self.choose_victim() {
                return;
            }
            let c = &self.collection;
            let owed = (self.idle_target - self.idle) * i64::from(c.valid_at_start);
            let coming = i64::from(c.moved) * i64::from(self.table.alloc_units_per_reclaim_unit);
            if coming > 0 && coming >= owed && (burst == 0 || burst >= quantum) {
                return;
            }
            burst += self.relocate_group(sink);
        }
    }

    #[cold]
    fn relocate_quantum<S: FlashSink>(&mut self, slots: u32, sink: &mut S) {
        self.relocate_owed(slots, sink);
    }

    /// Relocates a whole victim at once.
    #[cold]
    fn relocate_victim<S: FlashSink>(&mut self, sink: &mut S) {
        if self.collection.is_running() || self.choose_victim() {
            while self.collection.is_running() {
                self.relocate_group(sink);
            }
        }
    }

    /// Target of idle space: `gc_high_watermark` units, plus one for every open frontier beyond the
    /// first two, because its unwritten slots are idle but not available to others. There is no
    /// target with `GcPacing::OnDemand`.
    pub(crate) fn update_idle_target(&mut self) {
        if self.config.gc_pacing == GcPacing::OnDemand {
            return;
        }
        let pool = &self.table.pool;
        let is_open = |f: &&Frontier| !f.needs_unit() && pool.contains(&f.unit.0);
        let open = self.frontiers.iter().filter(is_open).count() as u32;
        let units = self.config.gc_high_watermark + open.saturating_sub(2);
        self.idle_target = i64::from(units) * i64::from(self.table.alloc_units_per_reclaim_unit);
    }

    /// Called before the host opens a unit: keeps the free pool at the minimum that GC needs.
    pub(crate) fn make_room<S: FlashSink>(&mut self, sink: &mut S) {
        while self.free.len() as u32 <= self.config.gc_low_watermark {
            if !self.collection.is_running() && !self.choose_victim() {
                return;
            }
            while self.collection.is_running() {
                self.relocate_group(sink);
            }
        }
    }

    /// Runs one step of background GC, a read group. Returns false when there is nothing left to
    /// do.
    pub fn gc_in_background<S: FlashSink>(&mut self, sink: &mut S) -> bool {
        self.in_any_group(|ftl| ftl.gc_in_group(sink))
    }

    fn gc_in_group<S: FlashSink>(&mut self, sink: &mut S) -> bool {
        if !self.collection.is_running() {
            if self.free.len() as u32 >= self.config.gc_idle_watermark || !self.choose_victim() {
                return false;
            }
            let share = f64::from(self.collection.valid_at_start)
                / f64::from(self.table.alloc_units_per_reclaim_unit);
            if share >= IDLE_VALID_MAX {
                self.give_back_victim();
                return false;
            }
        }
        let owner = self.table.owner[self.collection.victim.index()];
        let frontier = self.destination(owner);
        self.relocate_group_to(frontier, sink);
        // The host and relocation may share an open unit, and host writes do not make room for the
        // relocated data. While the reserve is in use, such a victim must not wait.
        while self.is_host_frontier(frontier)
            && self.collection.is_running()
            && self.free.len() as u32 <= self.config.gc_low_watermark
        {
            self.relocate_group(sink);
        }
        true
    }

    /// Relocates one whole victim if at most the share `valid_max` of it is valid. Returns false if
    /// the next victim has more, there is none, or GC is in progress.
    pub fn gc_early<S: FlashSink>(&mut self, valid_max: f64, sink: &mut S) -> bool {
        self.in_any_group(|ftl| ftl.gc_early_in_group(valid_max, sink))
    }

    fn gc_early_in_group<S: FlashSink>(&mut self, valid_max: f64, sink: &mut S) -> bool {
        if self.collection.is_running() || !self.choose_victim() {
            return false;
        }
        let size = f64::from(self.table.alloc_units_per_reclaim_unit);
        if f64::from(self.collection.valid_at_start) > valid_max * size {
            self.give_back_victim();
            return false;
        }
        self.relocate_victim(sink);
        true
    }

    /// Relocates all data of a closed unit, after the victim that is being emptied. Returns false
    /// if it is no longer closed then.
    pub fn relocate_unit<S: FlashSink>(&mut self, unit: ReclaimUnitId, sink: &mut S) -> bool {
        self.enter(self.geometry.group_of(unit));
        while self.collection.is_running() {
            self.relocate_group(sink);
        }
        self.make_room(sink);
        if !self.table.is_closed(unit) {
            return false;
        }
        self.begin_victim(unit);
        while self.collection.is_running() {
            self.relocate_group(sink);
        }
        true
    }

    /// Whether `gc_in_background` would have work to do.
    pub fn needs_background_gc(&self) -> bool {
        self.collection.is_running()
            || (self.free.len() as u32) < self.config.gc_idle_watermark
            || self.groups.as_ref().is_some_and(|g| g.need_gc(self.config.gc_idle_watermark))
    }

    fn choose_victim(&mut self) -> bool {
        let since = self.wear.total() - self.collection.last_wear_move;
        let cold = self.config.wear.cold_unit(&self.table, &self.wear, since);
        let now = self.counters.host_slots;
        let (gc, table, random) = (self.config.gc, &self.table, &mut self.random);
        let chosen = cold.or_else(|| self.spare.choose(gc, table, now, random));
        let Some(victim) = chosen else { return false };
        self.begin_victim(victim);
        self.collection.for_wear = cold.is_some();
        if cold.is_some() {
            self.collection.last_wear_move = self.wear.total();
        }
        true
    }

    pub(crate) fn begin_victim(&mut self, victim: ReclaimUnitId) {
        self.table.state[victim.index()] = UnitState::Victim;
        self.collection.victim = victim;
        self.collection.next_position = 0;
        self.collection.moved = 0;
        self.collection.valid_at_start = self.table.valid[victim.index()];
        self.collection.for_wear = false;
    }

    pub(crate) fn give_back_victim(&mut self) {
        self.table.state[self.collection.victim.index()] = UnitState::Closed;
        self.collection.victim = ReclaimUnitId::NONE;
    }

    /// Relocates the valid slots of the victim's next read group that has any; frees the victim at
    /// its end. Returns the number of relocated slots.
    fn relocate_group<S: FlashSink>(&mut self, sink: &mut S) -> u32 {
        let owner = self.table.owner[self.collection.victim.index()];
        let frontier = self.destination(owner);
        self.relocate_group_to(frontier, sink)
    }

    #[expect(clippy::inline_always)]
    #[inline(always)]
    pub(crate) fn relocate_group_to<S: FlashSink>(
        &mut self,
        frontier: FrontierId,
        sink: &mut S,
    ) -> u32 {
        let victim = self.collection.victim;
        let size = self.geometry.ppas_per_reclaim_unit;
        let group = self.geometry.ppas_per_read_group;
        let base = self.geometry.first_ppa(victim);
        if self.table.valid[victim.index()] == 0 {
            self.free_victim();
            return 0;
        }
        let mut live = [const { MaybeUninit::uninit() }; GROUP_MAX];
        let mut count = 0;
        let is_packed = self.reduction.is_some();
        while count == 0 && self.collection.next_position < size {
            let first = base + self.collection.next_position;
            self.fetch_ahead(first, group);
            count = if is_packed {
                self.live_pieces(first, group, &mut live)
            } else {
                self.live_slots(first, group, &mut live)
            };
            self.collection.next_position += group;
        }
        assert!(count > 0, "the reverse map does not contain the valid slots");
        let first = Ppa(base + self.collection.next_position - group);
        // SAFETY: `live_slots` and `live_pieces` have written the first `count` elements.
        let live = unsafe { std::slice::from_raw_parts(live.as_ptr().cast::<Lpn>(), count) };
        let moved = if is_packed {
            self.relocate_group_packed(frontier, first, live, sink)
        } else {
            sink.read_for(frontier, first, count as u32);
            self.relocate(frontier, live, sink);
            count as u32
        };
        self.table.valid[victim.index()] -= moved;
        self.collection.moved += moved;
        if self.collection.for_wear {
            self.counters.wear_slots += count as u64;
        } else {
            self.counters.gc_slots += count as u64;
        }
        if self.table.valid[victim.index()] == 0 {
            self.free_victim();
        }
        count as u32
    }

    /// Allocates the next slots of a frontier to logical pages, like `allocate` but in runs.
    #[expect(clippy::inline_always)]
    #[inline(always)]
    pub(crate) fn relocate<S: FlashSink>(
        &mut self,
        frontier: FrontierId,
        lpns: &[Lpn],
        sink: &mut S,
    ) {
        let mut rest = lpns;
        while !rest.is_empty() {
            if self.frontiers[frontier.index()].needs_unit() {
                self.open(frontier, sink);
            }
            let f = &mut self.frontiers[frontier.index()];
            let (first, room) = (f.next, f.fill_end - f.next);
            let (run, later) = rest.split_at(rest.len().min(room as usize));
            let count = run.len() as u32;
            let reverse = &mut self.reverse[first as usize..(first + count) as usize];
            for ((slot, &lpn), back) in (first..).zip(run).zip(reverse) {
                *back = lpn;
                let before = std::mem::replace(&mut self.forward[lpn.index()], Ppa(slot));
                sink.moved(lpn, Ppa(slot), before);
            }
            prefetch(&self.reverse, first as usize + WRITE_AHEAD);
            f.next += count;
            f.moved += if frontier.0 < self.config.streams { count } else { 0 };
            self.idle -= i64::from(count);
            self.table.valid[f.unit.index()] += count;
            if count == room {
                self.program_filled(frontier, self.geometry.slots_per_program_unit, sink);
                if self.is_host_frontier(frontier)
                    && self.gc_log.is_listening()
                    && self.frontiers[frontier.index()].needs_unit()
                {
                    self.gc_log.record(GcEvent::RolledOver { stream: StreamId(frontier.0) });
                }
            }
            rest = later;
        }
    }

    /// Prefetches the memory that later groups of the victim will access; the next group is at
    /// `first`.
    #[inline]
    fn fetch_ahead(&self, first: u32, group: u32) {
        let (begin, into_burst) =
            (first as usize, self.collection.next_position as usize % FETCHED);
        prefetch(&self.reverse, begin + FAR_AHEAD);
        if into_burst < group as usize {
            let from = begin - into_burst + AHEAD;
            let to = self.reverse.len().min(from + FETCHED);
            for lpn in self.reverse.get(from..to).unwrap_or_default() {
                prefetch_far(&self.forward, lpn.index());
            }
        }
    }

    /// Gather the logical pages whose current address is in `first..first + group`.
    #[expect(clippy::inline_always)]
    #[inline(always)]
    pub(crate) fn live_slots(&self, first: u32, group: u32, live: &mut LiveSlots) -> usize {
        let (begin, group) = (first as usize, group as usize);
        let mut count = 0;
        for (slot, &lpn) in (first..).zip(&self.reverse[begin..begin + group]) {
            // Store unconditionally and count arithmetically, because branch predictors cannot
            // predict whether a slot is live.
            live[count].write(lpn);
            count += usize::from(self.forward[lpn.index()] == Ppa(slot));
        }
        count
    }

    fn free_victim(&mut self) {
        let victim = self.collection.victim;
        debug_assert_eq!(self.table.valid[victim.index()], 0);
        let owner = self.table.owner[victim.index()];
        self.note_moved(owner);
        if self.gc_log.is_listening() && !owner.relocated && self.collection.moved > 0 {
            let (stream, slots) = (owner.stream, self.collection.moved);
            self.gc_log.record(GcEvent::Moved { stream, slots });
        }
        self.table.state[victim.index()] = UnitState::Free;
        self.free.push_back(victim);
        self.collection.victim = ReclaimUnitId::NONE;
        self.idle += i64::from(self.table.alloc_units_per_reclaim_unit);
        self.note_freed(victim);
        self.counters.collections += 1;
    }

    // Out of line, as the next one: once a victim is seldom.
    #[inline(never)]
    fn note_moved(&mut self, owner: Owner) {
        let handle = self.handle_of(owner.stream);
        let is_mixed = owner.relocated && !self.config.gc_destination.isolates(handle);
        let of = if is_mixed { self.config.streams } else { owner.stream.0 };
        self.moved_by_stream[usize::from(of)] += u64::from(self.collection.moved);
    }

    /// Notes which program units are being filled while a reclaim unit becomes free.
    #[inline(never)]
    fn note_freed(&mut self, unit: ReclaimUnitId) {
        let number = self.counters.collections;
        self.table.freed_at[unit.index()] = number;
        let ppas = self.geometry.ppas_per_program_unit;
        for f in self.frontiers.iter_mut().filter(|f| f.filled(ppas) > 0) {
            f.since = f.since.min(number);
        }
    }
}
