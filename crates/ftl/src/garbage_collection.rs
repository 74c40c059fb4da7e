//! Garbage collection (GC): relocates the valid data of a victim so that it can be erased.
//!
//! Garbage collection runs in four modes, all built from the same steps:
//!
//! * **incremental** (normal): GC keeps the number of idle slots (in free reclaim units and the
//!   unwritten remainders of open units) at a target. After every host slot, enough of the victim
//!   is relocated to return to the target. A partly emptied victim is credited in proportion to the
//!   space that it will yield. Write latency therefore stays even, and the spare space that GC
//!   circulates through is constant. `GcPacing::Quanta` relocates at least a quantum at a time,
//!   which puts GC ahead of the host afterwards. `GcPacing::PerVictim` relocates a whole victim in
//!   one step, as simple drives do. `GcPacing::OnDemand` has no target;
//! * **foreground**: with `gc_low_watermark` free units or fewer, the host waits for the relocation
//!   of whole victims;
//! * **background**: while the device is idle, victims are emptied until `gc_idle_watermark` units
//!   are free;
//! * **early**: the caller requests the relocation of a victim that is nearly empty.

use serde::{Deserialize, Serialize};
use writecliff_base::{Lpn, Ppa, ReclaimUnitId, StreamId};

use crate::gc_log::GcEvent;
use crate::groups::Group;
use crate::map::LiveSlots;
use crate::table::UnitState;
use crate::{FlashSink, FrontierId, GcPacing, Parts};

/// Limit on the slots relocated for one host slot, so that no victim stalls a write.
const BURST_MAX: u32 = 64;
/// Background GC skips units with this valid share or more, which would yield little space.
const IDLE_VALID_MAX: f64 = 0.95;

/// Victim being emptied, if any.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Collection {
    pub(crate) victim: ReclaimUnitId,
    /// Next address to examine, as an offset from the start of the victim.
    pub(crate) next_position: u32,
    /// Number of valid allocation units when the victim was selected.
    pub(crate) valid_at_start: u32,
    /// Number of allocation units relocated from the victim so far.
    pub(crate) moved: u32,
    /// `true` if the victim was selected for wear levelling instead of space.
    pub(crate) for_wear: bool,
    /// Total erase count when wear levelling last relocated data.
    pub(crate) last_wear_move: u64,
    /// Allocation units that the victim will yield for the data relocated so far; 0 without one.
    #[serde(skip)]
    credit: i64,
    #[serde(skip)]
    destination: FrontierId,
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
            credit: 0,
            destination: FrontierId(0),
        }
    }
}

impl Collection {
    fn end(&mut self) {
        (self.victim, self.credit) = (ReclaimUnitId::NONE, 0);
    }

    #[inline]
    fn update_credit(&mut self, parts: &Parts) {
        let per_unit = u64::from(parts.table.unit_size);
        let credit = (u64::from(self.moved) * per_unit).checked_div(self.valid_at_start.into());
        self.credit = credit.unwrap_or(0).cast_signed();
    }

    /// Recomputes the fields that are not saved.
    pub(crate) fn resume(&mut self, parts: &Parts) {
        if self.is_running() {
            self.destination = parts.destination(self.victim);
            self.update_credit(parts);
        } else {
            self.end();
        }
    }

    /// Returns `true` unless more was relocated than was valid.
    pub(crate) fn is_possible(&self) -> bool {
        self.moved <= self.valid_at_start
    }

    #[inline]
    pub(crate) fn is_running(&self) -> bool {
        !self.victim.is_none()
    }

    pub(crate) fn to_words(&self) -> [u64; 6] {
        let words = [self.victim.0, self.next_position, self.valid_at_start, self.moved];
        let [victim, next_position, valid_at_start, moved] = words.map(u64::from);
        let for_wear = u64::from(self.for_wear);
        [victim, next_position, valid_at_start, moved, for_wear, self.last_wear_move]
    }
}

