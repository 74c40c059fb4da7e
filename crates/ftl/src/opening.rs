//! Writing to a group's open units: allocating addresses, programming full program units, and
//! opening reclaim units.

use writecliff_base::{Lpn, Ppa, ReclaimUnitId};

use crate::frontier::Frontier;
use crate::groups::Group;
use crate::table::{Owner, UnitState};
use crate::{FlashSink, FrontierId, Parts, ProgramUnit};

const NO_PACKER: &str = "the drive reduces data";

impl Group {
    /// Allocates the next slot of a host frontier to `lpn`, for which the caller updates the map.
    #[inline(always)]
    pub(crate) fn allocate<S: FlashSink>(
        &mut self,
        parts: &mut Parts,
        frontier: FrontierId,
        lpn: Lpn,
        sink: &mut S,
    ) -> Ppa {
        let f = loop {
            let f = &mut parts.frontiers[frontier];
            if !f.needs_unit() {
                break f;
            }
            self.open_for_host(parts, frontier, sink);
        };
        debug_assert!(self.units.contains(&f.unit.0), "the host writes to this group");
        let slot = f.next;
        debug_assert!(slot < f.fill_end, "a full program unit stays open");
        f.next += 1;
        self.idle -= 1;
        parts.table.add_valid(f.unit, 1);
        debug_assert!(self.idle >= 0, "host data took the space of other units");
        let full = f.next == f.fill_end;
        parts.map.hold(slot, lpn);
        if full {
            self.program_filled(parts, frontier, parts.geometry.slots_per_program_unit, sink);
        }
        Ppa(slot)
    }

    /// Closes a reclaim unit that has less than `sectors` sectors left.
    pub(crate) fn close_if_short<S: FlashSink>(
        &mut self,
        parts: &mut Parts,
        frontier: FrontierId,
        sectors: u32,
        sink: &mut S,
    ) {
        let packer = parts.packer.as_ref().expect(NO_PACKER);
        if packer.is_short(frontier, &parts.frontiers[frontier], sectors) {
            self.close_packed(parts, frontier, sink);
        }
    }

    /// Closes a frontier's partly filled program unit.
    pub(crate) fn close_packed<S: FlashSink>(
        &mut self,
        parts: &mut Parts,
        frontier: FrontierId,
        sink: &mut S,
    ) {
        let (pieces, empty) = parts.packer.as_mut().expect(NO_PACKER).close(frontier);
        self.idle -= i64::from(empty);
        self.program_filled(parts, frontier, pieces, sink);
    }

    /// Appends a piece with reverse entry `holder` where it fits. The caller updates the map.
    pub(crate) fn append<S: FlashSink>(
        &mut self,
        parts: &mut Parts,
        frontier: FrontierId,
        holder: Lpn,
        sectors: u32,
        sink: &mut S,
    ) -> Ppa {
        debug_assert!(sectors > 0, "a piece without data");
        let packer = parts.packer.as_mut().expect(NO_PACKER);
        let f = &mut parts.frontiers[frontier];
        let (ppa, is_full) = packer.add(frontier, f, sectors, &parts.geometry);
        f.next = ppa + 1;
        self.idle -= i64::from(sectors);
        parts.table.add_valid(f.unit, sectors);
        parts.map.hold(ppa, holder);
        if is_full {
            self.close_packed(parts, frontier, sink);
        }
        Ppa(ppa)
    }

