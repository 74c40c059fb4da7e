//! The FTL after a loss of power: the mapping as flash, journal and checkpoint tell it.
//!
//! A drive finds the newest copy of a logical page by the page numbers and sequence numbers that
//! are programmed beside the data. Here the same follows from undoing what was not programmed, in
//! the opposite order: the copy before it is still on flash, because a reclaim unit is not erased
//! before the data that replace its own are programmed (`UnitTable::freed_at`).

use writecliff_base::{Lpn, Ppa, ReclaimUnitId};

use crate::frontier::{Frontier, FrontierId};
use crate::ftl::Ftl;
use crate::sink::FlashSink;
use crate::table::{Among, UnitState};

/// A change of the mapping that the flash does not hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unwritten {
    pub lpn: Lpn,
    /// Where its data were going; `NONE` for a deallocation.
    pub at: Ppa,
    /// Where they were before; `NONE` if nowhere.
    pub before: Ppa,
    /// Whether the drive relocated them, so that their data are not lost with the change.
    pub is_relocation: bool,
}

/// Changes that were undone; those that something newer on flash had replaced are not.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Undone {
    /// Slots that the host had written.
    pub writes: u64,
    /// Slots that the drive had relocated: they are where they were.
    pub relocations: u64,
    /// Slots with data that the host had deallocated.
    pub trims: u64,
}

impl Undone {
    pub fn add(&mut self, change: &Unwritten) {
        if change.is_relocation {
            self.relocations += 1;
        } else if !change.at.is_none() {
            self.writes += 1;
        } else if !change.before.is_none() {
            self.trims += 1;
        }
    }
}

/// How far the blocks of an open reclaim unit have got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenUnit {
    pub unit: ReclaimUnitId,
    /// Program units from the first one to the last one on which a program has begun.
    pub begun: u32,
    /// Whether an erase has not ended on some die.
    pub is_unerased: bool,
}

