//! Flash operations of the FTL, and erases that wait for programs.

use writecliff_base::codec::CodecError;
use writecliff_base::words::{WordReader, WordWriter};
use writecliff_base::{Lpn, Ppa, ReclaimUnitId};
use writecliff_flash::geometry::FlashLocation;
use writecliff_ftl::frontier::FrontierId;
use writecliff_ftl::{FlashSink, ProgramUnit};

use super::Backend;
use crate::attribution::Recorder;
use crate::die::{FlashOperation, ReadFor};
use crate::fill::{FillId, Fills};
use crate::front::PlacementSink;

/// An erase that waits until the data that replace those of the reclaim unit, or of a block of the
/// front's own flash, are on flash; or programs that do.
#[derive(Clone, Debug)]
pub(crate) struct HeldErase {
    pub unit: ReclaimUnitId,
    /// `true` if the unit is erased, so that only the programs wait.
    pub is_erased: bool,
    pub awaits: Awaits,
    /// The first program unit there, which waits for the erase.
    pub fill: FillId,
}

/// The programs that an erase waits for.
#[derive(Clone, Debug)]
pub(crate) enum Awaits {
    /// Programs that may replace data of a reclaim unit freed after this number of others.
    FreedAt(u64),
    /// Programs of these fills.
    Fills(Vec<FillId>),
}

impl Awaits {
    /// Returns `true` if `programmed`, which is now on flash, was the last awaited program.
    fn is_over(&mut self, fills: &Fills, programmed: FillId) -> bool {
        match self {
            Self::FreedAt(freed_at) => !fills.awaited(*freed_at),
            Self::Fills(awaited) => {
                awaited.retain(|&fill| fill != programmed);
                awaited.is_empty()
            }
        }
    }
}

impl HeldErase {
    pub(crate) fn save(&self, out: &mut WordWriter) {
        out.put(u64::from(self.unit.0) << 32 | u64::from(self.fill));
        out.put(self.is_erased);
        match &self.awaits {
            Awaits::FreedAt(freed_at) => out.put(*freed_at),
            Awaits::Fills(fills) => out.list(fills.iter(), |out, &fill| out.put(fill)),
        }
    }

    /// Restores an erase; erases of units from `front_unit` on wait for fills.
    pub(crate) fn restore(
        input: &mut WordReader<'_>,
        front_unit: ReclaimUnitId,
    ) -> Result<Self, CodecError> {
        let word = input.get()?;
        let (unit, fill) = (ReclaimUnitId((word >> 32) as u32), word as FillId);
        let is_erased = input.flag()?;
        let awaits = if unit.0 < front_unit.0 {
            Awaits::FreedAt(input.get()?)
        } else {
            Awaits::Fills(input.list(WordReader::narrow)?)
        };
        Ok(Self { unit, is_erased, awaits, fill })
    }
}

impl<R: Recorder> Backend<R> {
    #[inline]
    pub fn holds_erase(&self) -> bool {
        !self.held_erases.is_empty()
    }

    /// Begins the erases that wait for nothing any more.
    #[cold]
    pub(crate) fn erase_held(&mut self, programmed: FillId) {
        let fills = &self.fills;
        let ready = self.held_erases.extract_if(.., |held| held.awaits.is_over(fills, programmed));
        for HeldErase { unit, is_erased, fill, .. } in ready.collect::<Vec<_>>() {
            if !is_erased {
                self.recorder.released(self.ppas_of_erase(unit));
                self.erase_now(unit);
            }
            self.waited(fill);
        }
    }

    pub(crate) fn erase_now(&mut self, unit: ReclaimUnitId) {
        for die in self.geometry.dies_of(unit) {
            self.work(die as usize, FlashOperation::Erase { unit });
        }
    }

    /// Makes a frontier's programs wait for the programs that may replace data of a reclaim unit
    /// freed after `freed_at` others. Returns `false` if no such program is outstanding.
    fn hold_programs(
        &mut self,
        frontier: FrontierId,
        unit: ReclaimUnitId,
        freed_at: u64,
        is_erased: bool,
    ) -> bool {
        let holds = self.is_volatile && self.fills.awaited(freed_at);
        if holds {
            let fill = self.fills.current(frontier);
            self.fills.get(fill).reads_pending += 1;
            let awaits = Awaits::FreedAt(freed_at);
            self.held_erases.push(HeldErase { unit, is_erased, awaits, fill });
        }
        holds
    }
}

impl<R: Recorder> FlashSink for Backend<R> {
    fn read_for(&mut self, frontier: FrontierId, from: Ppa, slots: u32) {
        if self.die_parity.is_some() {
            return self.fill_read_protected(frontier, from, slots);
        }
        let fill = self.fills.current(frontier);
        self.fills.get(fill).reads_pending += 1;
        let location = self.geometry.locate(from);
        let (sense, purpose) = (self.sense(&location, slots), ReadFor::Fill { fill });
        let operation = FlashOperation::Read { sense, slots: slots as u8, purpose };
        self.work(location.die as usize, operation);
    }

    #[inline]
    fn program(&mut self, frontier: FrontierId, unit: ProgramUnit) {
        if unit.unit == 0
            && let Some(ecc) = &mut self.ecc
        {
            ecc.first_written(unit.reclaim_unit, self.now);
        }
        if let Some(fill) = self.fills.filled(frontier, unit) {
            Self::program(self, fill);
        }
    }

    fn erase(&mut self, frontier: FrontierId, unit: ReclaimUnitId, freed_at: u64) {
        if let Some(ecc) = &mut self.ecc {
            ecc.erased(unit);
        }
        self.recorder.journaled();
        if self.hold_programs(frontier, unit, freed_at, false) {
            self.recorder.held(self.geometry.ppas(unit));
        } else {
            self.erase_now(unit);
        }
    }

    fn hold(&mut self, frontier: FrontierId, unit: ReclaimUnitId, freed_at: u64) {
        self.hold_programs(frontier, unit, freed_at, true);
    }

    #[cold]
    fn block_replaced(&mut self, die: u32, rows: u32) {
        let moved = u64::from(rows) * (self.timing.read_time(0) + self.timing.program_mean()).0;
        let time = (self.timing.erase.0 + moved).min(u64::from(u32::MAX));
        self.upkeep(die, time as u32, true);
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
}
