//! Indirection units: logical pages that share an entry of the map. If a command writes a part of a
//! unit above 4 KiB, the drive reads the rest and writes the whole unit.
//!
//! With `merged_units`, a partly written unit first waits in the protected buffer for the rest of
//! its data. If more units than `merged_units` wait, the unit that was written least recently is
//! passed to the FTL. Sequential small writes therefore cost as much as large writes, and each
//! random small write costs a unit. The wait of a unit depends on other writes, not on time, so
//! both clocks place data identically.

mod section;

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use writecliff_base::fields::{FieldReader, FieldWriter, Impossible, Saved};
use writecliff_base::{Lpn, StreamId};
use writecliff_flash::geometry::SLOT_BYTES;
use writecliff_ftl::Ftl;

use crate::front::{Front, Placed, PlacementSink, Write};
pub(crate) use section::{MERGED_MAX, slots};

/// A unit of which the host has written a part.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct PartialUnit {
    unit: u32,
    stream: StreamId,
    /// Bit set of the slots to which the host has written.
    written: u128,
    /// Bit set of the slots that the host has written in full.
    complete: u128,
    /// Bytes that the host has written, including rewritten bytes.
    bytes: u64,
}

/// Front that completes units before it passes them to the FTL.
#[derive(Clone, Debug)]
pub(crate) struct LargeUnits {
    /// Slots per unit.
    slots: u32,
    /// Maximum number of waiting units.
    waiting_max: usize,
    /// Waiting units, in the order of their last write.
    waiting: VecDeque<PartialUnit>,
}

impl LargeUnits {
    pub(crate) fn new(slots: u32, waiting_max: u32) -> Self {
        Self { slots, waiting_max: waiting_max as usize, waiting: VecDeque::new() }
    }

    /// Returns the index of the waiting unit of a slot, and the bit of the slot.
    fn waiting(&self, lpn: Lpn) -> Option<(usize, u128)> {
        let unit = lpn.0 / self.slots;
        let index = self.waiting.iter().position(|waiting| waiting.unit == unit)?;
        Some((index, 1 << (lpn.0 % self.slots)))
    }

    /// Removes `unit` from the waiting units, if it waits, and returns it with the written bytes
    /// `offset..end` added.
    fn take(&mut self, unit: u32, stream: StreamId, (offset, end): (u64, u64)) -> PartialUnit {
        let index = self.waiting.iter().position(|waiting| waiting.unit == unit);
        let waiting = index.and_then(|index| self.waiting.remove(index));
        let new = PartialUnit { unit, stream, written: 0, complete: 0, bytes: 0 };
        let mut partial = PartialUnit { stream, ..waiting.unwrap_or(new) };
        if self.waiting_max == 0 {
            partial.bytes = end - offset;
            return partial;
        }
        let slot = u64::from(SLOT_BYTES);
        let first = u64::from(unit * self.slots);
        for n in (offset / slot)..end.div_ceil(slot) {
            let bit = 1 << (n - first);
            partial.written |= bit;
            if n * slot >= offset && (n + 1) * slot <= end {
                partial.complete |= bit;
            }
        }
        partial.bytes += end - offset;
        partial
    }

    /// Passes a unit to the FTL.
    fn write<S: PlacementSink>(&self, partial: &PartialUnit, ftl: &mut Ftl, sink: &mut S) {
        let first = partial.unit * self.slots;
        let unit = first..(first + self.slots).min(ftl.user_slots());
        let is_whole = if self.waiting_max == 0 {
            partial.bytes == unit.len() as u64 * u64::from(SLOT_BYTES)
        } else {
            partial.complete.count_ones() == unit.len() as u32
        };
        ftl.write_unit(unit, partial.stream, is_whole, partial.bytes, sink);
    }

    fn is_complete(&self, partial: &PartialUnit, ftl: &Ftl) -> bool {
        let len = self.slots.min(ftl.user_slots() - partial.unit * self.slots);
        partial.complete.count_ones() == len
    }
}

impl Front for LargeUnits {
    /// Writes all units that the command completes, and the units that it displaces. The rest of
    /// each unit also passes through the buffer.
    fn place<S: PlacementSink>(&mut self, write: Write<'_>, ftl: &mut Ftl, sink: &mut S) -> Placed {
        let (slot, command) = (u64::from(SLOT_BYTES), write.command);
        let end = command.offset + u64::from(command.length);
        let (first, last) = ((command.offset / slot) as u32, end.div_ceil(slot) as u32);
        let before = ftl.counters().host_slots + u64::from(self.filled());
        let unit_bytes = u64::from(self.slots) * slot;
        for unit in first / self.slots..last.div_ceil(self.slots) {
            let start = u64::from(unit) * unit_bytes;
            let range = (start.max(command.offset), (start + unit_bytes).min(end));
            let partial = self.take(unit, write.stream, range);
            if self.is_complete(&partial, ftl) {
                self.write(&partial, ftl, sink);
                continue;
            }
            self.waiting.push_back(partial);
            if self.waiting.len() > self.waiting_max
                && let Some(oldest) = self.waiting.pop_front()
            {
                self.write(&oldest, ftl, sink);
            }
        }
        let after = ftl.counters().host_slots + u64::from(self.filled());
        let extra_slots = (after - before).cast_signed() - i64::from(last - first);
        Placed { extra_slots, ..Placed::default() }
    }

    /// Returns `true` for data in the buffer. The number of the unit then has no meaning.
    fn find(&self, lpn: Lpn) -> Option<(u32, bool)> {
        let (index, bit) = self.waiting(lpn)?;
        (self.waiting[index].complete & bit > 0).then_some((0, true))
    }

    /// Discards the data. The buffer space of the slot stays reserved until its unit is passed to
    /// the FTL.
    fn trim(&mut self, lpn: Lpn) {
        if let Some((index, bit)) = self.waiting(lpn) {
            self.waiting[index].complete &= !bit;
        }
    }

    fn purge(&mut self) -> u64 {
        self.waiting.clear();
        0
    }

    fn host_bytes(&self, of_ftl: u64) -> u64 {
        of_ftl + self.waiting.iter().map(|waiting| waiting.bytes).sum::<u64>()
    }

    /// Returns the number of written slots of the waiting units.
    fn filled(&self) -> u32 {
        self.waiting.iter().map(|waiting| waiting.written.count_ones()).sum()
    }
}

impl Saved for LargeUnits {
    fn save(&self, out: &mut FieldWriter) {
        if self.waiting_max > 0 {
            out.put(&self.waiting);
        }
    }

    fn restore(&mut self, input: &mut FieldReader<'_>) -> Result<(), Impossible> {
        if self.waiting_max > 0 {
            self.waiting = input.get()?;
        }
        if self.waiting.len() > self.waiting_max { Err(Impossible) } else { Ok(()) }
    }
}
