//! Validated configuration of a disk, as read from TOML by `device_file.rs`.

use thiserror::Error;
use writecliff_base::keys::{Count, Flag, Percent, PositiveRate, PositiveTime, Size, Time};
use writecliff_base::{Bytes, Nanos, section};
use writecliff_host_interface::{Identity, LinkConfig};

use crate::layout::SectorLayout;
use crate::seek::SeekCurve;

section! {
    /// Mechanics of a disk: platters, arm and spindle.
    #[derive(Clone, Debug, PartialEq)]
    pub struct MechanicsConfig {
        rpm: required Count(1000..=30_000), "revolutions per minute";
        heads: required Count(1..=64), "surfaces with data";
        zones: required Count(1..=256), "zones with fewer sectors per track towards the centre";
        outer_rate: required PositiveRate,
            "sustained rate in the first zone, which determines the track capacity";
        inner_rate: required PositiveRate,
            "sustained rate in the last zone, which determines the track capacity";
        seek_track: required PositiveTime,
            "seek time to the next track, including settling for a read";
        seek_average: required PositiveTime, "mean seek time over all pairs of tracks";
        seek_full: required PositiveTime, "full-stroke seek time";
        head_switch: required PositiveTime, "time to switch to another surface";
        write_settle: required Time, "additional settling time of a write";
        seek_margin: required Time,
            "minimum time left before a sector passes; with less, the arm waits for the next \
             revolution";
        retry_probability: required Percent(0.0..=50.0),
            "probability that an access is repeated one revolution later";
        retries: required Count(0..=1000), "maximum number of repetitions of an access";
        recalibration_interval: optional PositiveTime,
            "interval between servo recalibrations";
        recalibration_radii: optional Count(1..=64),
            "number of radii where each head is measured; required with `recalibration_interval`";
    }
}

section! {
    /// DRAM cache for reads and writes.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct CacheConfig {
        size: required Size, "total size; reads and writes use half each";
        segments: required Count(1..=1024),
            "sequential read streams that the cache tracks; each reads ahead while the arm is idle";
        write_cache: required Flag, "state after power-up; when on, writes complete from memory";
        cached_writes: required Count(1..=4096),
            "maximum number of cached writes, regardless of their length";
    }
}

section! {
    /// Firmware timing and scheduling.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ControllerConfig {
        command_time: required Time, "firmware time per command; its inverse is an upper limit on \
         IOPS";
        latency: required Time, "adds latency to each command without delaying others";
        age_limit: required PositiveTime,
            "waiting time after which a command is served before faster accesses";
    }
}

section! {
    /// Flash cache of a hybrid disk, which holds frequently read blocks.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct FlashCacheConfig {
        size: required Size, "total size";
        block: required Size, "caching unit, at least 4 KiB";
        promote_after: required Count(1..=255),
            "number of reads of a block before the block is cached";
        read_time: required PositiveTime, "time until the first data arrive";
        bandwidth: required PositiveRate, "transfer rate after the first data have arrived";
    }
}

/// Configuration of a disk.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskConfig {
    /// Model name and firmware revision that the drive reports.
    pub identity: Identity,
    /// Capacity available to the host.
    pub user_capacity: Bytes,
    /// Spindle, arm and sector layout.
    pub mechanics: MechanicsConfig,
    /// DRAM cache for reads and writes.
    pub cache: CacheConfig,
    /// Controller timing and command ordering.
    pub controller: ControllerConfig,
    /// Host link and command queue.
    pub link: LinkConfig,
    pub(crate) flash_cache: Option<FlashCacheConfig>,
    /// Seed that selects the accesses that need retries.
    pub seed: u64,
    /// All values that affect the disk's behaviour, one `key = value` per line. Device files with
    /// equal canonical text describe the same disk; the device hash is computed from this text.
    pub canonical: String,
}

/// Combination of values that no disk can have.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ImpossibleDisk {
    /// `inner_rate` leaves less than one sector on the innermost tracks.
    #[error("inner_rate is too low: a track would not hold one sector")]
    Rate,
    /// Lowest and highest `seek_average` possible with the other two seek times.
    #[error("seek_average must be {0} to {1} with these values of seek_track and seek_full")]
    Average(Nanos, Nanos),
}

impl MechanicsConfig {
    /// Returns the duration of one revolution.
    pub fn turn(&self) -> Nanos {
        Nanos(60_000_000_000 / u64::from(self.rpm))
    }

    /// Returns the track skew: the time to switch to the next track, including write settling.
    pub(crate) fn skew(&self) -> Nanos {
        self.head_switch.max(self.seek_track) + self.write_settle
    }

    /// Computes the sector layout and the seek curve of a disk with this capacity. Returns an error
    /// if `inner_rate` is too low, or if `seek_average` is inconsistent with the other seek times.
    pub fn geometry(&self, capacity: Bytes) -> Result<(SectorLayout, SeekCurve), ImpossibleDisk> {
        let layout = SectorLayout::new(capacity, self).ok_or(ImpossibleDisk::Rate)?;
        let (track, average, full) = (self.seek_track, self.seek_average, self.seek_full);
        let seeks = SeekCurve::new(layout.cylinders(), track, average, full)
            .map_err(|(least, most)| ImpossibleDisk::Average(least, most))?;
        Ok((layout, seeks))
    }
}
