//! Indirection units: logical pages that share a map entry. If a command writes only a portion of a
//! unit above 4 KiB, the drive reads the remaining data and writes the whole unit.
//!
//! With `merged_units`, a partly written unit first waits in the protected buffer for its remaining
//! data. If more than `merged_units` units wait, the least recently written unit is passed to the
//! FTL. Sequential small writes thus cost as much as large writes, and random ones a whole unit.
//!
//! On a busy drive, only other writes end the wait, so timed and fast-forwarded writes place data
//! identically. Once the drive has been idle for `idle_delay`, it passes all waiting units to the
//! FTL, the least recently written first. `idle_delay` is thus the hold time of an idle drive.

mod section;

use std::collections::VecDeque;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use writecliff_base::fields::{FieldReader, FieldWriter, Impossible, Saved};
use writecliff_base::{Lpn, SECTOR_BYTES, SLOT_BYTES, StreamId};
use writecliff_ftl::{FlashSink, Ftl};

use crate::DeviceConfig;
use crate::front::{Placed, PlacementSink, Write};

pub(crate) use section::{MERGED_MAX, MERGED_SHARE, slots};

/// Sectors of a slot that the host has fully written.
const ALL_SECTORS: u8 = u8::MAX;

/// A unit that the host has partly written.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct PartialUnit {
    unit: u32,
    stream: StreamId,
    /// Bit set of the sectors written by the host, for each slot of the unit.
    sectors: Vec<u8>,
    /// Bytes written by the host, including rewritten bytes.
    bytes: u64,
    /// `true` if a power cut has already programmed these data.
    is_saved: bool,
}

impl PartialUnit {
    /// Adds the bytes `offset..end`, relative to the start of the unit.
    fn add(&mut self, offset: u64, end: u64) {
        debug_assert!(offset <= end && end <= self.sectors.len() as u64 * SLOT_BYTES);
        for n in offset / SLOT_BYTES..end.div_ceil(SLOT_BYTES) {
            let within = |at: u64| {
                (at.clamp(n * SLOT_BYTES, (n + 1) * SLOT_BYTES) - n * SLOT_BYTES) / SECTOR_BYTES
            };
            let bits = (1_u16 << within(end)) - (1_u16 << within(offset));
            self.sectors[n as usize] |= bits as u8;
        }
        self.bytes += end - offset;
    }

    fn filled(&self) -> u32 {
        self.sectors.iter().map(|&sectors| u32::from(sectors > 0)).sum()
    }

    fn is_complete(&self) -> bool {
        self.sectors.iter().all(|&sectors| sectors == ALL_SECTORS)
    }
}

/// Front that completes units before it passes them to the FTL.
#[derive(Clone, Debug, Default)]
pub(crate) struct LargeUnits {
    slots: u32,
    user_slots: u32,
    streams: u16,
    waiting_max: usize,
    /// Waiting units, ordered by their last write.
    waiting: VecDeque<PartialUnit>,
    /// Number of slots in the waiting units that the host has written to.
    pub filled: u32,
    /// Bytes that the host wrote to units that it deallocated while they were waiting.
    deallocated_bytes: u64,
}

impl LargeUnits {
    pub(crate) fn new(config: &DeviceConfig) -> Self {
        Self {
            slots: config.indirection_slots,
            user_slots: config.ftl.user_slots as u32,
            streams: config.ftl.streams,
            waiting_max: config.merged_units as usize,
            ..Self::default()
        }
    }

    fn slots_of(&self, unit: u32) -> Range<u32> {
        let first = unit * self.slots;
        first..(first + self.slots).min(self.user_slots)
    }

    /// Returns the index of the slot's waiting unit, and the slot's index in the unit.
    fn waiting(&self, lpn: Lpn) -> Option<(usize, usize)> {
        let unit = lpn.0 / self.slots;
        let index = self.waiting.iter().position(|waiting| waiting.unit == unit)?;
        Some((index, (lpn.0 % self.slots) as usize))
    }

