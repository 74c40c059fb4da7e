//! Firmware core that maps and relocates data, and the host writes that wait for it.
//!
//! During garbage collection, a drive with many dies is often limited not by its flash but by the
//! processor that looks up, relocates and maps every slot. The core takes `mapping_update_time` per
//! host slot and `relocation_time` per relocated slot. A read takes `lookup_time`, plus
//! `read_slot_time` per slot. The core also takes `suspend_time` per suspension of a program or
//! erase for reads, `merge_time` per partly written slot, and the `fold_time` of an SLC cache per
//! folded slot. Reads have priority, so writes get the remaining core time. If `lookup_time` is the
//! reciprocal of the read rate without writes, a mix of reads and writes is no faster than the two
//! workloads in sequence. The mix is slower because of suspensions, which neither workload causes
//! alone. Writes still complete from the buffer. When the core is a buffer's worth of host slots
//! behind, the buffer is full of unmapped data and further writes wait at the link. If all these
//! times are zero, the core imposes no limit and the module is inactive.

use writecliff_base::{Nanos, saved};
use writecliff_host_interface::{Cause, Status};

use crate::config::ControllerConfig;
use crate::mechanisms::{Access, MappedSlots, Mechanism, MechanismSection, Numbered, steps};
use crate::{DeviceConfig, Lane, Recorder, Ssd};

/// Maximum number of reads, and of their slots, that may wait for the core.
const READS_LEFT_MAX: u64 = 128;
const READ_SLOTS_LEFT_MAX: u64 = 4096;

/// Pending work of the core.
#[derive(Debug)]
pub(crate) struct MappingCore {
    times: ControllerConfig,
    per_folded_slot: Nanos,
    /// Core time of reads that is not yet included in `done_at`.
    read_time: Nanos,
    /// Time when the last write was mapped.
    placed_at: Nanos,
    /// Maximum pending work for admitting another write.
    allowance: Nanos,
    /// Time when all pending work will be done.
    done_at: Nanos,
    wake_scheduled: bool,
}

saved! { MappingCore { done_at, read_time, placed_at, wake_scheduled } }

impl MappingCore {
    /// Delays the core's pending work by `duration`.
    pub(crate) fn stall(&mut self, now: Nanos, duration: Nanos) {
        self.done_at = self.done_at.max(now) + duration;
    }
}

impl Mechanism for MappingCore {
    const STEPS: u8 = steps::READS | steps::MAPPING | steps::ADMISSION;

    fn of(config: &DeviceConfig) -> Option<Box<Self>> {
        let c = &config.controller;
        let fold = config.sections.present().find_map(MechanismSection::move_time);
        (c.has_mapping_core() || fold.is_some()).then(|| {
            Box::new(Self {
                times: c.clone(),
                per_folded_slot: fold.unwrap_or(c.mapping_update_time),
                read_time: Nanos::ZERO,
                placed_at: Nanos::ZERO,
                allowance: Nanos(c.mapping_update_time.0 * u64::from(config.buffer_slots())),
                done_at: Nanos::ZERO,
                wake_scheduled: false,
            })
        })
    }

    fn holds_writes<R: Recorder>(&mut self, drive: &mut Ssd<R>) -> bool {
        let now = drive.storage.backend.now;
        let opens = self.done_at.saturating_sub(self.allowance);
        if opens <= now {
            return false;
        }
        drive.storage.backend.recorder.writes_wait(now, Cause::MappingProcessor);
        if !std::mem::replace(&mut self.wake_scheduled, true) {
            drive.storage.backend.queue.push(Lane::Arrived, opens, Self::event(0));
        }
        true
    }

    fn after_write(&mut self, now: Nanos, mapped: &MappedSlots) {
        let host = self.times.mapping_update_time.0 * u64::from(mapped.host);
        let relocated = self.times.relocation_time.0 * mapped.moved;
        let merging = self.times.merge_time.0 * u64::from(mapped.merged);
        let folding = self.per_folded_slot.0 * mapped.folded;
        // Reads take precedence over pending work and delay it, but they cannot have used more time
        // than has passed. The core time of reads that are still in a full queue is used later.
        let reads = self.read_time.min(now.saturating_sub(self.placed_at));
        let suspending = self.times.suspend_time.0 * mapped.suspensions;
        let mapping = Nanos(host + relocated + merging + folding + suspending);
        self.done_at = (self.done_at + reads).max(now) + mapping;
        let slots = self.times.read_slot_time.0 * READ_SLOTS_LEFT_MAX;
        let most = Nanos(self.times.lookup_time.0 * READS_LEFT_MAX + slots);
        self.read_time = (self.read_time - reads).min(most);
        self.placed_at = now;
    }

    fn read(&mut self, read: &Access<'_>, outcome: Status) -> Status {
        if read.number.is_some() {
            let slots = Nanos(self.times.read_slot_time.0 * u64::from(read.slots));
            self.read_time += self.times.lookup_time + slots;
        }
        outcome
    }

    fn due<R: Recorder>(&mut self, _: &mut Ssd<R>, _: u16) -> bool {
        self.wake_scheduled = false;
        true
    }

    fn powered_up(&mut self) {
        (self.done_at, self.read_time, self.placed_at) = (Nanos::ZERO, Nanos::ZERO, Nanos::ZERO);
        self.wake_scheduled = false;
    }
}
