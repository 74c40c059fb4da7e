//! Interface to the flash below the FTL, which receives the operations that the FTL has decided on,
//! in order.

use serde::{Deserialize, Serialize};
use writecliff_base::{Lpn, Ppa, ReclaimUnitId};

use crate::FrontierId;

/// A program operation: program unit `unit` of a reclaim unit is full or closed early.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProgramUnit {
    /// Reclaim unit that contains the program unit.
    pub reclaim_unit: ReclaimUnitId,
    /// Program unit within the reclaim unit.
    pub unit: u32,
    /// Number of slots that hold data; all other slots in the unit are padding.
    pub data_slots: u32,
    /// Number of data slots that hold relocated data, in a unit that the host fills.
    pub moved_slots: u32,
    /// Number of reclaim units freed before the unit received data. The unit's data do not replace
    /// data in reclaim units freed earlier. See `UnitTable::freed_at`.
    pub since: u64,
}

/// Receives flash operations in the order that the FTL requires.
///
/// Contract: `program` is called after every `read_for` of the same frontier whose data it
/// contains. Programs of one reclaim unit are called in ascending order. `erase` of a reclaim unit
/// is called before the unit's first program.
pub trait FlashSink {
    /// Reads slots of the read group at `from` for the unit that `frontier` is filling.
    fn read_for(&mut self, frontier: FrontierId, from: Ppa, slots: u32);
    /// Programs a unit with the data that the frontier has collected.
    fn program(&mut self, frontier: FrontierId, unit: ProgramUnit);
    /// Erases the blocks of a reclaim unit, which `frontier` opens, on all dies. On a drive with a
    /// volatile buffer, program units with `since` up to `freed_at` must be programmed first.
    fn erase(&mut self, frontier: FrontierId, unit: ReclaimUnitId, freed_at: u64);
    /// Delays programs to an erased reclaim unit that `frontier` opens until program units with
    /// `since` up to `freed_at` are programmed.
    #[inline]
    fn hold(&mut self, _frontier: FrontierId, _unit: ReclaimUnitId, _freed_at: u64) {}
    /// Handles the replacement of a die's failed block by a spare block, including the move of
    /// `rows` rows of programmed data to the spare block.
    #[inline]
    fn block_replaced(&mut self, _die: u32, _rows: u32) {}
    /// Handles a host write that moved a logical page from `before` to `at`.
    #[inline]
    fn placed(&mut self, _lpn: Lpn, _at: Ppa, _before: Ppa) {}
    /// Handles the relocation of a logical page from `before` to `at`.
    #[inline]
    fn moved(&mut self, _lpn: Lpn, _at: Ppa, _before: Ppa) {}
}

/// Sink for fast-forwarding: operations take no time and change only the FTL's own state.
#[derive(Clone, Copy, Debug, Default)]
pub struct FastForward;

impl FlashSink for FastForward {
    #[inline]
    fn read_for(&mut self, _: FrontierId, _: Ppa, _: u32) {}
    #[inline]
    fn program(&mut self, _: FrontierId, _: ProgramUnit) {}
    #[inline]
    fn erase(&mut self, _: FrontierId, _: ReclaimUnitId, _: u64) {}
}
