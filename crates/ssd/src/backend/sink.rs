//! Flash operations of the FTL and its front.

use writecliff_base::random::nth;
use writecliff_base::{Lpn, Nanos, Ppa, ReclaimUnitId};
use writecliff_flash::FlashLocation;
use writecliff_ftl::{FlashSink, FrontierId, ProgramUnit};

use super::Backend;
use super::held_erases::{Awaits, HeldErase};
use crate::front::{FrontFlash, PlacementSink};
use crate::mechanisms::each;
use crate::{FillId, FlashOperation, ReadFor, Recorder};

impl<R: Recorder> Backend<R> {
    /// Starts the held erases whose last awaited program was `programmed`.
    #[cold]
    pub(super) fn erase_held(&mut self, programmed: FillId) {
        for HeldErase { unit, is_erased, fill, .. } in
            self.held_erases.take_ready(&self.fills, programmed)
        {
            if !is_erased {
                self.recorder.released(self.front.ppas_of_erase(&self.geometry, unit));
                self.erase_now(unit);
            }
            self.waited(fill);
        }
    }

    /// Erases a unit, or a block of the front, once the awaited programs have ended.
    fn erase_after(&mut self, frontier: FrontierId, unit: ReclaimUnitId, awaits: Awaits) {
        self.recorder.journaled();
        if self.held_erases.hold(&mut self.fills, frontier, (unit, false), awaits) {
            self.recorder.held(self.front.ppas_of_erase(&self.geometry, unit));
        } else {
            self.erase_now(unit);
        }
    }

    fn erase_now(&mut self, unit: ReclaimUnitId) {
        for die in self.geometry.dies_of(unit) {
            // If a block is a portion of a whole block, one of every `erase_portions` erases takes
            // the whole erase time and the other erases take no time.
            let portions = u64::from(self.times.flash.erase_portions);
            let draw = || nth(self.busy.program, u64::from(unit.0) << 32 | u64::from(die));
            if portions == 1 || draw() % portions == 0 {
                self.work(die as usize, FlashOperation::Erase { unit });
            } else {
                self.recorder.erased(unit, die);
            }
        }
    }
}

impl<R: Recorder> FlashSink for Backend<R> {
    fn read_for(&mut self, frontier: FrontierId, from: Ppa, slots: u32) {
        debug_assert!((1..=u32::from(u8::MAX)).contains(&slots), "a read of one page");
        let fill = self.fills.current(frontier);
        let location = self.geometry.locate(from);
        if self.mechanisms.die_parity.is_some() {
            each!(self, [die_parity], m => m.read_for_fill(self, fill, &location, slots));
            return;
        }
        self.fills.get(fill).reads_pending += 1;
        let ((sense, _), purpose) = (self.sense(&location, slots), ReadFor::Fill { fill });
        let operation = FlashOperation::Read { sense, slots: slots as u8, purpose };
        self.work(location.die as usize, operation);
    }

    #[inline]
    fn program(&mut self, frontier: FrontierId, unit: ProgramUnit) {
        debug_assert!(unit.unit < self.geometry.program_units_per_reclaim_unit);
        debug_assert!(unit.moved_slots <= unit.data_slots, "see `Group::program_filled`");
        debug_assert!(unit.data_slots <= self.geometry.ppas_per_program_unit, "more than a unit");
        if unit.unit == 0
            && let Some(ecc) = &mut self.mechanisms.ecc
        {
            ecc.written_at[unit.reclaim_unit.index()] = self.now;
        }
        if let Some(fill) = self.fills.filled(frontier, unit) {
            Self::program(self, fill);
        }
    }

    fn erase(&mut self, frontier: FrontierId, unit: ReclaimUnitId, freed_at: u64) {
        debug_assert!(unit.0 < self.geometry.reclaim_units, "no reclaim unit of the flash");
        if let Some(ecc) = &mut self.mechanisms.ecc {
            ecc.erased(unit);
        }
        self.erase_after(frontier, unit, Awaits::FreedAt(freed_at));
    }

    fn hold(&mut self, frontier: FrontierId, unit: ReclaimUnitId, freed_at: u64) {
        let awaits = Awaits::FreedAt(freed_at);
        self.held_erases.hold(&mut self.fills, frontier, (unit, true), awaits);
    }

    #[cold]
    fn block_replaced(&mut self, die: u32, rows: u32) {
        let flash = &self.times.flash;
        let moved = u64::from(rows) * (flash.read_time(0) + flash.program_mean()).0;
        let time = Nanos((flash.erase.0 + moved).min(u64::from(u32::MAX)));
        self.work(die as usize, FlashOperation::upkeep(time, true));
    }

    #[inline]
    fn placed(&mut self, lpn: Lpn, at: Ppa, before: Ppa) {
        self.recorder.placed(lpn, at, before);
    }

    #[inline]
    fn moved(&mut self, lpn: Lpn, at: Ppa, before: Ppa) {
        self.recorder.moved(lpn, at, before);
    }
}

impl<R: Recorder> PlacementSink for Backend<R> {
    const IS_TIMED: bool = true;

    #[inline]
    fn awaits(&self) -> bool {
        self.awaiting.is_some()
    }

    fn await_unit(&mut self, frontier: FrontierId) {
        let Some(number) = self.awaiting else { return };
        let fill = self.fills.current(frontier);
        let waiting = &mut self.fills.get(fill).waiting;
        if waiting.last() != Some(&number) {
            waiting.push(number);
            self.awaited += 1;
        }
    }

    fn is_in_flight(&self, location: &FlashLocation) -> bool {
        self.fills.is_in_flight(location.reclaim_unit.index(), location.unit)
    }

    fn read_slc_for(&mut self, frontier: FrontierId, unit: u32, slots: u32) {
        debug_assert!((1..=u32::from(u8::MAX)).contains(&slots), "a read of one page");
        if self.front.is_in_flight(&self.fills, unit) {
            return;
        }
        let fill = self.fills.current(frontier);
        self.fills.get(fill).reads_pending += 1;
        let read = FrontFlash::read(&self.geometry, unit, slots, ReadFor::Fill { fill });
        self.work(read.0, read.1);
    }

    fn program_slc(&mut self, unit: u32, data_slots: u32, since: u64) {
        debug_assert!((1..=self.geometry.slots_per_read_group).contains(&data_slots));
        let FrontFlash { frontier, unit: reclaim_unit, .. } = self.front;
        let full = ProgramUnit { reclaim_unit, unit, data_slots, moved_slots: 0, since };
        if let Some(fill) = self.fills.filled(frontier, full) {
            Self::program(self, fill);
        }
    }

    fn erase_slc(&mut self, block: u32) {
        let unit = self.front.block(block);
        debug_assert!(self.front.has_block(unit), "no block of the log");
        let awaits = Awaits::Fills(self.fills.outstanding().collect());
        self.erase_after(self.front.frontier, unit, awaits);
    }
}
