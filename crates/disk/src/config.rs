//! The checked configuration of a disk, as `device_file.rs` reads it from TOML.

use thiserror::Error;
use writecliff_base::{Bytes, BytesPerSecond, Nanos};
use writecliff_host_interface::{Identity, LinkConfig};

use crate::layout::{Layout, Shape};
use crate::seek::SeekCurve;

/// Mechanics of a disk: platters, arm and spindle.
#[derive(Clone, Debug, PartialEq)]
pub struct MechanicsConfig {
    /// Revolutions per minute.
    pub rpm: u32,
    /// Number of heads, that is, surfaces with data.
    pub heads: u32,
    pub zones: u32,
    /// Sustained transfer rate in the outermost zone.
    pub outer_rate: BytesPerSecond,
    /// Sustained transfer rate in the innermost zone.
    pub inner_rate: BytesPerSecond,
    /// Seek time to the next track, including settling for a read.
    pub seek_track: Nanos,
    /// Mean seek time over all pairs of tracks.
    pub seek_average: Nanos,
    /// Full-stroke seek time.
    pub seek_full: Nanos,
    /// Time to switch to another head in the same cylinder.
    pub head_switch: Nanos,
    /// Additional settling time before a write.
    pub write_settle: Nanos,
    /// Margin for late arrival of the arm: the scheduler does not count on a sector that the arm
    /// would reach with less margin before the next turn.
    pub seek_margin: Nanos,
    /// Probability that a media access fails and is retried one turn later.
    pub retry_probability: f64,
    /// Maximum number of retries of one access.
    pub retries: u32,
    pub recalibration: Option<Recalibration>,
}

/// Periodic servo recalibration, which measures track positions as the drive warms up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recalibration {
    pub interval: Nanos,
    /// Number of radii at which every head is measured, for one turn each.
    pub radii: u32,
}

/// DRAM cache for reads and writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// Total size; reads and writes use half each.
    pub size: Bytes,
    /// Number of cache segments, that is, sequential read streams that the cache can track.
    pub segments: u32,
    /// State of the volatile write cache after power-up.
    pub write_cache: bool,
    /// Maximum number of cached writes, regardless of their length.
    pub cached_writes: u32,
}

/// Firmware timing and scheduling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerConfig {
    /// Firmware time per command, during which no other command is processed.
    pub command_time: Nanos,
    /// Additional controller latency per command, which overlaps with other commands.
    pub latency: Nanos,
    /// A command that has waited this long takes precedence over faster accesses.
    pub age_limit: Nanos,
}

/// Flash cache of a hybrid disk, which holds frequently read blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlashCacheConfig {
    pub size: Bytes,
    /// Caching unit.
    pub block: Bytes,
    /// Number of media reads of a block after which it is cached.
    pub promote_after: u32,
    pub read_time: Nanos,
    pub bandwidth: BytesPerSecond,
}

/// Configuration of a disk.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskConfig {
    pub identity: Identity,
    pub user_capacity: Bytes,
    pub mechanics: MechanicsConfig,
    pub cache: CacheConfig,
    pub controller: ControllerConfig,
    pub link: LinkConfig,
    pub flash_cache: Option<FlashCacheConfig>,
    /// Seed for the choice of accesses that need retries.
    pub seed: u64,
    /// Every value that affects the behaviour of the disk, one `key = value` per line. Device files
    /// with equal text describe the same disk; the device hash is computed from it.
    pub canonical: String,
}

/// A combination of values that no disk can have.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Impossible {
    #[error("inner_rate is too low: a track would not hold one sector")]
    Rate,
    #[error("seek_average must be {0} to {1} with these values of seek_track and seek_full")]
    Average(Nanos, Nanos),
}

impl DiskConfig {
    /// Duration of one revolution.
    pub fn turn(&self) -> Nanos {
        Nanos(60_000_000_000 / u64::from(self.mechanics.rpm))
    }

    /// Track skew: each track starts later by the time that switching to it takes, including write
    /// settling.
    pub fn skew(&self) -> Nanos {
        let m = &self.mechanics;
        m.head_switch.max(m.seek_track) + m.write_settle
    }

    /// Computes the sector layout; fails if `inner_rate` is too low.
    pub fn layout(&self) -> Result<Layout, Impossible> {
        let m = &self.mechanics;
        let shape = Shape {
            capacity: self.user_capacity,
            heads: m.heads,
            zones: m.zones,
            turn: self.turn(),
            skew: self.skew(),
            outer_rate: m.outer_rate,
            inner_rate: m.inner_rate,
        };
        Layout::new(&shape).ok_or(Impossible::Rate)
    }

    /// Computes the seek curve; fails if `seek_average` does not fit the other two seek times.
    pub fn seek_curve(&self, layout: &Layout) -> Result<SeekCurve, Impossible> {
        let m = &self.mechanics;
        SeekCurve::new(layout.cylinders(), m.seek_track, m.seek_average, m.seek_full)
            .map_err(|(least, most)| Impossible::Average(least, most))
    }
}
