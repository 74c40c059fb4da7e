//! What the FTL has done since the drive was new. All in slots (4 KiB) but for the bytes named so.

use writecliff_base::Bytes;
use writecliff_base::content::SECTORS_PER_SLOT;
use writecliff_flash::geometry::SLOT_BYTES;

use crate::reduce::ReductionCounters;

/// Cumulative counters; never reset, not even by a purge (as SMART counters are not).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Bytes that the host has written, to the byte.
    pub host_bytes: u64,
    /// Slots written for the host.
    pub host_slots: u64,
    /// Slots moved by garbage collection.
    pub gc_slots: u64,
    /// Slots moved by wear levelling.
    pub wear_slots: u64,
    /// Slots programmed without data because a unit had to be closed early.
    pub padding_slots: u64,
    /// Slots that a TRIM unmapped.
    pub trimmed_slots: u64,
    /// Host writes smaller than a slot that had to read the slot's old data first.
    pub merge_reads: u64,
    /// Reclaim units collected.
    pub collections: u64,
    /// Of these, collections that the host had to wait for as a whole.
    pub foreground_collections: u64,
    /// Program operations.
    pub programs: u64,
    /// Slots in the program operations, data and padding.
    pub programmed_slots: u64,
}

/// What has been placed on flash, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placed {
    pub host: Bytes,
    pub gc: Bytes,
    pub wear: Bytes,
    pub padding: Bytes,
}

impl Placed {
    #[inline]
    pub(crate) fn in_slots(c: &Counters) -> Self {
        let bytes = |slots| Bytes(slots * u64::from(SLOT_BYTES));
        Self {
            host: bytes(c.host_slots),
            gc: bytes(c.gc_slots),
            wear: bytes(c.wear_slots),
            padding: bytes(c.padding_slots),
        }
    }

    pub(crate) fn in_sectors(c: &ReductionCounters) -> Self {
        let bytes = |alloc_units| Bytes(alloc_units * u64::from(SLOT_BYTES / SECTORS_PER_SLOT));
        Self {
            host: Bytes(c.stored_bytes()),
            gc: bytes(c.gc_sectors),
            wear: bytes(c.wear_sectors),
            padding: bytes(c.padding_sectors),
        }
    }

    #[inline]
    pub fn total(&self) -> Bytes {
        Bytes(self.host.0 + self.gc.0 + self.wear.0 + self.padding.0)
    }
}

impl Counters {
    pub const FIELDS: usize = 11;

    /// Slots written to flash for each slot written by the host since `earlier`; data that are
    /// placed but not yet programmed count as written.
    pub fn write_amplification_since(&self, earlier: &Self) -> Option<f64> {
        let host = self.host_slots - earlier.host_slots;
        let placed = |c: &Self| c.host_slots + c.gc_slots + c.wear_slots + c.padding_slots;
        (host > 0).then(|| (placed(self) - placed(earlier)) as f64 / host as f64)
    }

    /// Slots moved for whatever reason.
    #[inline]
    pub fn moved_slots(&self) -> u64 {
        self.gc_slots + self.wear_slots
    }

    pub fn to_array(&self) -> [u64; Self::FIELDS] {
        [
            self.host_bytes,
            self.host_slots,
            self.gc_slots,
            self.wear_slots,
            self.padding_slots,
            self.trimmed_slots,
            self.merge_reads,
            self.collections,
            self.foreground_collections,
            self.programs,
            self.programmed_slots,
        ]
    }

    pub fn from_array(a: [u64; Self::FIELDS]) -> Self {
        Self {
            host_bytes: a[0],
            host_slots: a[1],
            gc_slots: a[2],
            wear_slots: a[3],
            padding_slots: a[4],
            trimmed_slots: a[5],
            merge_reads: a[6],
            collections: a[7],
            foreground_collections: a[8],
            programs: a[9],
            programmed_slots: a[10],
        }
    }
}
