//! Resizes a drive so that the files of a trace fill it.
//!
//! A capture of a few gigabytes leaves an actual drive nearly empty, and on such a drive all data
//! placement schemes perform equally well. The drive is therefore reduced. Over-provisioning,
//! planes, page size and times stay the same. The reclaim unit size also stays the same while there
//! are enough reclaim units. If there are too few, reclaim units shrink and dies are removed,
//! because streams and garbage collection need a number of units rather than bytes. Removing dies
//! changes the flash bandwidth.

use thiserror::Error;
use writecliff_base::located::{Change, LocatedError};
use writecliff_base::{Bytes, SLOT_BYTES};

use super::scaled::{Resizing, size};
use crate::DeviceConfig;

const SOURCE: &str = "resized";
const UNITS_MIN: u64 = 256;
/// Least spare reclaim units: many more than streams and garbage collection keep open.
const SPARE_UNITS: u64 = 16;
const SPARE_UNITS_PER_STREAM: u64 = 4;

/// Error while deriving a drive.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{message}")]
pub struct DeriveError {
    /// Problem with the drive or its device file.
    pub message: String,
    /// Suggested correction, such as the accepted values.
    pub hint: Option<String>,
}

impl From<LocatedError> for DeriveError {
    fn from(error: LocatedError) -> Self {
        Self { message: error.to_string(), hint: error.hint }
    }
}

#[derive(Clone, Copy)]
struct Flash {
    channels: u32,
    dies_per_channel: u32,
    word_lines: u32,
    units: u64,
    line_bytes: u64,
}

impl Flash {
    fn unit_bytes(self) -> u64 {
        u64::from(self.channels * self.dies_per_channel * self.word_lines) * self.line_bytes
    }
}

/// Returns the device file changes for a drive with a user capacity of about `capacity`.
///
/// `units` is the approximate number of reclaim units; if it is `None`, reclaim units retain their
/// size while there are enough for `streams`.
pub fn resized(
    config: &DeviceConfig,
    capacity: Bytes,
    streams: u16,
    units: Option<u64>,
) -> Result<Vec<Change>, DeriveError> {
    let (shape, ftl) = (&config.geometry.shape, &config.ftl);
    let capacity_bytes = capacity.0 as f64;
    let spare = config.geometry.raw_bytes().0 as f64 / config.user_capacity.0 as f64;
    let raw_bytes = capacity_bytes * spare;
    let old = Flash {
        channels: shape.channels,
        dies_per_channel: shape.dies_per_channel,
        word_lines: config.word_lines(),
        units: shape.blocks_per_plane.into(),
        line_bytes: config.word_line_bytes(),
    };
    let units = units.unwrap_or_else(|| {
        let needed = SPARE_UNITS + SPARE_UNITS_PER_STREAM * u64::from(streams);
        let least = (needed as f64 / (1.0 - 1.0 / spare)).ceil() as u64;
        let same_size = (raw_bytes / old.unit_bytes() as f64).round_ties_even() as u64;
        same_size.min(old.units).max(least).max(UNITS_MIN)
    });
    let new = fitting(old, raw_bytes, units);
    let new_raw = (new.units * new.unit_bytes()) as f64;
    let new_capacity = Bytes((new_raw / spare) as u64 / SLOT_BYTES * SLOT_BYTES);
    let off = new_capacity.0 as f64 / capacity_bytes - 1.0;
    if (new.units as f64) < 0.75 * units as f64 || off.abs() > 0.05 {
        return Err(too_small(config, capacity, units, (units * new.unit_bytes()) as f64 / spare));
    }
    // Pools whose sizes are in units retain their fraction of the flash, as far as GC permits.
    let pool = |units: u32, least: u32| {
        let scaled = f64::from(units) * new.units as f64 / old.units as f64;
        i64::from(least).max(scaled.round_ties_even() as i64)
    };
    let floor = ftl.gc_low_watermark;
    let pages = new.word_lines * shape.cell.page_types();
    let mut changes = vec![
        Change::new("flash.channels", i64::from(new.channels), SOURCE),
        Change::new("flash.dies_per_channel", i64::from(new.dies_per_channel), SOURCE),
        Change::new("flash.pages_per_block", i64::from(pages), SOURCE),
        Change::new("flash.blocks_per_plane", new.units as i64, SOURCE),
        Change::new("ftl.gc_high_watermark", pool(ftl.gc_high_watermark, floor + 1), SOURCE),
        Change::new("ftl.gc_idle_watermark", pool(ftl.gc_idle_watermark, floor + 2), SOURCE),
        size("user_capacity", new_capacity),
    ];
    let dies = new.channels * new.dies_per_channel;
    let factor = capacity_bytes / config.user_capacity.0 as f64;
    let (scale, capacity) = (1.0 / factor, new_capacity);
    let resizing = Resizing { config, scale, factor, capacity, dies };
    changes.extend(config.sections.present().flat_map(|section| section.resized(&resizing)));
    Ok(changes)
}

/// Returns flash like `old` for `raw_bytes` in about `wanted` units, best with fewer word lines.
fn fitting(old: Flash, raw_bytes: f64, wanted: u64) -> Flash {
    let mut new = Flash { word_lines: 1, ..old };
    let units = |flash: Flash| raw_bytes / flash.unit_bytes() as f64;
    while units(new) < 0.75 * wanted as f64 && new.channels * new.dies_per_channel > 1 {
        if new.dies_per_channel > 1 {
            new.dies_per_channel = new.dies_per_channel.div_ceil(2);
        } else {
            new.channels = new.channels.div_ceil(2);
        }
    }
    let lines = (units(new) / wanted as f64).round_ties_even() as u32;
    new.word_lines = lines.min(old.word_lines).max(1);
    new.units = units(new).round_ties_even().max(1.0) as u64;
    new
}

fn too_small(config: &DeviceConfig, capacity: Bytes, units: u64, smallest: f64) -> DeriveError {
    DeriveError {
        message: format!(
            "a drive of {:.1} MB, which the files would fill, is too small for {units} reclaim \
             units",
            capacity.0 as f64 / 1e6
        ),
        hint: Some(format!(
            "the smallest {} has {:.0} MB: use a larger load, a smaller --fill, or fewer streams",
            config.identity.name,
            smallest / 1e6
        )),
    }
}
