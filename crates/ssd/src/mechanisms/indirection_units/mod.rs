//! Indirection units: logical pages that share an entry of the map. If a command writes a part of a
//! unit above 4 KiB, the drive reads the rest and writes the whole unit.

mod section;

use writecliff_flash::geometry::SLOT_BYTES;
use writecliff_ftl::Ftl;

use crate::front::{Front, Placed, PlacementSink, Write};
pub(crate) use section::slots;

/// Front that completes units before it passes them to the FTL.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LargeUnits {
    /// Slots per unit.
    pub slots: u32,
}

impl Front for LargeUnits {
    /// Writes all units that the command touches. The rest of each unit also passes through the
    /// buffer.
    fn place<S: PlacementSink>(&mut self, write: Write<'_>, ftl: &mut Ftl, sink: &mut S) -> Placed {
        let (slot, command) = (u64::from(SLOT_BYTES), write.command);
        let end = command.offset + u64::from(command.length);
        let (first, last) = ((command.offset / slot) as u32, end.div_ceil(slot) as u32);
        let before = ftl.counters().host_slots;
        for unit in first / self.slots..last.div_ceil(self.slots) {
            let unit = unit * self.slots..((unit + 1) * self.slots).min(ftl.user_slots());
            let from = (u64::from(unit.start) * slot).max(command.offset);
            let bytes = (u64::from(unit.end) * slot).min(end) - from;
            ftl.write_unit(unit, write.stream, bytes as u32, sink);
        }
        let written = ftl.counters().host_slots - before;
        let extra_slots = written.cast_signed() - i64::from(last - first);
        Placed { extra_slots, ..Placed::default() }
    }
}
