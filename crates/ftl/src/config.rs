//! FTL configuration and its validation against the flash geometry.

use writecliff_base::reject;
use writecliff_flash::geometry::Values;
use writecliff_flash::{ConfigError, Geometry};
use writecliff_host_interface::content::SECTORS_PER_SLOT;

use crate::gc_destination::GcDestination;
use crate::gc_policy::GcPolicy;
use crate::spare::SparePolicy;
use crate::wear_leveling::WearPolicy;
use crate::{BadBlocks, BadBlocksConfig, ReductionConfig};

/// FTL configuration; `check` validates it against the flash geometry.
#[derive(Clone, Debug, PartialEq)]
pub struct FtlConfig {
    /// User capacity in slots.
    pub user_slots: u64,
    /// Number of streams, including the default stream 0.
    pub streams: u16,
    /// Victim selection policy of GC.
    pub gc: GcPolicy,
    /// Amount of relocation between host writes.
    pub gc_pacing: GcPacing,
    /// Destination of relocated data.
    pub gc_destination: GcDestination,
    /// Division of spare space between streams.
    pub spare: SparePolicy,
    /// Wear levelling policy.
    pub wear: WearPolicy,
    /// Number of reclaim units' worth of slots that incremental GC keeps idle.
    pub gc_high_watermark: u32,
    /// With no more free units than this, the host waits for the relocation of whole victims.
    pub gc_low_watermark: u32,
    /// Number of free units up to which GC runs while the host is idle.
    pub gc_idle_watermark: u32,
    /// Rated program/erase cycles of the flash part.
    pub rated_cycles: u32,
    /// `true` if a power loss discards data that are not yet programmed. If so, replaced data are
    /// retained until the data that replace them are programmed.
    pub volatile_buffer: bool,
    /// Seed for random GC choices and block lifetimes.
    pub seed: u64,
    /// Data reduction; `None` if every slot of data occupies one slot of flash.
    pub reduction: Option<ReductionConfig>,
    /// Bad blocks; `None` if blocks never fail.
    pub bad_blocks: Option<BadBlocksConfig>,
}

/// Relocation step of GC once the number of idle slots is below its target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GcPacing {
    /// Relocates a few slots after each host slot, in proportion, which keeps write latency even.
    Incremental,
    /// Like `Incremental`, but at least `slots` at once, so that the firmware switches less often.
    #[allow(missing_docs, reason = "the variant defines it")]
    Quanta { slots: u32 },
    /// Relocates the whole victim before the next host slot is written.
    PerVictim,
    /// Nothing above `gc_low_watermark` free units; then the host waits for whole victims.
    OnDemand,
}

impl FtlConfig {
    /// Returns the number of reclaim units' worth of slots that stay idle with one stream. GC
    /// circulates through the rest only, so theory must exclude these units from the spare space.
    pub fn reserved_units(&self) -> u32 {
        if self.gc_pacing == GcPacing::OnDemand {
            self.gc_low_watermark
        } else {
            self.gc_high_watermark
        }
    }

    #[inline]
    const fn alloc_units_per_slot(&self) -> u32 {
        if self.reduction.is_some() { SECTORS_PER_SLOT } else { 1 }
    }

    /// Returns the number of allocation units in `slots` slots.
    #[inline]
    pub const fn alloc_units(&self, slots: u32) -> u32 {
        slots * self.alloc_units_per_slot()
    }

    /// Returns the number of slots needed for `alloc_units` allocation units.
    #[inline]
    pub const fn slots_of(&self, alloc_units: u32) -> u32 {
        alloc_units.div_ceil(self.alloc_units_per_slot())
    }

    /// Returns the number of units of each reclaim group that can be nearly empty while all others
    /// are full of valid data. The count includes the open units (one per stream for the host, one
    /// for relocated data) and the units that GC keeps free. With several groups, a full group may
    /// take one more unit of data for every handle, plus one unit, before other groups take the
    /// data.
    pub(crate) fn units_needed(&self, groups: u32) -> u64 {
        2 * (u64::from(self.streams) / u64::from(groups)) + u64::from(self.gc_high_watermark) + 1
    }

    /// Returns the blocks of a new drive; `None` if blocks never fail.
    pub fn blocks(&self, geometry: &Geometry) -> Option<BadBlocks> {
        let per_unit = u64::from(geometry.slots_per_reclaim_unit);
        let least = self.user_slots / per_unit + self.units_needed(1) + 1;
        let config = self.bad_blocks?;
        Some(BadBlocks::new(config, geometry, self.seed, least.min(u64::from(u32::MAX)) as u32))
    }

    /// Checks streams, watermarks and spare space against `geometry`.
    pub fn check(&self, geometry: &Geometry) -> Result<(), ConfigError> {
        let (low, high) = (self.gc_low_watermark, self.gc_high_watermark);
        reject! { Values,
            "streams" if self.streams == 0 || self.streams > 128 =>
                "streams is {}; it must be 1 to 128", self.streams;
        }
        if let GcDestination::PerHandle { isolated } = self.gc_destination {
            let handles = self.streams / geometry.reclaim_groups as u16;
            let all = u128::MAX >> (128 - handles);
            let is_odd = isolated & !all != 0 || isolated == all || isolated == 0;
            reject! { Values,
                "isolated_streams" if is_odd =>
                    "isolated_streams must list some of the {handles} streams, but not all; to \
                     isolate all streams, use gc_destination 'per-stream'; to isolate none, use \
                     'shared'";
            }
        }
        let is_per_stream = self.gc_destination == GcDestination::PerStream;
        reject! { Values,
            "spare" if self.spare == SparePolicy::SelfTuned && !is_per_stream =>
                "spare 'self-tuned' accounts for each stream separately, but gc_destination \
                 '{}' mixes streams; it requires gc_destination 'per-stream'",
                self.gc_destination.name();
            "gc_low_watermark" if low < 2 =>
                "gc_low_watermark is {low}; it must be 2 or more because GC itself opens units";
            "gc_high_watermark" if high <= low =>
                "gc_high_watermark is {high}; it must be above gc_low_watermark ({low})";
            "rated_cycles" if self.rated_cycles == 0 =>
                "rated_cycles is 0; it must be 1 or more";
        }
        self.check_capacity(geometry, geometry.slots_per_reclaim_unit)
    }

    /// Checks that the flash holds the user capacity and the garbage collection reserve if only
    /// `slots` of each reclaim unit can be written.
    pub(crate) fn check_capacity(&self, flash: &Geometry, slots: u32) -> Result<(), ConfigError> {
        let per_unit = u64::from(slots);
        // GC must still gain space even if the open units are nearly empty.
        let groups = flash.reclaim_groups;
        let open = if groups == 1 {
            self.units_needed(1)
        } else {
            let handles = u64::from(self.streams) / u64::from(groups);
            u64::from(groups) * (self.units_needed(groups) + handles + 1)
        };
        let all = flash.reclaim_units;
        let units = self.blocks(flash).map_or(all, |blocks| blocks.usable_units());
        let usable = u64::from(units).saturating_sub(open) * per_unit;
        let needed = self.user_slots.div_ceil(per_unit) + open + 1;
        reject! { Values,
            "user_capacity" if self.user_slots >= usable && units < all =>
                "user_capacity needs {needed} reclaim units, but factory bad blocks leave only \
                 {units} of {all}";
            "user_capacity" if self.user_slots >= usable =>
                "user_capacity needs {needed} reclaim units with {} streams and \
                 gc_high_watermark {}, but the flash has only {all}",
                self.streams, self.gc_high_watermark;
        }
        Ok(())
    }
}