    fn remove(&mut self, index: usize) -> Option<PartialUnit> {
        let removed = self.waiting.remove(index)?;
        debug_assert!(self.filled >= removed.filled(), "a waiting unit was not counted");
        self.filled -= removed.filled();
        Some(removed)
    }

    /// Removes and returns `unit` from the waiting units; the result is empty if it did not wait.
    fn take(&mut self, unit: u32, stream: StreamId) -> PartialUnit {
        let index = self.waiting.iter().position(|waiting| waiting.unit == unit);
        if let Some(waiting) = index.and_then(|index| self.remove(index)) {
            return PartialUnit { stream, is_saved: false, ..waiting };
        }
        let sectors = vec![0; self.slots_of(unit).len()];
        PartialUnit { unit, stream, sectors, bytes: 0, is_saved: false }
    }

    /// Writes the bytes `range` of a unit, relative to the start of the unit. The unit then waits,
    /// or is passed to the FTL if it is complete. If too many wait, also passes the oldest.
    fn write<S: FlashSink>(
        &mut self,
        (unit, stream): (u32, StreamId),
        range: (u64, u64),
        ftl: &mut Ftl,
        sink: &mut S,
    ) {
        if self.waiting_max == 0 {
            let (slots, bytes) = (self.slots_of(unit), range.1 - range.0);
            let is_whole = bytes == slots.len() as u64 * SLOT_BYTES;
            ftl.write_unit(slots, stream, is_whole, bytes, sink);
            return;
        }
        let mut partial = self.take(unit, stream);
        partial.add(range.0, range.1);
        if partial.is_complete() {
            self.pass(&partial, ftl, sink);
            return;
        }
        self.filled += partial.filled();
        self.waiting.push_back(partial);
        if self.waiting.len() > self.waiting_max {
            self.pass_oldest(ftl, sink);
        }
        debug_assert!(self.waiting.len() <= self.waiting_max, "more units wait than may");
    }

    fn pass<S: FlashSink>(&self, partial: &PartialUnit, ftl: &mut Ftl, sink: &mut S) {
        let slots = self.slots_of(partial.unit);
        ftl.write_unit(slots, partial.stream, partial.is_complete(), partial.bytes, sink);
    }

    fn pass_oldest<S: FlashSink>(&mut self, ftl: &mut Ftl, sink: &mut S) {
        if let Some(oldest) = self.remove(0) {
            self.pass(&oldest, ftl, sink);
        }
    }

    /// Returns the number of slots that have passed through the buffer or are waiting in it.
    fn buffered_slots(&self, ftl: &Ftl) -> i64 {
        ftl.counters().host_slots.cast_signed() + i64::from(self.filled)
    }

    fn is_possible(&self) -> bool {
        let units = self.user_slots.div_ceil(self.slots);
        let can_wait = |partial: &PartialUnit| {
            let written: u32 = partial.sectors.iter().map(|sectors| sectors.count_ones()).sum();
            partial.unit < units
                && partial.stream.0 < self.streams
                && partial.sectors.len() == self.slots_of(partial.unit).len()
                && written > 0
                && partial.bytes >= u64::from(written) * SECTOR_BYTES
                && !partial.is_complete()
        };
        let mut numbers: Vec<u32> = self.waiting.iter().map(|partial| partial.unit).collect();
        numbers.sort_unstable();
        let bytes = self.waiting.iter().map(|partial| u128::from(partial.bytes)).sum::<u128>();
        self.waiting.len() <= self.waiting_max
            && self.waiting.iter().all(can_wait)
            && numbers.is_sorted_by(|a, b| a < b)
            && bytes + u128::from(self.deallocated_bytes) <= u128::from(u64::MAX / 2)
    }
    /// Writes the units that the command completes or displaces, which all pass through the buffer.
    pub(crate) fn place<S: PlacementSink>(
        &mut self,
        write: Write<'_>,
        ftl: &mut Ftl,
        sink: &mut S,
    ) -> Placed {
        let (slot, command) = (SLOT_BYTES, write.command);
        let end = command.offset + u64::from(command.length);
        let (first, last) = ((command.offset / slot) as u32, end.div_ceil(slot) as u32);
        let before = self.buffered_slots(ftl);
        debug_assert!(last <= self.user_slots, "a write leaves the drive");
        let unit_bytes = u64::from(self.slots) * slot;
        for unit in first / self.slots..last.div_ceil(self.slots) {
            let start = u64::from(unit) * unit_bytes;
            let range = (start.max(command.offset) - start, (start + unit_bytes).min(end) - start);
            self.write((unit, write.stream), range, ftl, sink);
        }
        let extra_slots = self.buffered_slots(ftl) - before - i64::from(last - first);
        Placed { extra_slots, ..Placed::default() }
    }

