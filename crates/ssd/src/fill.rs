//! Fills: program units in progress, from the first allocated slot to the end of the program.
//!
//! A fill may wait for flash reads whose data it contains (GC, merges), and commands may wait for a
//! fill (flushes, writes without a cache). A frontier's program units are programmed in order.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use writecliff_base::saved;
use writecliff_ftl::{FrontierId, ProgramUnit};

/// Fill number; numbers are reused.
///
/// Every program unit of a drive may be in flight at once: garbage collection that rotates static
/// data (FIFO, random victims) relocates all of them before the host's next slot.
pub(crate) type FillId = u32;
pub(crate) const NO_FILL: FillId = FillId::MAX;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Fill {
    pub(crate) frontier: FrontierId,
    /// Program unit of the fill; `None` until the unit is full.
    pub unit: Option<ProgramUnit>,
    pub(crate) reads_pending: u32,
    /// Commands that complete when the unit is on flash.
    #[serde(skip)]
    pub waiting: Vec<u16>,
}

/// Full program units of a reclaim unit that are not yet on flash.
#[derive(Clone, Debug, Default)]
struct InFlight {
    count: u32,
    /// One bit per program unit, up to the highest unit used so far.
    bits: Vec<u64>,
    /// Program units filled again while their bit was set, once for each refill.
    refilled: Vec<u32>,
}

impl InFlight {
    fn add(&mut self, unit: u32) {
        self.count += 1;
        let word = unit as usize / 64;
        if word >= self.bits.len() {
            self.bits.resize(word + 1, 0);
        }
        let (bits, bit) = (&mut self.bits[word], 1 << (unit % 64));
        if *bits & bit > 0 {
            self.refilled.push(unit);
        }
        *bits |= bit;
    }

    fn remove(&mut self, unit: u32) {
        debug_assert!(self.count > 0, "no unit is in flight");
        self.count -= 1;
        if let Some(again) = self.refilled.iter().position(|&other| other == unit) {
            self.refilled.swap_remove(again);
            return;
        }
        debug_assert!(self.contains(unit), "the unit was not in flight");
        self.bits[unit as usize / 64] &= !(1 << (unit % 64));
    }

    fn contains(&self, unit: u32) -> bool {
        self.bits.get(unit as usize / 64).is_some_and(|word| word >> (unit % 64) & 1 == 1)
    }
}

/// All fills, the current fill of each frontier, and fills that may not be programmed yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fills {
    all: Vec<Fill>,
    free: Vec<FillId>,
    pub current: Vec<FillId>,
    /// Full units by frontier that wait for reads, or for an earlier unit that waits for reads.
    held: Vec<VecDeque<FillId>>,
    /// Full units that are not yet on flash, by reclaim unit.
    in_flight: Vec<InFlight>,
    /// Numbers of full units not yet on flash by `ProgramUnit::since`, other than `u64::MAX`.
    since: BTreeMap<u64, u32>,
    /// `true` if erases wait for such units; otherwise, such units are not counted.
    erases_wait: bool,
}

saved! { Fills { all, free, [current], [held] } }

impl Fills {
    pub(crate) fn new(frontiers: usize, reclaim_units: usize, erases_wait: bool) -> Self {
        Self {
            current: vec![NO_FILL; frontiers],
            held: vec![VecDeque::new(); frontiers],
            in_flight: vec![InFlight::default(); reclaim_units],
            erases_wait,
            ..Self::default()
        }
    }

    #[inline]
    pub(crate) fn get(&mut self, id: FillId) -> &mut Fill {
        &mut self.all[id as usize]
    }

    #[inline]
    pub(crate) fn current(&mut self, frontier: FrontierId) -> FillId {
        let current = self.current[frontier.index()];
        if current != NO_FILL {
            return current;
        }
        let fresh = self.fresh(frontier);
        self.current[frontier.index()] = fresh;
        fresh
    }

    fn fresh(&mut self, frontier: FrontierId) -> FillId {
        if let Some(id) = self.free.pop() {
            let fill = &mut self.all[id as usize];
            debug_assert!(fill.unit.is_none() && fill.reads_pending == 0, "the fill is in use");
            debug_assert!(fill.waiting.is_empty(), "commands wait for a free fill");
            fill.frontier = frontier;
            return id;
        }
        let id = FillId::try_from(self.all.len()).expect("slots in flight have 32-bit addresses");
        self.all.push(Fill { frontier, unit: None, reads_pending: 0, waiting: Vec::new() });
        id
    }

