//! Counters of the drive as a whole.

use writecliff_base::counters::{Reading, readings};
use writecliff_base::{SLOT_BYTES, counters};
use writecliff_flash::wear::WearSummary;
use writecliff_ftl::{BadBlockCounters, BadBlocks, ReductionCounters};
use writecliff_host_interface::Drive;

use crate::mechanisms::cell_care::CellCareCounters;
use crate::mechanisms::die_parity::DieParityCounters;
use crate::mechanisms::ecc::EccCounters;
use crate::mechanisms::endurance::ThrottleTime;
use crate::mechanisms::housekeeping::HousekeepingCounters;
use crate::mechanisms::integrity::IntegrityCounts;
use crate::mechanisms::mapping_cache::MappingCacheCounts;
use crate::mechanisms::power::Energy;
use crate::mechanisms::read_ahead::ReadAheadCounts;
use crate::mechanisms::slc_cache::{SlcCache, SlcCounters};
use crate::mechanisms::thermal::ThermalCounters;
use crate::{Recorder, Ssd};

/// Declares [`DriveCounters`] from a line for each mechanism, in the order of the reference page.
macro_rules! drive_counters {
    ($($mechanism:ident: $counters:ty,)*) => {
        /// Counters since the drive was new.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct DriveCounters {
            /// Bytes written by the host.
            pub host_write_bytes: u64,
            /// Bytes read by the host.
            pub host_read_bytes: u64,
            /// Reads of unmapped addresses, in whole slots.
            pub unmapped_read_bytes: u64,
            /// Bytes allocated on flash for any reason, including data still in the buffer.
            pub nand_write_bytes: u64,
            /// Bytes relocated by garbage collection.
            pub gc_moved_bytes: u64,
            /// Bytes relocated by wear levelling.
            pub wear_moved_bytes: u64,
            /// Bytes left empty in units that were closed early.
            pub padding_bytes: u64,
            /// Bytes unmapped by TRIM, in whole slots.
            pub trimmed_bytes: u64,
            /// Reclaim units freed by garbage collection.
            pub collections: u64,
            /// Erase counts of the blocks.
            pub wear: WearSummary,
            $(
                /// Counters of the mechanism; `None` if the drive does not have it.
                pub $mechanism: Option<$counters>,
            )*
        }

        impl DriveCounters {
            /// Returns all declared counters, including those of mechanisms.
            pub fn readings(counters: Option<&Self>) -> Vec<Reading> {
                readings(counters)
                    $(.chain(readings(counters.and_then(|c| c.$mechanism.as_ref()))))*
                    .collect()
            }
        }
    };
}

drive_counters! {
    energy: Energy,
    thermal: ThermalCounters,
    throttle_time: ThrottleTime,
    ecc: EccCounters,
    housekeeping: HousekeepingCounters,
    reduction: ReductionCounters,
    slc_cache: SlcCounters,
    bad_blocks: BadBlockCounters,
    cell_care: CellCareCounters,
    integrity: IntegrityCounts,
    die_parity: DieParityCounters,
    mapping_cache: MappingCacheCounts,
    read_ahead: ReadAheadCounts,
}

counters! { |c: DriveCounters|
    Integer "nand_write_bytes" Bytes: c.nand_write_bytes,
        "bytes written to flash for any reason, including data in the write buffer";
    Integer "gc_moved_bytes" Bytes: c.gc_moved_bytes,
        "portion of `nand_write_bytes` relocated by garbage collection";
    Integer "erases_min" Count level of_any_size: c.wear.min.into(),
        "lowest erase count of any block";
    Real "erases_mean" Count level of_any_size: c.wear.mean, "mean erase count of all blocks";
    Integer "erases_max" Count level of_any_size: c.wear.max.into(),
        "highest erase count of any block";
    Real "percentage_used" Percent level of_any_size: c.wear.percentage_used,
        "mean erases relative to rated cycles, as in NVMe SMART; may exceed 100";
}

impl<R: Recorder> Ssd<R> {
    /// Returns the counters since the drive was new.
    pub fn counters(&self) -> DriveCounters {
        let Self { storage, mechanisms, .. } = self;
        let (ftl, backend, now) = (&storage.ftl, &storage.backend, storage.backend.now);
        let allocated = ftl.allocated();
        let bytes = |slots: u64| slots * SLOT_BYTES;
        let slc = storage.log().map(SlcCache::counters);
        let ecc = backend.mechanisms.ecc.as_ref();
        let meters = self.meters(now);
        DriveCounters {
            host_write_bytes: meters.host_write_bytes,
            host_read_bytes: self.host_read_bytes,
            unmapped_read_bytes: bytes(storage.unmapped_read_slots),
            nand_write_bytes: meters.nand_write_bytes.unwrap_or_default(),
            gc_moved_bytes: allocated.gc.0,
            wear_moved_bytes: allocated.wear.0,
            padding_bytes: allocated.padding.0 + bytes(slc.map_or(0, |slc| slc.padding)),
            trimmed_bytes: bytes(ftl.counters().trimmed_slots + slc.map_or(0, |slc| slc.trimmed)),
            collections: ftl.counters().collections,
            wear: ftl.wear().summary(),
            housekeeping: mechanisms.housekeeping.as_ref().map(|h| h.counters),
            ecc: ecc.map(|ecc| ecc.counters),
            energy: Energy::taken(self, now),
            thermal: meters
                .joules
                .zip(mechanisms.thermal.as_ref())
                .map(|(j, t)| t.counters(now, j)),
            throttle_time: mechanisms.endurance.as_ref().map(|plan| plan.throttle_time),
            slc_cache: slc,
            reduction: ftl.reduction().copied(),
            bad_blocks: ftl.bad_blocks().map(BadBlocks::counters),
            cell_care: ecc.and_then(|ecc| ecc.care_counters(ftl.table(), now)),
            integrity: mechanisms.integrity.as_ref().map(|integrity| integrity.counters()),
            die_parity: DieParityCounters::of(storage),
            mapping_cache: mechanisms.mapping_cache.as_ref().map(|cache| cache.counts),
            read_ahead: mechanisms.read_ahead.as_ref().map(|ahead| ahead.counts),
        }
    }
}
