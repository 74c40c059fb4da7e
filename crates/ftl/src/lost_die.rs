//! Parity across dies; and a die that does not answer any more: nothing is written there, and what
//! it held is relocated.

use std::mem::MaybeUninit;

use writecliff_base::{Lpn, Ppa, ReclaimUnitId};

use crate::frontier::FrontierId;
use crate::ftl::Ftl;
use crate::garbage_collection::{GROUP_MAX, LiveSlots};
use crate::sink::FlashSink;
use crate::table::UnitState;

impl Ftl {
    /// From now on program units on this die stay unwritten.
    ///
    /// # Errors
    /// Fails if what is left does not hold the user capacity and what garbage collection needs.
    pub fn lose_die(&mut self, die: u32) -> Result<(), String> {
        let units = self.geometry.program_units_per_reclaim_unit;
        let lost = (0..units).filter(|&unit| self.geometry.die_of_unit(unit) == die).count() as u32;
        let left = self.config.with_fewer_slots(
            &self.geometry,
            self.geometry.slots_per_program_unit * (units - lost),
        );
        left.map_err(|e| format!("without die {die}, {e}"))?;
        (self.lost_die, self.has_stripes) = (Some(die), true);
        for id in 0..self.frontiers.len() {
            if !self.frontiers[id].needs_unit() {
                self.skip_lost(FrontierId(id as u16));
            }
        }
        Ok(())
    }

    /// Called when a program unit is programmed: parity may be, too, and the next unit be on the
    /// lost die.
    #[cold]
    pub(crate) fn programmed_in_stripe(&mut self, frontier: FrontierId, unit: u32) {
        if let Some(stripes) = self.geometry.stripes() {
            let (row, place) = self.geometry.row_and_place(unit);
            let parity = stripes.parity_behind(row, place, self.lost_die);
            self.parity_programs += u64::from(parity.is_some());
        }
        if self.lost_die.is_some() {
            self.skip_lost(frontier);
        }
    }

    /// Parity units programmed since the drive was new.
    pub fn parity_programs(&self) -> u64 {
        self.parity_programs
    }

    /// Restores what a saved drive had lost and programmed.
    pub fn restore_parity(&mut self, lost_die: Option<u32>, parity_programs: u64) {
        (self.lost_die, self.parity_programs) = (lost_die, parity_programs);
        self.has_stripes |= lost_die.is_some();
    }

    /// Passes over empty program units on the lost die.
    #[cold]
    pub(crate) fn skip_lost(&mut self, frontier: FrontierId) {
        let ppas = self.geometry.ppas_per_program_unit;
        loop {
            let f = &mut self.frontiers[frontier.index()];
            if f.needs_unit() || f.filled(ppas) > 0 {
                return;
            }
            let unit = (f.next - self.geometry.first_ppa(f.unit)) / ppas;
            if self.lost_die != Some(self.geometry.die_of_unit(unit)) {
                return;
            }
            f.next = f.fill_end;
            self.idle -= i64::from(ppas);
            if f.next == f.end {
                self.table.close(f.unit, self.counters.host_slots);
            } else {
                f.fill_end += ppas;
            }
        }
    }

    /// Relocates the data of a reclaim unit that are on a die. Returns how many slots.
    pub fn relocate_from_die<S: FlashSink>(
        &mut self,
        unit: ReclaimUnitId,
        die: u32,
        sink: &mut S,
    ) -> u64 {
        let (ppas, group) =
            (self.geometry.ppas_per_program_unit, self.geometry.ppas_per_read_group);
        let mut moved = 0;
        for index in 0..self.geometry.program_units_per_reclaim_unit {
            if self.geometry.die_of_unit(index) != die {
                continue;
            }
            self.make_room(sink);
            let first = self.geometry.first_ppa(unit) + index * ppas;
            for from in (first..first + ppas).step_by(group as usize) {
                moved += self.relocate_from(unit, from, sink);
            }
        }
        moved
    }

    /// Relocates the data of one read group. A victim's data are left to garbage collection.
    fn relocate_from<S: FlashSink>(
        &mut self,
        unit: ReclaimUnitId,
        first: u32,
        sink: &mut S,
    ) -> u64 {
        let holds = [UnitState::Closed, UnitState::Open];
        if !holds.contains(&self.table.state[unit.index()]) {
            return 0;
        }
        let owner = self.table.owner[unit.index()];
        let frontier = self.destination(owner);
        let mut live: LiveSlots = [const { MaybeUninit::uninit() }; GROUP_MAX];
        let count = self.live_slots(first, self.geometry.ppas_per_read_group, &mut live);
        if count == 0 {
            return 0;
        }
        // SAFETY: `live_slots` has written the first `count` elements.
        let live = unsafe { std::slice::from_raw_parts(live.as_ptr().cast::<Lpn>(), count) };
        sink.read_for(frontier, Ppa(first), count as u32);
        self.relocate(frontier, live, sink);
        self.table.valid[unit.index()] -= count as u32;
        self.counters.gc_slots += count as u64;
        count as u64
    }
}