    /// Marks the unit of `frontier` as full. Returns its fill if it can be programmed immediately.
    #[inline]
    pub(crate) fn filled(&mut self, frontier: FrontierId, unit: ProgramUnit) -> Option<FillId> {
        let id = self.current(frontier);
        self.current[frontier.index()] = NO_FILL;
        self.in_flight[unit.reclaim_unit.index()].add(unit.unit);
        if self.erases_wait && unit.since != u64::MAX {
            *self.since.entry(unit.since).or_default() += 1;
        }
        let fill = &mut self.all[id as usize];
        debug_assert!(fill.unit.is_none(), "a fill is of one program unit");
        debug_assert_eq!(fill.frontier, frontier, "a fill is of one frontier");
        fill.unit = Some(unit);
        if fill.reads_pending == 0 && self.held[frontier.index()].is_empty() {
            return Some(id);
        }
        self.held[frontier.index()].push_back(id);
        None
    }

    /// Records the end of a read that a fill waits for. If it was the fill's last such read,
    /// returns the fill's frontier; then call `release` until it returns `None`.
    #[inline]
    pub(crate) fn read_done(&mut self, id: FillId) -> Option<FrontierId> {
        let fill = &mut self.all[id as usize];
        debug_assert!(fill.reads_pending > 0, "the fill waits for no read");
        fill.reads_pending -= 1;
        (fill.reads_pending == 0).then_some(fill.frontier)
    }

    /// Returns the next waiting unit of `frontier` that may be programmed now.
    pub(crate) fn release(&mut self, frontier: FrontierId) -> Option<FillId> {
        let held = &mut self.held[frontier.index()];
        let &front = held.front()?;
        if self.all[front as usize].reads_pending > 0 {
            return None;
        }
        held.pop_front()
    }

    /// Returns `true` if a full unit holds only relocated data.
    pub(crate) fn is_moved(&self, id: FillId) -> bool {
        let unit = self.all[id as usize].unit;
        unit.is_some_and(|unit| unit.moved_slots > 0 && unit.moved_slots == unit.data_slots)
    }

    /// Returns `true` if a unit not on flash may replace data of one freed after `freed_at` others.
    pub(crate) fn awaited(&self, freed_at: u64) -> bool {
        debug_assert!(self.erases_wait, "not counted");
        self.since.first_key_value().is_some_and(|(&since, _)| since <= freed_at)
    }

    /// Removes a fill whose unit is on flash. Call [`Self::take_waiting`] before the next fill.
    #[inline]
    pub(crate) fn programmed(&mut self, id: FillId) -> (ProgramUnit, FrontierId) {
        let fill = &mut self.all[id as usize];
        let unit = fill.unit.take().expect("a fill is programmed when its unit is full");
        let frontier = fill.frontier;
        debug_assert_eq!(fill.reads_pending, 0, "a program started before its data were read");
        self.in_flight[unit.reclaim_unit.index()].remove(unit.unit);
        if self.erases_wait && unit.since != u64::MAX {
            self.forget_since(unit.since);
        }
        debug_assert!(self.free.len() < self.all.len(), "a fill is freed twice");
        self.free.push(id);
        (unit, frontier)
    }

    #[cold]
    fn forget_since(&mut self, since: u64) {
        let count = self.since.get_mut(&since).expect("a full unit was counted");
        *count -= 1;
        if *count == 0 {
            self.since.remove(&since);
        }
    }

    #[inline]
    pub(crate) fn take_waiting(&mut self, id: FillId) -> Vec<u16> {
        std::mem::take(&mut self.all[id as usize].waiting)
    }

    /// Returns `true` if unit `unit` of a reclaim unit is full but not yet on flash.
    #[inline]
    pub(crate) fn is_in_flight(&self, reclaim_unit: usize, unit: u32) -> bool {
        let in_flight = &self.in_flight[reclaim_unit];
        in_flight.count > 0 && in_flight.contains(unit)
    }

    /// Counts the restored full units not on flash; returns `false` if impossible. `programs` are
    /// the fills that dies program; `is_unit` is `true` for units that a frontier can fill.
    pub(crate) fn resume(
        &mut self,
        programs: impl Iterator<Item = FillId>,
        is_unit: impl Fn(FrontierId, &ProgramUnit) -> bool,
    ) -> bool {
        self.in_flight.fill(InFlight::default());
        self.since.clear();
        for fill in &self.all {
            let Some(unit) = fill.unit else { continue };
            if !is_unit(fill.frontier, &unit) {
                return false;
            }
            self.in_flight[unit.reclaim_unit.index()].add(unit.unit);
            if self.erases_wait && unit.since != u64::MAX {
                *self.since.entry(unit.since).or_default() += 1;
            }
        }
        self.has_each_once(programs)
    }

