//! FTL response to a failed block.
//!
//! | failed operation | spare block at the position | response |
//! |---|---|---|
//! | erase | yes | The spare block replaces the failed block before the unit is opened. |
//! | erase | no | The unit is dissolved, and another unit is opened. |
//! | program | yes | The failed block's data move to the spare block, which repeats the program. |
//! | program | no | A free unit is dissolved to provide a spare block. |
//!
//! If garbage collection needs the unit that would have to be dissolved, the block stays in use
//! until a unit can be dissolved. A read-only drive also keeps the block in use.

use std::collections::VecDeque;

use writecliff_base::{ReclaimUnitId, ensure};
use writecliff_flash::Wear;

use super::{BadBlocks, Due, uniform};
use crate::FlashSink;

/// Free units left when a unit is dissolved: one to open, and one for a victim's data.
const FREE_MIN: usize = 2;

impl BadBlocks {
    /// Returns `true` if one more unit can be dissolved; otherwise, the drive becomes read-only.
    fn may_drop(&mut self) -> bool {
        let may = self.usable_units() > self.least_units;
        self.counts.read_only |= u64::from(!may);
        may
    }

    /// Returns the number of the next failure.
    fn number(&self) -> u64 {
        let counts = &self.counts;
        counts.erase_failures + counts.program_failures + self.due.len() as u64
    }

    fn is_found_by_erase(&self) -> bool {
        uniform(self.failures_salt, 2 * self.number()) < self.config.found_by_erase
    }

    fn failing_program(&self, position: u32) -> u32 {
        let rows = self.programs_per_unit / self.dies;
        let row = (uniform(self.failures_salt, 2 * self.number() + 1) * f64::from(rows)) as u32;
        debug_assert!(row < rows, "the failing program is beyond the unit");
        row * self.dies + position / self.planes
    }

    /// Handles failing blocks of a unit that is opened, with `free` others; `false`: dissolved.
    #[cold]
    pub(crate) fn open<S: FlashSink>(
        &mut self,
        unit: ReclaimUnitId,
        erases: u32,
        free: usize,
        sink: &mut S,
    ) -> bool {
        if self.first[unit.index()] > erases {
            return true;
        }
        for position in 0..self.positions {
            if !self.has_failed(unit, position, erases) {
                continue;
            }
            if self.config.replaces && !self.is_found_by_erase() {
                let program = self.failing_program(position);
                self.due.push(Due { unit, program, position });
                continue;
            }
            if self.config.replaces && self.take_spare(unit, position, erases) {
                self.counts.erase_failures += 1;
                sink.block_replaced(position / self.planes, 0);
            } else if free >= FREE_MIN && self.may_drop() {
                self.due.retain(|due| due.unit != unit);
                self.dissolve(unit, erases);
                debug_assert!(self.usable_units() >= self.least_units, "see may_drop");
                return false;
            }
        }
        self.find_first(unit);
        true
    }

    /// Called before each program while failures are pending: replaces the block if this program
    /// fails. Dissolves free units for spare blocks if necessary, and returns them.
    #[cold]
    pub(crate) fn program<S: FlashSink>(
        &mut self,
        unit: ReclaimUnitId,
        program: u32,
        free: &mut VecDeque<ReclaimUnitId>,
        wear: &Wear,
        sink: &mut S,
    ) -> Vec<ReclaimUnitId> {
        let mut dissolved = Vec::new();
        debug_assert!(program < self.programs_per_unit);
        while let Some(index) =
            self.due.iter().position(|due| due.unit == unit && due.program == program)
        {
            let position = self.due.swap_remove(index).position;
            while !self.take_spare(unit, position, wear.of(unit)) {
                if free.len() <= FREE_MIN || !self.may_drop() {
                    return dissolved;
                }
                let Some(donor) = free.pop_back() else { return dissolved };
                self.dissolve(donor, wear.of(donor));
                debug_assert!(self.usable_units() >= self.least_units, "see may_drop");
                dissolved.push(donor);
            }
            self.counts.program_failures += 1;
            let rows = program / self.dies;
            self.counts.moved_slots += u64::from(rows * self.slots_per_program_unit / self.planes);
            sink.block_replaced(position / self.planes, rows);
            self.find_first(unit);
        }
        dissolved
    }

    /// Checks the number of dropped units. Every block of a dropped unit must be bad, spare or in
    /// use elsewhere; the position with the most bad blocks must account for all dropped units.
    pub(crate) fn check(&self, dropped: u64) -> Result<(), String> {
        let counts = &self.counts;
        let counted = counts.dropped_units;
        ensure!(dropped == counted, "{dropped} units are dropped, but the counter shows {counted}");
        if !self.config.replaces {
            return Ok(());
        }
        let bad = counts.factory + counts.erase_failures + counts.program_failures;
        let spare: u64 = self.spare.iter().map(|spare| spare.len() as u64).sum();
        let given = dropped * u64::from(self.positions);
        ensure!(given == bad + spare, "{given} blocks released, {bad} are bad and {spare} spare");
        let is_spent = self.spare.iter().any(Vec::is_empty);
        ensure!(dropped == 0 || is_spent, "a unit was dropped although all positions had spares");
        Ok(())
    }
}