impl Group {
    /// Relocates slots after one host slot, until idle space is back at its target.
    #[inline(always)] // most host slots require no relocation
    pub(crate) fn pace<S: FlashSink>(&mut self, parts: &mut Parts, sink: &mut S) {
        if self.owes() {
            self.catch_up(parts, sink);
        }
    }

    /// Returns `true` if idle space plus the victim's credit is below the pacing target.
    #[inline]
    fn owes(&self) -> bool {
        self.idle + self.collection.credit < self.idle_target
    }

    #[inline(never)]
    fn catch_up<S: FlashSink>(&mut self, parts: &mut Parts, sink: &mut S) {
        match parts.config.gc_pacing {
            GcPacing::Incremental | GcPacing::OnDemand => self.relocate_owed(parts, 0, sink),
            GcPacing::Quanta { slots } => self.relocate_quantum(parts, slots, sink),
            GcPacing::PerVictim => self.relocate_victim(parts, sink),
        }
    }

    /// Relocates the slots owed to the host; if any are owed, relocates at least `quantum` slots.
    #[inline(always)] // the usual quantum is the constant 0
    fn relocate_owed<S: FlashSink>(&mut self, parts: &mut Parts, quantum: u32, sink: &mut S) {
        let mut burst = 0;
        while burst < BURST_MAX.max(quantum)
            && (self.owes() || burst > 0 && burst < quantum && self.idle < self.idle_target)
            && self.has_victim(parts)
        {
            burst += self.relocate_read_group(parts, sink);
            debug_assert!(self.collection.is_possible());
        }
    }

    #[cold]
    fn relocate_quantum<S: FlashSink>(&mut self, parts: &mut Parts, slots: u32, sink: &mut S) {
        self.relocate_owed(parts, slots, sink);
    }

    #[cold]
    fn relocate_victim<S: FlashSink>(&mut self, parts: &mut Parts, sink: &mut S) {
        if self.has_victim(parts) {
            self.finish_victim(parts, sink);
        }
    }

    /// Relocates the remaining data of the victim, if there is a victim.
    fn finish_victim<S: FlashSink>(&mut self, parts: &mut Parts, sink: &mut S) {
        while self.collection.is_running() {
            self.relocate_read_group(parts, sink);
        }
    }

    /// Returns `true` if the reserve for garbage collection is in use.
    fn is_short_of_units(&self, parts: &Parts) -> bool {
        self.free.len() as u32 <= parts.config.gc_low_watermark
    }

    /// Keeps the free pool at the minimum that GC needs; called before the host opens a unit.
    pub(crate) fn make_room<S: FlashSink>(&mut self, parts: &mut Parts, sink: &mut S) {
        while self.is_short_of_units(parts) && self.has_victim(parts) {
            self.finish_victim(parts, sink);
        }
    }

    pub(crate) fn needs_background_gc(&self, parts: &Parts) -> bool {
        self.collection.is_running() || (self.free.len() as u32) < parts.config.gc_idle_watermark
    }

    pub(crate) fn step_when_idle<S: FlashSink>(&mut self, parts: &mut Parts, sink: &mut S) -> bool {
        if !self.needs_background_gc(parts)
            || !self.collection.is_running()
                && !self.choose_victim_below(parts, IDLE_VALID_MAX, false)
        {
            return false;
        }
        let frontier = self.collection.destination;
        self.relocate_read_group_to(parts, frontier, sink);
        // The host and GC may share an open unit, and host writes do not make room for relocated
        // data. While the reserve is in use, such a victim must not be postponed.
        while parts.frontiers.is_of_host(frontier)
            && self.collection.is_running()
            && self.is_short_of_units(parts)
        {
            self.relocate_read_group(parts, sink);
        }
        true
    }