    /// Returns `true` if each fill is free, current, held or being programmed.
    fn has_each_once(&self, programs: impl Iterator<Item = FillId>) -> bool {
        let current = (0..).zip(&self.current).filter(|(_, id)| **id != NO_FILL);
        let current = current.map(|(frontier, &id)| (id, Some(frontier), false));
        let held = (0..).zip(&self.held);
        let held = held.flat_map(|(n, ids)| ids.iter().map(move |&id| (id, Some(n), true)));
        let free = self.free.iter().map(|&id| (id, None, false));
        let mut is_used = vec![false; self.all.len()];
        let mut use_once = |id: FillId| {
            let is_used = is_used.get_mut(id as usize);
            is_used.is_some_and(|is_used| !std::mem::replace(is_used, true))
        };
        let are_queued = current.chain(held).chain(free).all(|(id, frontier, is_full)| {
            use_once(id) && {
                let fill = &self.all[id as usize];
                let is_of = frontier.is_none_or(|frontier| fill.frontier == FrontierId(frontier));
                is_of && fill.unit.is_some() == is_full
            }
        });
        are_queued
            && { programs }.all(|id| use_once(id) && self.is_full(id))
            && is_used.iter().all(|&is_used| is_used)
            && self.all.iter().all(|fill| fill.frontier.index() < self.current.len())
    }

    /// Returns `true` if each fill waits for exactly `awaiting`, and no idle fill waits.
    pub(crate) fn wait_for(&self, awaiting: impl Iterator<Item = FillId>) -> bool {
        let mut counts = vec![0; self.all.len()];
        for id in awaiting {
            let Some(count) = counts.get_mut(id as usize) else { return false };
            *count += 1;
        }
        let mut can_wait = vec![false; self.all.len()];
        let current = self.current.iter().filter(|id| **id != NO_FILL);
        current.chain(self.held.iter().flatten()).for_each(|&id| can_wait[id as usize] = true);
        let mut fills = self.all.iter().zip(counts).zip(can_wait);
        fills.all(|((fill, count), can_wait)| {
            fill.reads_pending == count && (can_wait || count == 0)
        })
    }

    /// Returns `true` if the unit of a fill is full and not yet on flash.
    pub(crate) fn is_full(&self, id: FillId) -> bool {
        self.all.get(id as usize).is_some_and(|fill| fill.unit.is_some())
    }

    /// Returns the full units that are not yet on flash, with their frontiers.
    pub(crate) fn full_units(&self) -> impl Iterator<Item = (FrontierId, ProgramUnit)> + '_ {
        self.all.iter().filter_map(|fill| Some((fill.frontier, fill.unit?)))
    }

    /// Returns the fills of full units that are not yet on flash, in ascending order.
    pub(crate) fn outstanding(&self) -> impl Iterator<Item = FillId> + '_ {
        (0..self.all.len() as FillId).filter(|&id| self.all[id as usize].unit.is_some())
    }
}

#[cfg(test)]
mod tests {
    use writecliff_base::ReclaimUnitId;

    use super::*;

    fn unit(unit: u32) -> ProgramUnit {
        let since = u64::MAX;
        ProgramUnit { reclaim_unit: ReclaimUnitId(1), unit, data_slots: 4, moved_slots: 0, since }
    }

    /// Tests that a program unit that was erased and refilled is on flash when its last program
    /// ends, even on a restored drive.
    #[test]
    fn a_unit_that_was_filled_again_is_in_flight_until_its_last_program_ends() {
        let mut fills = Fills::new(2, 2, true);
        let frontier = FrontierId(0);
        let ids = [70, 70, 3].map(|index| fills.filled(frontier, unit(index)).unwrap());
        let bytes = writecliff_base::fields::to_bytes(&fills);
        let mut restored = Fills::new(2, 2, true);
        writecliff_base::fields::from_bytes(&bytes, &mut restored).unwrap();
        assert!(restored.resume(ids.into_iter(), |_, _| true));
        for mut fills in [fills, restored] {
            let in_flight = |fills: &Fills| [70, 3].map(|index| fills.is_in_flight(1, index));
            fills.programmed(ids[0]);
            assert_eq!(in_flight(&fills), [true, true]);
            fills.programmed(ids[2]);
            assert_eq!(in_flight(&fills), [true, false]);
            fills.programmed(ids[1]);
            assert_eq!(in_flight(&fills), [false, false]);
        }
    }
}