    /// Finds slots whose sectors are all waiting; the unit number has no meaning. A read of a slot
    /// with only some waiting sectors needs flash for the others.
    pub(crate) fn find(&self, lpn: Lpn) -> Option<(u32, bool)> {
        let (index, slot) = self.waiting(lpn)?;
        (self.waiting[index].sectors[slot] == ALL_SECTORS).then_some((0, true))
    }

    /// Discards the data of a slot, and its unit if no other data of the unit are waiting.
    pub(crate) fn trim(&mut self, lpn: Lpn) -> u32 {
        let Some((index, slot)) = self.waiting(lpn) else { return 0 };
        let partial = &mut self.waiting[index];
        let freed = u32::from(std::mem::take(&mut partial.sectors[slot]) > 0);
        self.filled -= freed;
        if partial.filled() == 0 {
            self.deallocated_bytes += partial.bytes;
            self.waiting.remove(index);
        }
        freed
    }

    pub(crate) fn purge(&mut self) {
        self.deallocated_bytes += self.waiting.drain(..).map(|waiting| waiting.bytes).sum::<u64>();
        self.filled = 0;
    }

    /// Returns the number of bytes that the host has written, but that the FTL has not received.
    pub(crate) fn unpassed_bytes(&self) -> u64 {
        let waiting = self.waiting.iter().map(|waiting| waiting.bytes).sum::<u64>();
        waiting + self.deallocated_bytes
    }

    /// Returns the number of slots that this power cut programs. The units continue to wait, and
    /// the next power cut programs only the units that the host has written to since.
    pub(crate) fn take_unsaved(&mut self) -> u32 {
        let unsaved = self.waiting.iter_mut().filter(|partial| !partial.is_saved);
        let slots = |partial: &mut PartialUnit| {
            partial.is_saved = true;
            partial.filled()
        };
        unsaved.map(slots).sum()
    }

    pub(crate) fn wants_idle_time(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Passes units to the FTL while their remaining data fit into `burst` slots.
    pub(crate) fn idle_work<S: FlashSink>(
        &mut self,
        burst: i64,
        ftl: &mut Ftl,
        sink: &mut S,
    ) -> Option<i64> {
        let mut extra_slots = None;
        while let Some(oldest) = self.waiting.front() {
            let rest = oldest.sectors.len() as i64 - i64::from(oldest.filled());
            let sum = extra_slots.unwrap_or(0) + rest;
            if sum > burst {
                break;
            }
            extra_slots = Some(sum);
            self.pass_oldest(ftl, sink);
        }
        extra_slots
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        let filled: u32 = self.waiting.iter().map(PartialUnit::filled).sum();
        if self.is_possible() && filled == self.filled {
            return Ok(());
        }
        Err("the waiting indirection units are inconsistent".to_owned())
    }
}

impl Saved for LargeUnits {
    fn save(&self, out: &mut FieldWriter) {
        if self.waiting_max > 0 {
            out.put(&self.waiting);
            out.put(&self.deallocated_bytes);
        }
    }

    fn restore(&mut self, input: &mut FieldReader<'_>) -> Result<(), Impossible> {
        if self.waiting_max > 0 {
            self.waiting = input.get()?;
            self.deallocated_bytes = input.get()?;
            self.filled = self.waiting.iter().map(PartialUnit::filled).sum();
        }
        if self.is_possible() { Ok(()) } else { Err(Impossible) }
    }
}