    pub(crate) fn relocate_early<S: FlashSink>(
        &mut self,
        parts: &mut Parts,
        valid_max: f64,
        sink: &mut S,
    ) -> bool {
        if self.collection.is_running() || !self.choose_victim_below(parts, valid_max, true) {
            return false;
        }
        self.finish_victim(parts, sink);
        true
    }

    /// Selects a victim with a valid fraction below `share`, or at most `share` if `inclusive`.
    fn choose_victim_below(&mut self, parts: &mut Parts, share: f64, inclusive: bool) -> bool {
        if !self.choose_victim(parts) {
            return false;
        }
        let size = f64::from(parts.table.unit_size);
        let valid = f64::from(self.collection.valid_at_start);
        let is_below = if inclusive { valid <= share * size } else { valid / size < share };
        if !is_below {
            self.give_back_victim(parts);
        }
        is_below
    }

    pub(crate) fn relocate_unit<S: FlashSink>(
        &mut self,
        parts: &mut Parts,
        unit: ReclaimUnitId,
        sink: &mut S,
    ) -> bool {
        assert!(self.units.contains(&unit.0), "a unit of this group");
        self.finish_victim(parts, sink);
        self.make_room(parts, sink);
        if !parts.table.is_closed(unit) {
            return false;
        }
        self.begin_victim(parts, unit);
        self.finish_victim(parts, sink);
        true
    }

    /// Continues with the victim, or selects a new one. Returns `false` if no unit can be one.
    #[inline]
    fn has_victim(&mut self, parts: &mut Parts) -> bool {
        self.collection.is_running() || self.choose_victim(parts)
    }

    fn choose_victim(&mut self, parts: &mut Parts) -> bool {
        let (config, among) = (&parts.config, self.among(&parts.table));
        let since = parts.wear.total() - self.collection.last_wear_move;
        let cold = config.wear.cold_unit(&among, &parts.wear, since);
        let now = parts.counters.host_slots;
        let random = &mut parts.random;
        let chosen = cold.or_else(|| match &mut parts.spare {
            None => config.gc.choose(&among, now, random),
            Some(spare) => spare.choose(config.gc, &among, now, random),
        });
        let Some(victim) = chosen else { return false };
        self.begin_victim(parts, victim);
        self.collection.for_wear = cold.is_some();
        if cold.is_some() {
            self.collection.last_wear_move = parts.wear.total();
        }
        true
    }

    fn begin_victim(&mut self, parts: &mut Parts, victim: ReclaimUnitId) {
        debug_assert!(!self.collection.is_running(), "one victim at a time");
        debug_assert!(self.units.contains(&victim.0) && parts.table.is_closed(victim));
        parts.table.state[victim.index()] = UnitState::Victim;
        self.collection = Collection {
            victim,
            valid_at_start: parts.table.valid[victim.index()],
            last_wear_move: self.collection.last_wear_move,
            destination: parts.destination(victim),
            ..Collection::default()
        };
    }

    pub(crate) fn give_back_victim(&mut self, parts: &mut Parts) {
        assert_eq!(parts.table.state[self.collection.victim.index()], UnitState::Victim);
        parts.table.state[self.collection.victim.index()] = UnitState::Closed;
        self.collection.end();
    }

    /// Relocates the valid slots of the victim's next read group that has any; frees the victim
    /// after its last read group. Returns the number of relocated slots.
    fn relocate_read_group<S: FlashSink>(&mut self, parts: &mut Parts, sink: &mut S) -> u32 {
        self.relocate_read_group_to(parts, self.collection.destination, sink)
    }

