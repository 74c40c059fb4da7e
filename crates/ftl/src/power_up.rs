//! FTL after a power loss: the mapping as recorded in flash, journal and checkpoint.
//!
//! A drive finds the newest copy of a logical page by the page and sequence numbers that were
//! programmed with the data. The model achieves the same result by undoing changes that were not
//! programmed, newest first. The previous copy is still on flash because a reclaim unit is not
//! erased before the data that replace its contents are programmed (`UnitTable::freed_at`).

use writecliff_base::{Lpn, Ppa, ReclaimUnitId};

use crate::frontier::Frontier;
use crate::table::UnitState;
use crate::{FlashSink, Ftl, Parts};

/// A mapping change that is not recorded on flash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unwritten {
    /// Logical page whose mapping changed.
    pub lpn: Lpn,
    /// New data address; `NONE` for a deallocation.
    pub at: Ppa,
    /// Previous data address; `NONE` if the page had none.
    pub before: Ppa,
    /// `true` if the drive relocated the data, so that the data are not lost with the change.
    pub is_relocation: bool,
}

/// Numbers of undone changes, excluding those already superseded by newer data on flash.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Undone {
    /// Slots written by the host.
    pub writes: u64,
    /// Slots relocated by the drive, whose data are at their previous addresses again.
    pub relocations: u64,
    /// Slots whose data the host had deallocated.
    pub trims: u64,
}

impl Undone {
    /// Counts an undone change by type.
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

/// Progress of the blocks in an open reclaim unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenUnit {
    /// Reclaim unit that was open.
    pub unit: ReclaimUnitId,
    /// Number of program units up to the last one whose programming was started.
    pub begun: u32,
    /// `true` if an erase has not finished on some die.
    pub is_unerased: bool,
}

impl Ftl {
    /// Starts to rebuild the state from the data on flash. Next, call [`Self::return_to`] for each
    /// change that is not on flash, newest first, and then [`Self::power_up`].
    pub fn power_off(&mut self) {
        assert!(self.parts.packer.is_none(), "pieces have sizes");
        for group in self.groups.all.iter_mut().filter(|group| group.collection.is_running()) {
            group.give_back_victim(&mut self.parts);
        }
        assert!(self.groups.victims().next().is_none(), "no group has a victim");
    }

    /// Continues open reclaim units after the last program unit whose programming was started. A
    /// unit whose erase was still pending returns to its state before it was opened. The unit may
    /// still hold data because the erase waits for the data that replace them.
    pub fn power_up(&mut self, open: &[OpenUnit]) {
        for open in open {
            if self.parts.continue_unit(open) {
                continue;
            }
            let (table, unit) = (&mut self.parts.table, open.unit);
            assert_eq!(table.state[unit.index()], UnitState::Open, "only open units are given up");
            table.state[unit.index()] = UnitState::Closed;
            if table.valid[unit.index()] == 0 {
                table.state[unit.index()] = UnitState::Free;
                self.groups.of_unit(unit).free.push_back(unit);
            }
        }
        for group in &mut self.groups.all {
            assert!(!group.collection.is_running(), "see power_off");
            group.idle = group.count_idle(&self.parts);
            assert!(group.idle >= 0, "open units are written beyond their end");
            group.update_idle_target(&self.parts);
        }
    }

    /// Maps a logical page to its previous address; `NONE` if it had none in this flash.
    pub fn return_to(&mut self, lpn: Lpn, before: Ppa) {
        let Parts { map, table, geometry, .. } = &mut self.parts;
        debug_assert!(map.pieces.is_none(), "power cuts do not undo reduced data");
        let lost = map.return_to(lpn, before);
        if !lost.is_none() {
            table.invalidate(geometry.reclaim_unit_of(lost), 1);
        }
        if before.is_none() {
            return;
        }
        let unit = geometry.reclaim_unit_of(before);
        table.add_valid(unit, 1);
        debug_assert!(!matches!(table.state[unit.index()], UnitState::Victim | UnitState::Dropped));
        if table.state[unit.index()] == UnitState::Free {
            table.state[unit.index()] = UnitState::Closed;
            self.groups.of_unit(unit).free.retain(|&free| free != unit);
        }
    }

    /// Empties reclaim units, those with the least data first, until as many are free as GC needs:
    /// units whose relocated data were lost are not. Returns `true` if it padded all units.
    pub fn restore_reserve<S: FlashSink>(&mut self, sink: &mut S) -> bool {
        let collections = self.parts.counters.collections;
        for group in &mut self.groups.all {
            group.empty_units(&mut self.parts, sink);
        }
        let has_relocated = self.parts.counters.collections > collections;
        if has_relocated {
            for id in self.parts.frontiers.ids() {
                self.pad(id, sink);
            }
        }
        has_relocated
    }
}

impl Parts {
    /// Continues an open reclaim unit. Returns `false` if it was not erased and is given up.
    fn continue_unit(&mut self, open: &OpenUnit) -> bool {
        let Some(id) = self.frontiers.of_unit(open.unit) else { return true };
        if open.begun == 0 && open.is_unerased {
            self.frontiers[id] = Frontier::CLOSED;
            return false;
        }
        let full = self.full_units(open.unit);
        // In fast-forward, data count as on flash before their program unit is full.
        assert!(open.begun <= full, "only full program units are programmed");
        let mut filling = self.geometry.unit_ppas(open.unit, full);
        let is_filled = filling.any(|ppa| self.map.holder(Ppa(ppa)).is_some());
        let begun = if is_filled { full + 1 } else { open.begun };
        let ppas = self.geometry.ppas_per_program_unit;
        let f = &mut self.frontiers[id];
        f.next = self.geometry.first_ppa(open.unit) + begun * ppas;
        (f.moved, f.since) = (0, u64::MAX);
        assert!(f.next <= f.end, "the unit was written beyond its end");
        if f.next == f.end {
            self.table.close(open.unit, self.counters.host_slots);
        } else {
            f.fill_end = f.next + ppas;
        }
        true
    }
}
