//! Parity across dies; and a die that does not answer any more: nothing is written there, and what
//! it held is relocated.

use writecliff_base::{Ppa, ReclaimUnitId};
use writecliff_flash::Geometry;

use crate::frontier::FrontierId;
use crate::groups::Group;
use crate::map::LiveSlots;
use crate::parts::Parts;
use crate::sink::FlashSink;
use crate::table::UnitState;

/// Stripes of program units across dies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DieParity {
    /// A die that is not written to any more.
    lost_die: Option<u32>,
    /// Whether dies are in stripes, or one is lost.
    is_in_use: bool,
    /// Parity units programmed.
    pub programs: u64,
}

impl DieParity {
    pub(crate) fn new(geometry: &Geometry) -> Self {
        Self { lost_die: None, is_in_use: geometry.stripes().is_some(), programs: 0 }
    }

    #[inline]
    pub(crate) fn is_in_use(&self) -> bool {
        self.is_in_use
    }

    pub(crate) fn lost_die(&self) -> Option<u32> {
        self.lost_die
    }

    pub(crate) fn lose_die(&mut self, die: u32) {
        (self.lost_die, self.is_in_use) = (Some(die), true);
    }

    /// Restores the state of a saved drive.
    pub(crate) fn restore(&mut self, lost_die: Option<u32>, programs: u64) {
        (self.lost_die, self.programs) = (lost_die, programs);
        self.is_in_use |= lost_die.is_some();
    }

    /// Counts the parity that is programmed behind a program unit.
    fn count_behind(&mut self, unit: u32, geometry: &Geometry) {
        if let Some(stripes) = geometry.stripes() {
            let (row, place) = geometry.row_and_place(unit);
            self.programs += u64::from(stripes.parity_behind(row, place, self.lost_die).is_some());
        }
    }
}

impl Group {
    /// Called when a program unit is programmed: parity may be, too, and the next unit be on the
    /// lost die.
    #[cold]
    pub(crate) fn programmed_in_stripe(
        &mut self,
        parts: &mut Parts,
        frontier: FrontierId,
        unit: u32,
    ) {
        parts.parity.count_behind(unit, &parts.geometry);
        self.skip_lost(parts, frontier);
    }

    /// Passes over empty program units on the lost die in all open units of the group.
    pub(crate) fn skip_all_lost(&mut self, parts: &mut Parts) {
        let open: Vec<_> = self.open_frontiers(parts).map(|(id, _)| id).collect();
        for id in open {
            self.skip_lost(parts, id);
        }
    }

    /// Passes over empty program units on the lost die.
    #[cold]
    pub(crate) fn skip_lost(&mut self, parts: &mut Parts, frontier: FrontierId) {
        let Some(die) = parts.parity.lost_die() else { return };
        let ppas = parts.geometry.ppas_per_program_unit;
        loop {
            let f = &mut parts.frontiers[frontier];
            if f.needs_unit() || f.filled(ppas) > 0 {
                return;
            }
            let unit = (f.next - parts.geometry.first_ppa(f.unit)) / ppas;
            if die != parts.geometry.die_of_unit(unit) {
                return;
            }
            self.idle -= i64::from(ppas);
            if f.finish_program_unit(ppas) {
                parts.table.close(f.unit, parts.counters.host_slots);
            }
        }
    }

    /// Relocates the data of a reclaim unit that are on a die. Returns how many slots.
    pub(crate) fn relocate_from_die<S: FlashSink>(
        &mut self,
        parts: &mut Parts,
        unit: ReclaimUnitId,
        die: u32,
        sink: &mut S,
    ) -> u64 {
        let group = parts.geometry.ppas_per_read_group;
        let mut moved = 0;
        for index in 0..parts.geometry.program_units_per_reclaim_unit {
            if parts.geometry.die_of_unit(index) != die {
                continue;
            }
            self.make_room(parts, sink);
            for from in parts.geometry.unit_ppas(unit, index).step_by(group as usize) {
                moved += self.relocate_from(parts, unit, from, sink);
            }
        }
        moved
    }

    /// Relocates the data of one read group. A victim's data are left to garbage collection.
    fn relocate_from<S: FlashSink>(
        &mut self,
        parts: &mut Parts,
        unit: ReclaimUnitId,
        first: u32,
        sink: &mut S,
    ) -> u64 {
        assert!(parts.packer.is_none(), "pieces have sizes");
        let holds = [UnitState::Closed, UnitState::Open];
        if !holds.contains(&parts.table.state[unit.index()]) {
            return 0;
        }
        let frontier = parts.destination(unit);
        let mut live = LiveSlots::new();
        parts.map.gather_live(first, parts.geometry.ppas_per_read_group, &mut live);
        let count = live.get().len() as u32;
        if count > 0 {
            sink.read_for(frontier, Ppa(first), count);
            self.relocate(parts, frontier, live.get(), sink);
            parts.table.invalidate(unit, count);
            parts.counters.gc_slots += u64::from(count);
        }
        count.into()
    }
}
