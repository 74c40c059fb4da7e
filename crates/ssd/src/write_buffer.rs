//! Write buffer: its free slots, and the writes that wait for free slots.

use writecliff_base::{Nanos, SLOT_BYTES};

use crate::DeviceConfig;
use crate::die::Queue;

/// The write buffer. It holds data from the start of their transfer until they are on flash.
pub(crate) struct WriteBuffer {
    slots: i64,
    /// Number of free slots; negative while the buffer contains a command larger than the buffer.
    pub(crate) free: i64,
    /// Number of slots that are free whenever no program is outstanding.
    assured: i64,
    /// Writes that wait for space, with the time when the firmware finished each of them.
    pub(crate) waiting: Queue<(u16, Nanos)>,
    /// Writes whose data are being transferred over the link.
    pub(crate) in_transfer: u32,
    /// `true` if the volatile write cache is enabled.
    pub(crate) is_cache: bool,
    is_protected: bool,
}

impl WriteBuffer {
    pub(crate) fn of(config: &DeviceConfig) -> Self {
        let slots = i64::from(config.buffer_slots());
        let geometry = &config.geometry;
        // Slot count that partly filled units and mechanisms may occupy.
        let units = i64::from(config.ftl.streams) * i64::from(geometry.ppas_per_program_unit);
        let mechanisms = config.sections.buffer_bytes(geometry) / SLOT_BYTES;
        let merged = config.merged_bytes() / SLOT_BYTES;
        let assured = slots - units - (mechanisms + merged).cast_signed();
        assert!(assured > 0, "a write could wait for space for ever, see `buffer_needed`");
        Self {
            slots,
            free: slots,
            assured,
            waiting: Queue::default(),
            in_transfer: 0,
            is_cache: config.controller.write_cache,
            is_protected: config.controller.power_loss_protection,
        }
    }

    /// Returns `true` if `held` slots or more are in use, with at most one oversized command.
    pub(crate) fn can_hold(&self, held: u64) -> bool {
        let used = self.slots.checked_sub(self.free).and_then(|used| u64::try_from(used).ok());
        used.is_some_and(|used| (held..=u64::from(u32::MAX)).contains(&used))
    }

    /// Sets the buffer contents to exactly the `held` slots of partly filled units.
    pub(crate) fn resynchronise(&mut self, held: u32) {
        assert!(self.is_settled(), "resynchronised while writes were on their way");
        self.free = self.slots - i64::from(held);
    }

    /// Returns `true` if a write may complete before its data are on flash.
    #[inline]
    pub(crate) fn completes_writes(&self) -> bool {
        self.is_cache || self.is_protected
    }

    /// Returns `true` if a power loss may lose data of completed writes.
    pub(crate) fn is_volatile(&self) -> bool {
        self.is_cache && !self.is_protected
    }

    /// Returns `true` if no write is being transferred or waiting.
    pub(crate) fn is_settled(&self) -> bool {
        self.in_transfer == 0 && self.waiting.is_empty()
    }

    /// Returns `true` if there is space for `slots` slots. Larger writes wait for `assured` slots.
    #[inline]
    pub(crate) fn has_room(&self, slots: u32) -> bool {
        self.free >= i64::from(slots).min(self.assured)
    }

    /// Reserves the slots of a write whose transfer starts.
    #[inline]
    pub(crate) fn admit(&mut self, slots: u32) {
        debug_assert!(self.has_room(slots), "admitted without space");
        self.free -= i64::from(slots);
        self.in_transfer += 1;
    }

    /// Ends the transfer of a write whose data have arrived.
    #[inline]
    pub(crate) fn arrived(&mut self) {
        debug_assert!(self.in_transfer > 0, "arrived without having been admitted");
        self.in_transfer -= 1;
    }

    /// Frees slots that have left the buffer; the number is negative if the drive has added slots.
    #[inline]
    pub(crate) fn release(&mut self, slots: i64) {
        self.free += slots;
        debug_assert!(self.free <= self.slots, "released more than was reserved");
    }

    pub(crate) fn power_up(&mut self, config: &DeviceConfig) {
        self.waiting.clear();
        self.in_transfer = 0;
        self.is_cache = config.controller.write_cache;
    }
}
