//! What the FTL does about a block that fails.
//!
//! | found by | a spare block of its position | what happens |
//! |---|---|---|
//! | erase | yes | replaces the block before the unit is opened |
//! | erase | no | the unit is dissolved, and another one opened |
//! | program | yes | the block's data move to it, the program is repeated there |
//! | program | no | a free unit is dissolved, which gives one |
//!
//! Where a unit would have to be dissolved that garbage collection cannot do without now, the block
//! stays in use until one can be. That is also what happens on a read-only drive.

use writecliff_base::ReclaimUnitId;

use super::{BadBlocks, Due, uniform};
use crate::ftl::Ftl;
use crate::sink::FlashSink;
use crate::table::UnitState;

/// Free units that garbage collection must find when a unit is dissolved: the one that is opened
/// instead, or that a victim is moved to.
const FREE_MIN: usize = 2;

impl BadBlocks {
    /// Whether one more unit can be given up; if not, the drive becomes read-only.
    fn may_drop(&mut self) -> bool {
        let may = self.usable_units() > self.least_units;
        self.counts.read_only |= u64::from(!may);
        may
    }

    /// The number of the next failure.
    fn number(&self) -> u64 {
        let counts = &self.counts;
        counts.erase_failures + counts.program_failures + self.due.len() as u64
    }

    /// Whether the next failure is found by an erase.
    fn is_found_by_erase(&self) -> bool {
        uniform(self.failures_salt, 2 * self.number()) < self.config.found_by_erase
    }

    /// The program in which a block fails, if there are `programs` in a reclaim unit.
    fn failing_program(&self, position: u32, programs: u32) -> u32 {
        let rows = programs / self.dies;
        let row = (uniform(self.failures_salt, 2 * self.number() + 1) * f64::from(rows)) as u32;
        row * self.dies + position / self.planes
    }
}

impl Ftl {
    /// Handles the blocks of a unit that fail now that it is opened. False: it was dissolved.
    #[cold]
    pub(crate) fn blocks_hold<S: FlashSink>(&mut self, unit: ReclaimUnitId, sink: &mut S) -> bool {
        let erases = self.wear.of(unit);
        let Some(bad) = self.bad_blocks.as_mut() else { return true };
        if bad.first[unit.index()] > erases {
            return true;
        }
        for position in 0..bad.positions {
            if !bad.has_failed(unit, position, erases) {
                continue;
            }
            if bad.config.replaces && !bad.is_found_by_erase() {
                let programs =
                    self.geometry.ppas_per_reclaim_unit / self.geometry.ppas_per_program_unit;
                let program = bad.failing_program(position, programs);
                bad.due.push(Due { unit, program, position });
                continue;
            }
            if bad.config.replaces && bad.take_spare(unit, position, erases) {
                bad.counts.erase_failures += 1;
                sink.block_replaced(position / bad.planes, 0);
            } else if self.free.len() >= FREE_MIN && bad.may_drop() {
                bad.due.retain(|due| due.unit != unit);
                bad.dissolve(unit, erases);
                self.table.state[unit.index()] = UnitState::Dropped;
                self.idle -= i64::from(self.table.alloc_units_per_reclaim_unit);
                return false;
            }
        }
        bad.find_first(unit);
        true
    }

    /// Called before a program while some are due to fail: replaces the block, if it is this one.
    #[cold]
    pub(crate) fn program_may_fail<S: FlashSink>(
        &mut self,
        unit: ReclaimUnitId,
        program: u32,
        sink: &mut S,
    ) {
        let Some(bad) = self.bad_blocks.as_mut() else { return };
        while let Some(index) =
            bad.due.iter().position(|due| due.unit == unit && due.program == program)
        {
            let position = bad.due.swap_remove(index).position;
            let erases = self.wear.of(unit);
            while !bad.take_spare(unit, position, erases) {
                if self.free.len() <= FREE_MIN || !bad.may_drop() {
                    return;
                }
                let Some(donor) = self.free.pop_back() else { return };
                bad.dissolve(donor, self.wear.of(donor));
                self.table.state[donor.index()] = UnitState::Dropped;
                self.idle -= i64::from(self.table.alloc_units_per_reclaim_unit);
            }
            bad.counts.program_failures += 1;
            let rows = program / bad.dies;
            let slots = rows * self.geometry.slots_per_program_unit / bad.planes;
            bad.counts.moved_slots += u64::from(slots);
            sink.block_replaced(position / bad.planes, rows);
            bad.find_first(unit);
        }
    }

    /// Whether a program is due to fail.
    #[inline]
    pub(crate) fn awaits_failure(&self) -> bool {
        self.bad_blocks.as_ref().is_some_and(|bad| !bad.due.is_empty())
    }

    /// Whether no spare space is left, so that host writes must be refused.
    pub fn is_read_only(&self) -> bool {
        self.bad_blocks.as_ref().is_some_and(|bad| bad.is_read_only())
    }

    /// Takes the units out of use that the factory's bad blocks have cost.
    pub(crate) fn drop_factory_units(&mut self) {
        let Some(bad) = &self.bad_blocks else { return };
        for unit in bad.dropped_when_new() {
            self.table.state[unit.index()] = UnitState::Dropped;
        }
        self.leave_dropped();
    }

    /// Keeps dropped units dropped after a purge; `before` are the states before it.
    pub(crate) fn purge_dropped(&mut self, before: &[UnitState]) {
        for (now, &before) in self.table.state.iter_mut().zip(before) {
            if before == UnitState::Dropped {
                *now = before;
            }
        }
        if let Some(bad) = &mut self.bad_blocks {
            bad.due.clear();
        }
        self.leave_dropped();
    }

    /// Rebuilds the list of free units and what is idle without the units that are dropped.
    pub(crate) fn leave_dropped(&mut self) {
        let state = &self.table.state;
        self.free.retain(|unit| state[unit.index()] != UnitState::Dropped);
        self.idle = self.count_idle();
    }

    /// Checks that dropped units are counted, and are as many as bad blocks cost.
    pub(crate) fn check_dropped(&self) -> Result<(), String> {
        let in_table = self.table.state.iter().filter(|&&s| s == UnitState::Dropped).count() as u64;
        let counted = self.bad_blocks.as_ref().map_or(0, |bad| bad.counts.dropped_units);
        if in_table != counted {
            return Err(format!("{in_table} units are dropped, but {counted} are counted"));
        }
        self.bad_blocks.as_ref().map_or(Ok(()), |bad| bad.check())
    }
}

impl BadBlocks {
    /// Every block of a dropped unit is bad, spare or in use elsewhere; and no more units are
    /// dropped than the position with the most bad blocks has cost.
    fn check(&self) -> Result<(), String> {
        if !self.config.replaces {
            return Ok(());
        }
        let counts = &self.counts;
        let bad = counts.factory + counts.erase_failures + counts.program_failures;
        let spare: u64 = self.spare.iter().map(|spare| spare.len() as u64).sum();
        let given = counts.dropped_units * u64::from(self.positions);
        if given != bad + spare {
            return Err(format!("{given} blocks were given up, but {bad} are bad, {spare} spare"));
        }
        if counts.dropped_units > 0 && self.spare.iter().all(|spare| !spare.is_empty()) {
            return Err("a unit was dropped although every position had a spare block".to_owned());
        }
        Ok(())
    }
}