impl Ftl {
    /// The open reclaim units.
    pub fn open_units(&self) -> impl Iterator<Item = ReclaimUnitId> + '_ {
        self.frontiers.iter().filter(|f| !f.needs_unit()).map(|f| f.unit)
    }

    /// Program units of an open reclaim unit that are full.
    pub fn full_units(&self, unit: ReclaimUnitId) -> u32 {
        let open = self.frontiers.iter().find(|f| f.unit == unit && !f.needs_unit());
        let ppas = self.geometry.ppas_per_program_unit;
        open.map_or(0, |f| (f.fill_end - self.geometry.first_ppa(unit)) / ppas - 1)
    }

    /// Begins to rebuild the state from what the flash holds: [`Self::return_to`] follows for each
    /// change that the flash does not hold, newest first, and [`Self::power_up`].
    pub fn power_off(&mut self) {
        assert!(self.reduction.is_none(), "pieces have sizes");
        if self.collection.is_running() {
            self.give_back_victim();
        }
    }

    /// Open reclaim units continue behind the last program unit that was begun. One that was to be
    /// erased first is as it was before it was opened.
    pub fn power_up(&mut self, open: &[OpenUnit]) {
        for unit in open {
            self.continue_unit(unit);
        }
        self.idle = self.count_idle();
        self.update_idle_target();
    }

    /// Maps a logical page to where it was; `NONE` if that was nowhere, or not in this flash.
    pub fn return_to(&mut self, lpn: Lpn, before: Ppa) {
        let lost = std::mem::replace(&mut self.forward[lpn.index()], before);
        if !lost.is_none() {
            self.table.valid[self.geometry.reclaim_unit_of(lost).index()] -= 1;
            self.mapped -= 1;
        }
        if before.is_none() {
            return;
        }
        self.reverse[before.index()] = lpn;
        self.mapped += 1;
        let unit = self.geometry.reclaim_unit_of(before);
        self.table.valid[unit.index()] += 1;
        if self.table.state[unit.index()] == UnitState::Free {
            self.table.state[unit.index()] = UnitState::Closed;
            self.free.retain(|&free| free != unit);
        }
    }

    /// Gives up a unit that was opened and not erased. It may still hold data: its erase waits for
    /// those that replace them.
    fn put_back(&mut self, unit: ReclaimUnitId) {
        if self.table.valid[unit.index()] > 0 {
            self.table.state[unit.index()] = UnitState::Closed;
        } else {
            self.table.state[unit.index()] = UnitState::Free;
            self.free.push_back(unit);
        }
    }

    /// Empties reclaim units, those with the least data first, until as many are free as GC needs:
    /// units whose relocated data were lost are not free any more.
    /// Returns whether it did anything; all of it is then in full program units.
    pub fn restore_reserve<S: FlashSink>(&mut self, sink: &mut S) -> bool {
        let collections = self.counters.collections;
        self.in_each_group(|ftl| ftl.empty_units(sink));
        let has_relocated = self.counters.collections > collections;
        if has_relocated {
            (0..self.frontiers.len() as u16).for_each(|id| {
                self.pad(FrontierId(id), sink);
            });
        }
        has_relocated
    }

    fn empty_units<S: FlashSink>(&mut self, sink: &mut S) {
        while self.free.len() as u32 <= self.config.gc_low_watermark {
            if self.collection.is_running() {
                self.give_back_victim();
            }
            let closed = self.table.candidates(Among::All);
            let closed = closed.min_by_key(|unit| self.table.valid[unit.index()]);
            let Some(victim) = closed else { break };
            if self.table.valid[victim.index()] == self.table.alloc_units_per_reclaim_unit {
                break;
            }
            self.begin_victim(victim);
            while self.collection.is_running() {
                let frontier = self.frontier_with_room(victim);
                self.relocate_group_to(frontier, sink);
            }
        }
    }

    /// Where the next data of a victim go: where they belong, unless that needs a free unit and
    /// there is none.
    fn frontier_with_room(&self, victim: ReclaimUnitId) -> FrontierId {
        let owner = self.table.owner[victim.index()];
        let own = self.destination(owner);
        let room = |id: FrontierId| {
            let f = &self.frontiers[id.index()];
            f.end - f.next
        };
        if room(own) >= self.geometry.ppas_per_read_group || !self.free.is_empty() {
            return own;
        }
        let all = (0..self.frontiers.len() as u16).map(FrontierId);
        let all = all.filter(|&id| self.is_in_charge(id));
        all.max_by_key(|&id| room(id)).unwrap_or(own)
    }

    fn continue_unit(&mut self, open: &OpenUnit) {
        let Some(id) = self.frontiers.iter().position(|f| f.unit == open.unit && !f.needs_unit())
        else {
            return;
        };
        if open.begun == 0 && open.is_unerased {
            self.frontiers[id] = Frontier::CLOSED;
            return self.put_back(open.unit);
        }
        let full = self.full_units(open.unit);
        // On the fast-forward clock data are on flash before their program unit is full.
        let mut filling = self.geometry.unit_ppas(open.unit, full);
        let is_filled = filling.any(|ppa| self.holder(Ppa(ppa)).is_some());
        let begun = if is_filled { full + 1 } else { open.begun };
        let ppas = self.geometry.ppas_per_program_unit;
        let f = &mut self.frontiers[id];
        f.next = self.geometry.first_ppa(open.unit) + begun * ppas;
        (f.moved, f.since) = (0, u64::MAX);
        if f.next == f.end {
            self.table.close(open.unit, self.counters.host_slots);
        } else {
            f.fill_end = f.next + ppas;
        }
    }

    /// When the second of the free units was freed, by how long they have been free; `None` if it
    /// is erased. If the host takes another one, garbage collection needs these after a loss of
    /// power: one to begin with, and one if it has already begun.
    pub(crate) fn reserve_freed_at(&self) -> Option<u64> {
        let table = &self.table;
        let freed = |unit: &ReclaimUnitId| {
            (!table.erased[unit.index()]).then_some(table.freed_at[unit.index()])
        };
        let mut all = self.free.iter().map(freed);
        let mut oldest = all.next()?;
        let mut second = None;
        for freed_at in all {
            let later = oldest.max(freed_at);
            second = Some(second.map_or(later, |second: Option<u64>| second.min(later)));
            oldest = oldest.min(freed_at);
        }
        second.unwrap_or(oldest)
    }

    /// Programs what may replace data of a reclaim unit that was freed after `freed_at` others, so
    /// that it can be erased.
    pub(crate) fn pad_filled_since<S: FlashSink>(&mut self, freed_at: u64, sink: &mut S) {
        for id in 0..self.frontiers.len() {
            if self.frontiers[id].since <= freed_at {
                self.pad(FrontierId(id as u16), sink);
            }
        }
    }
}
