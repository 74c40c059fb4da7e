//! What an FTL is told about its drive, checked against the flash that it manages.

use thiserror::Error;
use writecliff_base::content::SECTORS_PER_SLOT;
use writecliff_flash::Geometry;

use crate::gc::GcPolicy;
use crate::placement::PlacementPolicy;
use crate::reduce::ReductionConfig;
use crate::spare::SparePolicy;
use crate::wear_leveling::WearPolicy;

/// An FTL configuration; `check` says whether the flash can carry it.
#[derive(Clone, Debug, PartialEq)]
pub struct FtlConfig {
    /// Capacity that the host sees, in slots.
    pub user_slots: u32,
    /// Streams that the host may use, 0 (the default stream) included.
    pub streams: u16,
    pub gc: GcPolicy,
    pub pacing: Pacing,
    pub placement: PlacementPolicy,
    pub spare: SparePolicy,
    pub wear: WearPolicy,
    /// Paced collection keeps this many reclaim units' worth of slots idle.
    pub gc_start: u32,
    /// The host waits for whole collections while no more than this many are free.
    pub gc_floor: u32,
    /// When the host is idle, collect until this many are free.
    pub gc_idle_target: u32,
    pub rated_cycles: u32,
    pub seed: u64,
    /// `None`: a slot takes a slot, whatever is in it.
    pub reduction: Option<ReductionConfig>,
}

/// How much of a victim moves at a time once the idle slots are below their target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pacing {
    /// As much after each host slot as that slot owes: writes stay smooth.
    Even,
    /// All of it, before the next host slot has its place.
    Whole,
    /// Nothing, whatever `gc_start` says: at `gc_floor` the host waits for whole victims.
    Floor,
}

impl Pacing {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Even => "even",
            Self::Whole => "whole",
            Self::Floor => "floor",
        }
    }
}

/// A configuration that the flash cannot carry.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{message}")]
pub struct ConfigError {
    pub key: &'static str,
    pub message: String,
}

impl FtlConfig {
    /// Reclaim units' worth of slots that stay idle under one stream: collection circulates through
    /// the rest, so this is what theory must leave out of the spare space.
    pub fn reserved_units(&self) -> u32 {
        if self.pacing == Pacing::Floor { self.gc_floor } else { self.gc_start }
    }

    /// Units in which space is counted in a slot.
    #[inline]
    const fn grains_per_slot(&self) -> u32 {
        if self.reduction.is_some() { SECTORS_PER_SLOT } else { 1 }
    }

    /// Grains of so many slots.
    #[inline]
    pub const fn grains(&self, slots: u32) -> u32 {
        slots * self.grains_per_slot()
    }

    /// Slots that hold so many grains.
    #[inline]
    pub const fn slots_of(&self, grains: u32) -> u32 {
        grains.div_ceil(self.grains_per_slot())
    }

    pub fn check(&self, geometry: &Geometry) -> Result<(), ConfigError> {
        let fail = |key, message: String| Err(ConfigError { key, message });
        if self.streams == 0 || self.streams > 128 {
            return fail("streams", format!("streams is {}; it must be 1 to 128", self.streams));
        }
        if let PlacementPolicy::PerHandle { isolated } = self.placement {
            let all = u128::MAX >> (128 - self.streams);
            if isolated & !all != 0 || isolated & all == all || isolated == 0 {
                return fail(
                    "isolated_streams",
                    format!(
                        "placement 'per-handle' isolates some of the {} streams, not none, all or \
                         others; for all there is 'own', for none 'shared'",
                        self.streams
                    ),
                );
            }
        }
        if self.spare == SparePolicy::SelfTuned && self.placement != PlacementPolicy::Own {
            let placement = self.placement.name();
            return fail(
                "spare",
                format!(
                    "spare space that tunes itself keeps an account for each stream, and placement \
                     '{placement}' mixes them; it wants placement 'own'"
                ),
            );
        }
        if self.gc_floor < 2 {
            return fail(
                "gc_floor",
                format!(
                    "gc_floor is {}; collection itself opens units, so it needs 2 or more",
                    self.gc_floor
                ),
            );
        }
        if self.gc_start <= self.gc_floor {
            return fail(
                "gc_start",
                format!(
                    "gc_start is {}; it must be above gc_floor ({})",
                    self.gc_start, self.gc_floor
                ),
            );
        }
        if self.rated_cycles == 0 {
            return fail("rated_cycles", "rated_cycles is 0; a data sheet gives it".to_owned());
        }
        let per_unit = u64::from(geometry.slots_per_reclaim_unit);
        // Open units (one a stream for the host, one for collected data) can be nearly empty while
        // everything else is full of valid data: collection must then still gain space.
        let open = 2 * u64::from(self.streams) + u64::from(self.gc_start) + 1;
        let usable = u64::from(geometry.reclaim_units).saturating_sub(open) * per_unit;
        if u64::from(self.user_slots) >= usable {
            let needed = u64::from(self.user_slots).div_ceil(per_unit) + open + 1;
            return fail(
                "user_capacity",
                format!(
                    "the user capacity needs {needed} reclaim units with {} streams, gc_start {}: \
                     the flash has {}",
                    self.streams, self.gc_start, geometry.reclaim_units
                ),
            );
        }
        Ok(())
    }
}
