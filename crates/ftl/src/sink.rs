//! Interface to the flash below the FTL: receives the operations that the FTL has decided on, in
//! order.

use serde::{Deserialize, Serialize};
use writecliff_base::{Lpn, Ppa, ReclaimUnitId};

use crate::FrontierId;

/// One program operation: unit `unit` of a reclaim unit is full or is closed early.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProgramUnit {
    /// Reclaim unit that contains the program unit.
    pub reclaim_unit: ReclaimUnitId,
    /// Program unit within the reclaim unit.
    pub unit: u32,
    /// Slots that hold data; the rest of the unit is padding.
    pub data_slots: u32,
    /// Slots among these that hold relocated data, in a unit that the host fills.
    pub moved_slots: u32,
    /// Number of reclaim units freed before the unit received data: its data replace none in
    /// reclaim units freed earlier. See `UnitTable::freed_at`.
    pub since: u64,
}

/// Receives flash operations in the order in which the FTL requires them.
///
/// Contract: `program` is called after every `read_for` of the same frontier whose data it
/// contains; programs of one reclaim unit come in ascending order; `erase` of a reclaim unit comes
/// before its first program.
pub trait FlashSink {
    /// Reads `slots` slots of the read group at `from`, whose data go to the unit that `frontier`
    /// is filling.
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
    /// Handles the replacement of a failed block of a die by a spare block, to which the data of
    /// `rows` rows of programs moved.
    #[inline]
    fn block_replaced(&mut self, _die: u32, _rows: u32) {}
    /// Handles a host write that moved a logical page from `before` to `at`.
    #[inline]
    fn placed(&mut self, _lpn: Lpn, _at: Ppa, _before: Ppa) {}
    /// Handles the relocation of a logical page from `before` to `at`.
    #[inline]
    fn moved(&mut self, _lpn: Lpn, _at: Ppa, _before: Ppa) {}
}

/// The sink of the fast-forward clock: operations take no time and change only the FTL's own state.
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
