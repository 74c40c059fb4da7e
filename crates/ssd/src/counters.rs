//! Counters of the drive as a whole.

use writecliff_base::Nanos;
use writecliff_base::counters;
use writecliff_base::counters::{Reading, readings};
use writecliff_flash::geometry::SLOT_BYTES;
use writecliff_flash::wear::WearSummary;
use writecliff_ftl::bad_blocks::BadBlocks;
use writecliff_ftl::{BadBlockCounters, ReductionCounters};
use writecliff_host_interface::Drive;

use super::Ssd;
use crate::attribution::Recorder;
use crate::mechanisms::cell_care::CellCareCounters;
use crate::mechanisms::die_parity::DieParityCounters;
use crate::mechanisms::ecc::EccCounters;
use crate::mechanisms::endurance::HeldUp;
use crate::mechanisms::housekeeping::HousekeepingCounters;
use crate::mechanisms::integrity::IntegrityCounts;
use crate::mechanisms::mapping_cache::MappingCacheCounts;
use crate::mechanisms::power::Energy;
use crate::mechanisms::read_ahead::ReadAheadCounts;
use crate::mechanisms::slc_cache::{SlcCache, SlcCounters};
use crate::mechanisms::thermal::ThermalCounters;

/// Counters since the drive was new.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DriveCounters {
    pub host_write_bytes: u64,
    pub host_read_bytes: u64,
    /// Reads of unmapped addresses, in whole slots.
    pub unmapped_read_bytes: u64,
    /// Bytes allocated on flash for any reason; data still in the buffer count.
    pub nand_write_bytes: u64,
    pub gc_moved_bytes: u64,
    pub wear_moved_bytes: u64,
    pub padding_bytes: u64,
    pub trimmed_bytes: u64,
    pub collections: u64,
    pub wear: WearSummary,
    /// Counters of mechanisms in the device file; `None` for others.
    pub housekeeping: Option<HousekeepingCounters>,
    pub ecc: Option<EccCounters>,
    pub energy: Option<Energy>,
    pub thermal: Option<ThermalCounters>,
    /// Time for which endurance throttling delayed writes.
    pub held_up: Option<HeldUp>,
    pub slc_cache: Option<SlcCounters>,
    pub reduction: Option<ReductionCounters>,
    pub bad_blocks: Option<BadBlockCounters>,
    pub cell_care: Option<CellCareCounters>,
    pub integrity: Option<IntegrityCounts>,
    pub die_parity: Option<DieParityCounters>,
    pub mapping_cache: Option<MappingCacheCounts>,
    pub read_ahead: Option<ReadAheadCounts>,
}

counters! { |c: DriveCounters|
    Integer "nand_write_bytes" Bytes: c.nand_write_bytes,
        "written to flash for any reason; data in the write buffer count";
    Integer "gc_moved_bytes" Bytes: c.gc_moved_bytes,
        "of `nand_write_bytes`, relocated by garbage collection";
    Integer "erases_min" Count level of_any_size: c.wear.min.into(), "fewest erases of a block";
    Real "erases_mean" Count level of_any_size: c.wear.mean, "mean erases of a block";
    Integer "erases_max" Count level of_any_size: c.wear.max.into(), "most erases of a block";
    Real "percentage_used" Percent level of_any_size: c.wear.percentage_used,
        "mean erases over rated cycles, as in NVMe SMART; may exceed 100";
}

impl DriveCounters {
    /// All declared counters, including those of mechanisms in the device file.
    pub fn readings(counters: Option<&Self>) -> Vec<Reading> {
        readings(counters)
            .chain(readings(counters.and_then(|c| c.energy.as_ref())))
            .chain(readings(counters.and_then(|c| c.thermal.as_ref())))
            .chain(readings(counters.and_then(|c| c.held_up.as_ref())))
            .chain(readings(counters.and_then(|c| c.ecc.as_ref())))
            .chain(readings(counters.and_then(|c| c.housekeeping.as_ref())))
            .chain(readings(counters.and_then(|c| c.reduction.as_ref())))
            .chain(readings(counters.and_then(|c| c.slc_cache.as_ref())))
            .chain(readings(counters.and_then(|c| c.bad_blocks.as_ref())))
            .chain(readings(counters.and_then(|c| c.cell_care.as_ref())))
            .chain(readings(counters.and_then(|c| c.integrity.as_ref())))
            .chain(readings(counters.and_then(|c| c.die_parity.as_ref())))
            .chain(readings(counters.and_then(|c| c.mapping_cache.as_ref())))
            .chain(readings(counters.and_then(|c| c.read_ahead.as_ref())))
            .collect()
    }
}

impl<R: Recorder> Ssd<R> {
    fn cell_care(&self) -> Option<CellCareCounters> {
        let ecc = self.backend.mechanisms.ecc.as_ref()?;
        ecc.care_counters(self.ftl.table(), self.backend.now)
    }

    pub fn counters(&self) -> DriveCounters {
        let (c, allocated) = (self.ftl.counters(), self.ftl.allocated());
        let bytes = |slots: u64| slots * u64::from(SLOT_BYTES);
        let slc = self.front.log().map(SlcCache::counters);
        DriveCounters {
            host_write_bytes: self.host_write_bytes(),
            host_read_bytes: self.host_read_bytes,
            unmapped_read_bytes: bytes(self.unmapped_read_slots),
            nand_write_bytes: self.nand_write_bytes(),
            gc_moved_bytes: allocated.gc.0,
            wear_moved_bytes: allocated.wear.0,
            padding_bytes: allocated.padding.0 + bytes(slc.map_or(0, |slc| slc.padding)),
            trimmed_bytes: bytes(c.trimmed_slots + slc.map_or(0, |slc| slc.trimmed)),
            collections: c.collections,
            wear: self.ftl.wear().summary(),
            housekeeping: self.mechanisms.housekeeping.as_ref().map(|h| h.counters),
            ecc: self.backend.mechanisms.ecc.as_ref().map(|ecc| ecc.counters),
            energy: self.energy_until(self.backend.now),
            thermal: self.thermal_at(self.backend.now),
            held_up: self.mechanisms.endurance.as_ref().map(|plan| plan.held_up()),
            slc_cache: slc,
            reduction: self.ftl.reduction().copied(),
            bad_blocks: self.ftl.bad_blocks().map(BadBlocks::counters),
            cell_care: self.cell_care(),
            integrity: self.mechanisms.integrity.as_ref().map(|integrity| integrity.counters()),
            die_parity: self.die_parity_counters(),
            mapping_cache: self.mechanisms.mapping_cache.as_ref().map(|cache| cache.counts),
            read_ahead: self.mechanisms.read_ahead.as_ref().map(|ahead| ahead.counts),
        }
    }

    /// Energy consumed until `time`, which must be close to now. Operations in progress count in
    /// full.
    pub fn energy_until(&self, time: Nanos) -> Option<Energy> {
        let config = self.config.sections.power.as_ref()?;
        let (active, link) = (self.active.until(time), self.frontend.link_busy());
        Some(Energy::of(config, &self.backend.busy, active, link, time))
    }

    /// Temperature at `time`, which must be close to now, and throttling until then.
    pub fn thermal_at(&self, time: Nanos) -> Option<ThermalCounters> {
        let joules = self.energy_until(time)?.total();
        self.mechanisms.thermal.as_ref().map(|thermal| thermal.counters(time, joules))
    }
}