    /// Programs the program unit of a frontier, where `data_slots` slots hold data.
    pub(crate) fn program_filled<S: FlashSink>(
        &mut self,
        parts: &mut Parts,
        frontier: FrontierId,
        data_slots: u32,
        sink: &mut S,
    ) {
        let ppas = parts.geometry.ppas_per_program_unit;
        let f = &mut parts.frontiers[frontier];
        let reclaim_unit = f.unit;
        let unit = (f.fill_end - parts.geometry.first_ppa(reclaim_unit)) / ppas - 1;
        debug_assert!(unit < parts.geometry.program_units_per_reclaim_unit);
        debug_assert!(data_slots <= ppas, "a program unit holds more data than slots");
        debug_assert_eq!(parts.table.state[reclaim_unit.index()], UnitState::Open);
        let moved_slots = std::mem::take(&mut f.moved);
        let since = f.since.min(parts.counters.collections);
        debug_assert!(moved_slots <= data_slots, "relocated slots hold data");
        f.since = u64::MAX;
        if f.finish_program_unit(ppas) {
            parts.table.close(reclaim_unit, parts.counters.host_slots);
        }
        if let Some(bad) = &mut parts.bad_blocks
            && !bad.due.is_empty()
        {
            for unit in bad.program(reclaim_unit, unit, &mut self.free, &parts.wear, sink) {
                self.drop_unit(parts, unit);
            }
        }
        parts.counters.programs += 1;
        parts.counters.programmed_slots += u64::from(parts.geometry.slots_per_program_unit);
        sink.program(frontier, ProgramUnit { reclaim_unit, unit, data_slots, moved_slots, since });
        if parts.parity.is_in_use {
            parts.parity.count_behind(unit, &parts.geometry);
            self.skip_lost(parts, frontier);
        }
    }

    /// Takes a unit out of use, which must already be removed from the list of free units.
    fn drop_unit(&mut self, parts: &mut Parts, unit: ReclaimUnitId) {
        debug_assert!(!self.free.contains(&unit));
        parts.table.drop_unit(unit);
        self.idle -= i64::from(parts.table.unit_size);
        assert!(self.idle >= 0, "the dropped unit was not idle");
    }

    pub(crate) fn pad<S: FlashSink>(
        &mut self,
        parts: &mut Parts,
        frontier: FrontierId,
        sink: &mut S,
    ) -> bool {
        if let Some(packer) = &parts.packer {
            let is_filled = packer.packs[frontier.index()].used > 0;
            if is_filled {
                self.close_packed(parts, frontier, sink);
            }
            return is_filled;
        }
        let slots = parts.geometry.slots_per_program_unit;
        let filled = parts.frontiers[frontier].filled(slots);
        if filled == 0 {
            return false;
        }
        debug_assert!(filled < slots, "a full program unit stays open");
        let padding = slots - filled;
        parts.counters.padding_slots += u64::from(padding);
        self.idle -= i64::from(padding);
        debug_assert!(self.idle >= 0, "padding took the space of other units");
        self.program_filled(parts, frontier, filled, sink);
        true
    }

    pub(crate) fn abandon<S: FlashSink>(
        &mut self,
        parts: &mut Parts,
        frontier: FrontierId,
        sink: &mut S,
    ) -> u32 {
        // A piece may continue in the next program unit, which is then padded as well.
        while self.pad(parts, frontier, sink) {}
        let f = parts.frontiers[frontier];
        if f.needs_unit() {
            return 0;
        }
        let rest = parts.unwritten(frontier, &f);
        parts.table.close(f.unit, parts.counters.host_slots);
        parts.frontiers[frontier] = Frontier::CLOSED;
        self.idle -= rest;
        debug_assert!(rest > 0 && self.idle >= 0, "the abandoned rest was not idle");
        self.update_idle_target(parts);
        parts.config.slots_of(rest as u32)
    }

    /// Opens the next unit of a host frontier, after reserving space for GC.
    #[cold]
    pub(crate) fn open_for_host<S: FlashSink>(
        &mut self,
        parts: &mut Parts,
        frontier: FrontierId,
        sink: &mut S,
    ) {
        self.make_room(parts, sink);
        // Making room may already have opened the unit if GC relocates data to the host's unit.
        if parts.frontiers[frontier].needs_unit() {
            self.open(parts, frontier, sink);
        }
    }

