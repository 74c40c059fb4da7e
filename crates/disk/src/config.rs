//! A disk's description, checked: what `device_file.rs` makes of a TOML file.

use thiserror::Error;
use writecliff_base::{Bytes, BytesPerSecond, Nanos};
use writecliff_host_interface::{Identity, LinkConfig};

use crate::layout::{Layout, Shape};
use crate::seek::SeekCurve;

/// Platters, arm and spindle.
#[derive(Clone, Debug, PartialEq)]
pub struct MechanicsConfig {
    /// Revolutions a minute.
    pub rpm: u32,
    /// Surfaces with data.
    pub heads: u32,
    pub zones: u32,
    /// Sustained rate in the outermost zone.
    pub outer_rate: BytesPerSecond,
    /// Sustained rate in the innermost zone.
    pub inner_rate: BytesPerSecond,
    /// To the next track, including settling for a read.
    pub seek_track: Nanos,
    /// Mean over all pairs of tracks.
    pub seek_average: Nanos,
    /// Over all tracks.
    pub seek_full: Nanos,
    /// To another surface of the same cylinder.
    pub head_switch: Nanos,
    /// What a write needs besides until the head is steady enough.
    pub write_settle: Nanos,
    /// By how much the arm may be late: what it would only just reach is left for the next turn.
    pub seek_margin: Nanos,
    /// Probability that an access to the media has to be repeated one turn later.
    pub retry_probability: f64,
    /// Repetitions of one access at most.
    pub retries: u32,
    pub recalibration: Option<Recalibration>,
}

/// The servo measures from time to time where the tracks are now that the drive is warmer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recalibration {
    pub interval: Nanos,
    /// Places along the stroke at which every head is measured, for a turn each.
    pub radii: u32,
}

/// Memory for data that were read, and for data to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// All of it; reads and writes may have half each.
    pub size: Bytes,
    /// Sequential streams of reads that are told apart.
    pub segments: u32,
    /// State of the volatile write cache after power-up.
    pub write_cache: bool,
    /// Writes that the cache can hold, whatever their length.
    pub cached_writes: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerConfig {
    /// Firmware time that a command occupies.
    pub command_time: Nanos,
    /// Time that a command spends in the controller besides.
    pub latency: Nanos,
    /// A command that has waited this long goes before those that are nearer.
    pub age_limit: Nanos,
}

/// Flash before the platters of a hybrid: it keeps what is read often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlashCacheConfig {
    pub size: Bytes,
    /// Unit in which data are kept.
    pub block: Bytes,
    /// Reads of a block from the platters after which it is kept.
    pub promote_after: u32,
    pub read_time: Nanos,
    pub bandwidth: BytesPerSecond,
}

/// A whole disk.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskConfig {
    pub identity: Identity,
    pub user_capacity: Bytes,
    pub mechanics: MechanicsConfig,
    pub cache: CacheConfig,
    pub controller: ControllerConfig,
    pub link: LinkConfig,
    pub flash_cache: Option<FlashCacheConfig>,
    /// Of the choice of accesses that have to be repeated.
    pub seed: u64,
    /// Every value that changes how the disk behaves, one `key = value` a line. Two device files
    /// with the same text describe the same disk; the device hash is taken over it.
    pub canonical: String,
}

/// What the values of a description make impossible together.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Impossible {
    #[error("inner_rate leaves no room for a sector on a track")]
    Rate,
    #[error("seek_average must be {0} to {1} with this seek_track and seek_full")]
    Average(Nanos, Nanos),
}

impl DiskConfig {
    /// Time of one turn of the platters.
    pub fn turn(&self) -> Nanos {
        Nanos(60_000_000_000 / u64::from(self.mechanics.rpm))
    }

    /// Tracks begin later by the time that it takes to go over to them, also for writing.
    pub fn skew(&self) -> Nanos {
        let m = &self.mechanics;
        m.head_switch.max(m.seek_track) + m.write_settle
    }

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

    pub fn seek_curve(&self, layout: &Layout) -> Result<SeekCurve, Impossible> {
        let m = &self.mechanics;
        SeekCurve::new(layout.cylinders(), m.seek_track, m.seek_average, m.seek_full)
            .map_err(|(least, most)| Impossible::Average(least, most))
    }
}
