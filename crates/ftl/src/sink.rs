//! The FTL's view of the flash below it: operations that it has decided on, in order.

use writecliff_base::{Ppa, ReclaimUnitId};

use crate::frontier::FrontierId;

/// One program operation: unit `unit` of a reclaim unit is full, or is being closed early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProgramUnit {
    pub reclaim_unit: ReclaimUnitId,
    pub unit: u32,
    /// Slots that hold data; the rest of the unit is padding.
    pub data_slots: u32,
    /// Of these, slots that GC has moved into a unit which the host is filling.
    pub moved_slots: u32,
}

/// Receives flash operations in the order in which the FTL needs them.
///
/// Contract: a `program` goes out after every `read_for` of the same frontier whose data it holds;
/// programs of one reclaim unit come in ascending order of units; `erase` of a reclaim unit comes
/// before its first program.
pub trait FlashSink {
    /// Read `slots` slots of the read group at `from`; their data go to the unit that `frontier` is
    /// filling.
    fn read_for(&mut self, frontier: FrontierId, from: Ppa, slots: u32);
    fn program(&mut self, frontier: FrontierId, unit: ProgramUnit);
    /// Erase the blocks of a reclaim unit on all dies.
    fn erase(&mut self, unit: ReclaimUnitId);
}

/// The fast-forward clock: operations take no time and leave no trace but the FTL's own state.
#[derive(Clone, Copy, Debug, Default)]
pub struct FastForward;

impl FlashSink for FastForward {
    #[inline]
    fn read_for(&mut self, _: FrontierId, _: Ppa, _: u32) {}
    #[inline]
    fn program(&mut self, _: FrontierId, _: ProgramUnit) {}
    #[inline]
    fn erase(&mut self, _: ReclaimUnitId) {}
}