    #[cold]
    pub(crate) fn open<S: FlashSink>(&mut self, parts: &mut Parts, id: FrontierId, sink: &mut S) {
        debug_assert!(parts.frontiers[id].needs_unit() && self.idle >= 0);
        let is_of_host = parts.frontiers.is_of_host(id);
        let is_cold = !is_of_host && self.collection.for_wear;
        let unit = loop {
            let unit = parts.config.wear.take(&mut self.free, &parts.wear, is_cold);
            // `FtlConfig::check` ensures spare space for every frontier, and `make_room` maintains
            // the reserve.
            let unit = unit.expect("a free reclaim unit is always reserved for garbage collection");
            assert!(self.units.contains(&unit.0), "a group opens its own units");
            if self.make_ready(parts, unit, id, sink) {
                break unit;
            }
        };
        let stream = parts.frontiers.stream_of(id);
        if let Some(spare) = parts.spare.as_mut().filter(|_| is_of_host) {
            spare.host_opened(stream);
        }
        parts.table.open(unit, Owner { stream, relocated: !is_of_host });
        parts.frontiers[id] = Frontier::at_start(unit, &parts.geometry);
        debug_assert!(parts.parity.lost_die.is_some() || !parts.frontiers[id].needs_unit());
        self.skip_lost(parts, id);
        self.update_idle_target(parts);
    }

    /// Erases a free unit before it is opened. Returns `false` if it has failed and is dropped.
    fn make_ready<S: FlashSink>(
        &mut self,
        parts: &mut Parts,
        unit: ReclaimUnitId,
        frontier: FrontierId,
        sink: &mut S,
    ) -> bool {
        let index = unit.index();
        assert_eq!(parts.table.state[index], UnitState::Free);
        assert_eq!(parts.table.valid[index], 0, "a unit with valid data must not be erased");
        let is_erased = parts.table.erased[index];
        // Before the erase, newer copies of the data in this unit and in the reserve must be
        // programmed.
        let mut freed_at = (!is_erased).then_some(parts.table.freed_at[index]);
        if parts.config.volatile_buffer {
            if parts.frontiers.is_of_host(frontier) {
                freed_at = freed_at.max(self.reserve_freed_at(parts));
            }
            if let Some(freed_at) = freed_at {
                self.pad_filled_since(parts, freed_at, sink);
            }
        }
        if !is_erased {
            parts.wear.record_erase(unit);
        }
        if let Some(bad) = &mut parts.bad_blocks
            && !bad.open(unit, parts.wear.of(unit), self.free.len(), sink)
        {
            self.drop_unit(parts, unit);
            return false;
        }
        match freed_at {
            Some(freed_at) if is_erased => sink.hold(frontier, unit, freed_at),
            Some(freed_at) => sink.erase(frontier, unit, freed_at),
            None => {}
        }
        true
    }

    /// Returns `freed_at` of the second-oldest free unit; `None` if that unit is erased. If
    /// the host takes another unit, garbage collection needs the first two free units after a power
    /// loss: one unit to start with, and one if it has already started.
    fn reserve_freed_at(&self, parts: &Parts) -> Option<u64> {
        let table = &parts.table;
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

    /// Programs all data that may replace data of a unit freed after `freed_at` others.
    fn pad_filled_since<S: FlashSink>(&mut self, parts: &mut Parts, freed_at: u64, sink: &mut S) {
        for id in parts.frontiers.ids() {
            if parts.frontiers[id].since <= freed_at {
                debug_assert!(self.units.contains(&parts.frontiers[id].unit.0));
                self.pad(parts, id, sink);
            }
        }
    }

    /// Skips empty program units on the lost die in all open units of the group.
    pub(crate) fn skip_all_lost(&mut self, parts: &mut Parts) {
        let open: Vec<_> = self.open_frontiers(parts).map(|(id, _)| id).collect();
        for id in open {
            self.skip_lost(parts, id);
        }
    }

    /// Skips empty program units on the lost die.
    #[cold]
    fn skip_lost(&mut self, parts: &mut Parts, frontier: FrontierId) {
        let Some(die) = parts.parity.lost_die else { return };
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
            debug_assert!(self.idle >= 0, "the lost program unit was not idle");
            if f.finish_program_unit(ppas) {
                parts.table.close(f.unit, parts.counters.host_slots);
            }
        }
    }
}
