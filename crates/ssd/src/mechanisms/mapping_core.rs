//! The firmware core that maps and relocates data, and the host writes that wait for it.
//!
//! During garbage collection, a drive with many dies is often bound not by its flash but by the
//! processor that looks up, relocates and maps slot after slot. A host slot costs
//! `mapping_update_time`, a relocated slot `relocation_time`, a read `lookup_time` and each of its
//! slots `read_slot_time`, a slot that is written in part `merge_time`, a slot folded from an SLC
//! cache its `fold_time`; reads have priority.
//! Writes still complete from the buffer. When the core is a buffer's worth of host slots behind,
//! the buffer is full of unmapped data and further writes wait at the link. If all these times are
//! zero, the core imposes no bound and the module is inactive.

use writecliff_base::Nanos;
use writecliff_base::codec::CodecError;
use writecliff_host_interface::Cause;

use crate::attribution::Recorder;
use crate::config::DeviceConfig;
use crate::event::{Lane, SsdEvent};
use crate::mechanisms::MechanismSection;
use crate::ssd::Ssd;
use writecliff_base::words::{WordReader, WordWriter};

/// Number of reads, and of their slots, that may wait for the core.
const READS_LEFT_MAX: u64 = 128;
const READ_SLOTS_LEFT_MAX: u64 = 4096;

/// Pending work of the core.
#[derive(Debug)]
pub(crate) struct MappingCore {
    per_host_slot: Nanos,
    per_moved_slot: Nanos,
    per_merged_slot: Nanos,
    per_folded_slot: Nanos,
    per_read: Nanos,
    per_read_slot: Nanos,
    /// Core time of reads that is not yet included in `done_at`.
    read_time: Nanos,
    /// Time at which the last write was mapped.
    placed_at: Nanos,
    /// Maximum pending work at which another write is admitted.
    allowance: Nanos,
    /// Time at which all pending work will be done.
    done_at: Nanos,
    wake_scheduled: bool,
}

impl MappingCore {
    /// `None` if the core takes no time.
    pub(crate) fn new(config: &DeviceConfig) -> Option<Self> {
        let c = &config.controller;
        let fold = config.sections.present().find_map(MechanismSection::move_time);
        (c.has_mapping_core() || fold.is_some()).then(|| Self {
            per_host_slot: c.mapping_update_time,
            per_moved_slot: c.relocation_time,
            per_merged_slot: c.merge_time,
            per_folded_slot: fold.unwrap_or(c.mapping_update_time),
            per_read: c.lookup_time,
            per_read_slot: c.read_slot_time,
            read_time: Nanos::ZERO,
            placed_at: Nanos::ZERO,
            allowance: Nanos(c.mapping_update_time.0 * u64::from(config.buffer_slots())),
            done_at: Nanos::ZERO,
            wake_scheduled: false,
        })
    }

    pub(crate) fn charge(&mut self, now: Nanos, host_slots: u32, moved_slots: u64) {
        let host = self.per_host_slot.0 * u64::from(host_slots);
        let moved = self.per_moved_slot.0 * moved_slots;
        // Reads take precedence over pending work and delay it, but they cannot have used more time
        // than has passed. The time of reads still in a full queue is used later.
        let reads = self.read_time.min(now.saturating_sub(self.placed_at));
        self.done_at = (self.done_at + reads).max(now) + Nanos(host + moved);
        let slots = self.per_read_slot.0 * READ_SLOTS_LEFT_MAX;
        let most = Nanos(self.per_read.0 * READS_LEFT_MAX + slots);
        self.read_time = (self.read_time - reads).min(most);
        self.placed_at = now;
    }

    /// Adds the time of the slots that the last write has merged with old data or folded.
    pub(crate) fn merge_and_fold(&mut self, merged: u32, folded: u64) {
        let merging = self.per_merged_slot.0 * u64::from(merged);
        self.done_at += Nanos(merging + self.per_folded_slot.0 * folded);
    }

    pub(crate) fn look_up(&mut self, slots: u32) {
        self.read_time += self.per_read + Nanos(self.per_read_slot.0 * u64::from(slots));
    }

    /// Keeps the core from its pending work for `duration`.
    pub(crate) fn stall(&mut self, now: Nanos, duration: Nanos) {
        self.done_at = self.done_at.max(now) + duration;
    }

    /// Returns the time at which the next write may be admitted, if not now.
    fn opens_at(&self, now: Nanos) -> Option<Nanos> {
        let opens = self.done_at.saturating_sub(self.allowance);
        (opens > now).then_some(opens)
    }

    pub(crate) fn save(&self, out: &mut WordWriter) {
        out.put(self.done_at.0);
        out.put(self.read_time.0);
        out.put(self.placed_at.0);
        out.put(self.wake_scheduled);
    }

    pub(crate) fn restore(&mut self, input: &mut WordReader<'_>) -> Result<(), CodecError> {
        self.done_at = Nanos(input.get()?);
        self.read_time = Nanos(input.get()?);
        self.placed_at = Nanos(input.get()?);
        self.wake_scheduled = input.flag()?;
        Ok(())
    }
}

impl<R: Recorder> Ssd<R> {
    /// Returns `true` if the core delays writes now, and schedules an event for the end of the
    /// delay.
    #[inline]
    pub(crate) fn core_is_behind(&mut self) -> bool {
        let Some(core) = &mut self.mapping_core else { return false };
        let Some(opens) = core.opens_at(self.backend.now) else { return false };
        self.backend.recorder.writes_wait(self.backend.now, Cause::MappingProcessor);
        if !std::mem::replace(&mut core.wake_scheduled, true) {
            self.backend.queue.push(Lane::Arrived, opens, SsdEvent::CoreCaughtUp);
        }
        true
    }

    pub(crate) fn core_caught_up(&mut self) {
        if let Some(core) = &mut self.mapping_core {
            core.wake_scheduled = false;
        }
        self.admit_writes();
    }
}
