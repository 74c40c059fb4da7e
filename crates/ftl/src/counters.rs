//! FTL counters since the drive was new, in slots (4 KiB) except for those named in bytes.

use writecliff_base::{Bytes, counts};

counts! {
    /// Cumulative counters, which not even a purge resets (like SMART counters).
    pub struct Counters {
        /// Exact number of bytes that the host has written.
        host_bytes,
        /// Slots written for the host.
        host_slots,
        /// Slots moved by garbage collection.
        gc_slots,
        /// Slots moved by wear levelling.
        wear_slots,
        /// Slots programmed without data because a unit had to be closed early.
        padding_slots,
        /// Slots unmapped by TRIM.
        trimmed_slots,
        /// Emptied victims, which are the reclaim units freed by GC.
        collections,
        /// Program operations.
        programs,
        /// Slots in these program operations, including data and padding.
        programmed_slots,
    }
}

/// Bytes allocated on flash by cause, including data that are not yet programmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allocated {
    /// Bytes allocated for host data.
    pub host: Bytes,
    /// Bytes allocated for data relocated by garbage collection.
    pub gc: Bytes,
    /// Bytes allocated for data relocated by wear levelling.
    pub wear: Bytes,
    /// Bytes left empty in units that were closed early.
    pub padding: Bytes,
}

impl Allocated {
    /// Returns the bytes of allocation units of `unit_bytes` each, by cause.
    #[inline]
    pub(crate) fn in_units(unit_bytes: u32, alloc_units: [u64; 4]) -> Self {
        let [host, gc, wear, padding] = alloc_units.map(|n| Bytes(n * u64::from(unit_bytes)));
        Self { host, gc, wear, padding }
    }

    /// Returns the sum of all causes, which is the numerator of write amplification.
    #[inline]
    pub fn total(&self) -> Bytes {
        Bytes(self.host.0 + self.gc.0 + self.wear.0 + self.padding.0)
    }
}

impl Counters {
    /// Returns the slots allocated, programmed or not, per host slot written since `earlier`.
    pub fn write_amplification_since(&self, earlier: &Self) -> Option<f64> {
        debug_assert!(self.host_slots >= earlier.host_slots, "counters never decrease");
        let host = self.host_slots - earlier.host_slots;
        let allocated = |c: &Self| c.host_slots + c.gc_slots + c.wear_slots + c.padding_slots;
        debug_assert!(allocated(self) >= allocated(earlier), "counters never decrease");
        (host > 0).then(|| (allocated(self) - allocated(earlier)) as f64 / host as f64)
    }

    /// Returns the number of slots relocated by GC or wear levelling.
    #[inline]
    pub fn moved_slots(&self) -> u64 {
        self.gc_slots + self.wear_slots
    }
}