    #[inline(always)]
    fn relocate_read_group_to<S: FlashSink>(
        &mut self,
        parts: &mut Parts,
        frontier: FrontierId,
        sink: &mut S,
    ) -> u32 {
        let victim = self.collection.victim;
        debug_assert_eq!(parts.table.state[victim.index()], UnitState::Victim);
        debug_assert!(self.units.contains(&victim.0) && self.idle >= 0);
        let size = parts.geometry.ppas_per_reclaim_unit;
        let group = parts.geometry.ppas_per_read_group;
        let base = parts.geometry.first_ppa(victim);
        debug_assert!(self.collection.next_position.is_multiple_of(group), "within a read group");
        if parts.table.valid[victim.index()] == 0 {
            self.free_victim(parts);
            return 0;
        }
        let mut live = LiveSlots::new();
        while live.get().is_empty() && self.collection.next_position < size {
            let position = self.collection.next_position;
            parts.map.fetch_ahead(base + position, group, position);
            parts.map.gather_live(base + position, group, &mut live);
            self.collection.next_position += group;
        }
        let live = live.get();
        let count = live.len() as u32;
        assert!(count > 0, "the reverse map does not contain the valid slots");
        let first = Ppa(base + self.collection.next_position - group);
        debug_assert!(count <= group, "a read group holds more data than slots");
        let moved = if parts.packer.is_some() {
            self.relocate_packed(parts, frontier, first, live, sink)
        } else {
            sink.read_for(frontier, first, count);
            self.relocate(parts, frontier, live, sink);
            count
        };
        if self.collection.for_wear {
            parts.counters.wear_slots += u64::from(count);
        } else {
            parts.counters.gc_slots += u64::from(count);
        }
        self.collection.moved += moved;
        if parts.table.invalidate(victim, moved) == 0 {
            self.free_victim(parts);
        } else {
            self.collection.update_credit(parts);
        }
        count
    }

    /// Allocates the next slots of a frontier to logical pages, like `allocate`, but in runs.
    #[inline(always)]
    fn relocate<S: FlashSink>(
        &mut self,
        parts: &mut Parts,
        frontier: FrontierId,
        lpns: &[Lpn],
        sink: &mut S,
    ) {
        let mut rest = lpns;
        while !rest.is_empty() {
            let is_of_host = parts.frontiers.is_of_host(frontier);
            let f = &mut parts.frontiers[frontier];
            if f.needs_unit() {
                self.open(parts, frontier, sink);
                continue;
            }
            debug_assert!(self.units.contains(&f.unit.0), "relocated data stay in their group");
            let (first, room) = (f.next, f.fill_end - f.next);
            debug_assert!(room > 0, "a full program unit stays open");
            let (run, later) = rest.split_at(rest.len().min(room as usize));
            let count = run.len() as u32;
            parts.map.move_run(run, first, sink);
            f.next += count;
            f.moved += if is_of_host { count } else { 0 };
            self.idle -= i64::from(count);
            parts.table.add_valid(f.unit, count);
            debug_assert!(self.idle >= 0, "relocated data took the space of other units");
            if count == room {
                let slots = parts.geometry.slots_per_program_unit;
                self.program_filled(parts, frontier, slots, sink);
                if is_of_host
                    && parts.gc_log.is_listening()
                    && parts.frontiers[frontier].needs_unit()
                {
                    parts.gc_log.record(GcEvent::RolledOver { stream: StreamId(frontier.0) });
                }
            }
            rest = later;
        }
    }

    /// Reads the pieces that start in the read group at `first` and relocates them to `frontier`.
    /// Returns the number of sectors that the pieces occupy.
    #[cold]
    fn relocate_packed<S: FlashSink>(
        &mut self,
        parts: &mut Parts,
        frontier: FrontierId,
        first: Ppa,
        live: &[Lpn],
        sink: &mut S,
    ) -> u32 {
        debug_assert!(!live.is_empty(), "an empty read");
        let all = live.iter().map(|&holder| parts.map.piece_size(holder)).sum();
        sink.read_for(frontier, first, parts.config.slots_of(all));
        for &holder in live {
            let sectors = parts.map.piece_size(holder);
            self.close_if_short(parts, frontier, sectors, sink);
            if parts.frontiers[frontier].needs_unit() {
                self.open(parts, frontier, sink);
            }
            // Count data before appending them, because a full unit is programmed with its count.
            if parts.frontiers.is_of_host(frontier) {
                parts.frontiers[frontier].moved += 1;
            }
            let ppa = self.append(parts, frontier, holder, sectors, sink);
            parts.map.move_piece(holder, ppa);
        }
        let for_wear = self.collection.for_wear;
        parts.stored(|c| {
            *(if for_wear { &mut c.wear_sectors } else { &mut c.gc_sectors }) += u64::from(all);
        });
        all
    }

    fn free_victim(&mut self, parts: &mut Parts) {
        let victim = self.collection.victim;
        debug_assert!(self.collection.is_possible());
        let owner = parts.table.owner[victim.index()];
        parts.note_moved(owner, self.collection.moved);
        if parts.gc_log.is_listening() && !owner.relocated && self.collection.moved > 0 {
            let (stream, slots) = (owner.stream, self.collection.moved);
            parts.gc_log.record(GcEvent::Moved { stream, slots });
        }
        self.free.push_back(victim);
        debug_assert!(self.free.len() <= self.units.len(), "a unit is free twice");
        self.collection.end();
        self.idle += i64::from(parts.table.unit_size);
        parts.free(victim);
    }

    /// Empties units in ascending order of valid data, until GC has the free units that it needs.
    pub(crate) fn empty_units<S: FlashSink>(&mut self, parts: &mut Parts, sink: &mut S) {
        while self.is_short_of_units(parts) {
            if self.collection.is_running() {
                self.give_back_victim(parts);
            }
            let among = self.among(&parts.table);
            let fewest = among.iter().min_by_key(|unit| parts.table.valid[unit.index()]);
            let Some(victim) = fewest else { break };
            if parts.table.valid[victim.index()] == parts.table.unit_size {
                break;
            }
            self.begin_victim(parts, victim);
            while self.collection.is_running() {
                let frontier = self.frontier_with_room(parts);
                self.relocate_read_group_to(parts, frontier, sink);
            }
        }
    }

    /// Returns the victim's destination, or another if that needs a unit and none is free.
    fn frontier_with_room(&self, parts: &Parts) -> FrontierId {
        let usual = self.collection.destination;
        let frontiers = &parts.frontiers;
        let room = |id: FrontierId| frontiers[id].room();
        if room(usual) >= parts.geometry.ppas_per_read_group || !self.free.is_empty() {
            return usual;
        }
        let group = frontiers.group_of(usual);
        let all = frontiers.ids().filter(|&id| frontiers.group_of(id) == group);
        all.max_by_key(|&id| room(id)).unwrap_or(usual)
    }

    pub(crate) fn evacuate<S: FlashSink>(
        &mut self,
        parts: &mut Parts,
        unit: ReclaimUnitId,
        die: u32,
        sink: &mut S,
    ) -> u64 {
        assert!(parts.packer.is_none(), "pieces have sizes");
        assert!(self.units.contains(&unit.0), "a unit of this group");
        let group = parts.geometry.ppas_per_read_group;
        let mut moved = 0;
        for index in 0..parts.geometry.program_units_per_reclaim_unit {
            if parts.geometry.die_of_unit(index) != die {
                continue;
            }
            self.make_room(parts, sink);
            for first in parts.geometry.unit_ppas(unit, index).step_by(group as usize) {
                let mut live = LiveSlots::new();
                let holds = [UnitState::Closed, UnitState::Open];
                if holds.contains(&parts.table.state[unit.index()]) {
                    parts.map.gather_live(first, group, &mut live);
                }
                let count = live.get().len() as u32;
                if count > 0 {
                    let frontier = parts.destination(unit);
                    sink.read_for(frontier, Ppa(first), count);
                    self.relocate(parts, frontier, live.get(), sink);
                    parts.table.invalidate(unit, count);
                    parts.counters.gc_slots += u64::from(count);
                    moved += u64::from(count);
                }
            }
        }
        moved
    }
}
