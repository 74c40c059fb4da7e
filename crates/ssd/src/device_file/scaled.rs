//! Scales a drive down so that its performance stays the same as that of the full drive.
//!
//! Time and volume shrink by the same factor, so rates do not change:
//!
//! * The number of reclaim units, and every pool counted in them, stays the same, as do
//!   over-provisioning, write amplification and wear per drive fill. Blocks get fewer word lines.
//! * Dies, planes, channels, pages and their times stay the same, and so does the work per I/O.
//! * The erase time shrinks with the block. If erases are suspended in steps that reads wait for,
//!   the erase time stays the same, and only one of several erases takes this time.
//! * The idle delay, the intervals and duration of checkpoints, the interval and length of patrols,
//!   the heat capacity, the planned life, the interval of relocations from a lost die, the SLC
//!   cache and the cached portion of the mapping table shrink with the drive.
//!
//! The write buffer cannot shrink as far because it must keep all dies busy together with the
//! largest command, and hold the open units of all streams. The resulting error is approximately
//! proportional to the scale, so results at two scales can be extrapolated.
//!
//! On the SATA drive preset, for WSAT up to four drive fills, device time and volume are within 0.1
//! % at 1/32. With fewer blocks instead of smaller blocks, they are already off by 7 % at 1/4
//! because the garbage collection reserve cannot shrink.

use writecliff_base::located::Change;
use writecliff_base::{Bytes, Nanos, SLOT_BYTES};

use crate::DeviceConfig;
use crate::mechanisms::indirection_units::MERGED_SHARE;

const SOURCE: &str = "scaled";
/// Capacity of the simulated drive if the original has more pages than page numbers; this capacity
/// takes 4 GB of memory. The value does not depend on the machine, so that results do not either.
const BEYOND_AS: f64 = 2e12;
/// Program units in the buffer per die: one unit is programmed while the next is filled.
const UNITS_PER_DIE: u64 = 2;

/// A change of a drive's size, as input to the sections of mechanisms.
pub(crate) struct Resizing<'a> {
    /// The drive before the change.
    pub config: &'a DeviceConfig,
    /// Capacity before the change divided by the capacity after it, and the inverse ratio.
    pub scale: f64,
    pub factor: f64,
    /// Capacity and die count after the change.
    pub capacity: Bytes,
    pub dies: u32,
}

/// Returns the supported scale factors in descending order, excluding 1.
pub fn scales(config: &DeviceConfig) -> Vec<f64> {
    let lines = config.word_lines();
    let counts = (0..u32::BITS).map(|n| 1 << n).take_while(|&count| count < lines);
    counts.map(|count| f64::from(lines) / f64::from(count)).collect()
}

/// Returns the smallest scale factor at which the drive can be simulated: 1 unless it has too many
/// pages. Otherwise the factor reduces the drive to 2 TB or less, or as far as possible.
pub fn least_scale(config: &DeviceConfig) -> f64 {
    if config.check_addresses().is_ok() {
        return 1.0;
    }
    let scales = scales(config);
    let most = config.user_capacity.0 as f64 / BEYOND_AS;
    let enough = scales.iter().rev().find(|&&scale| scale >= most);
    enough.or(scales.first()).copied().unwrap_or(1.0)
}

/// Returns the nearest scale with whole word lines, which keeps the share of spare flash.
pub fn nearest_scale(config: &DeviceConfig, scale: f64) -> f64 {
    let lines = f64::from(config.word_lines());
    lines / (lines / scale).round_ties_even().clamp(1.0, lines)
}

/// Returns the device file changes for a drive that is `scale` times smaller. `largest_io` is the
/// largest command of the workload, which must fit into the buffer.
pub fn scaled(config: &DeviceConfig, scale: f64, largest_io: Bytes) -> Vec<Change> {
    let (shape, controller) = (&config.geometry.shape, &config.controller);
    let bits = shape.cell.page_types();
    let lines = (f64::from(shape.pages_per_block) / f64::from(bits) / scale).round_ties_even();
    let capacity = Bytes(slots(config.user_capacity.0 as f64 / scale).max(1) * SLOT_BYTES);
    let buffer = buffer(config, scale, largest_io);
    let mut changes = vec![
        Change::new("flash.pages_per_block", (lines.max(1.0) as u32 * bits) as i64, SOURCE),
        size("controller.write_buffer", buffer),
        size("user_capacity", capacity),
        shorter("controller.idle_delay", controller.idle_delay, scale),
    ];
    changes.extend(erases(config, scale));
    let (dies, factor) = (config.geometry.dies, 1.0 / scale);
    let resizing = Resizing { config, scale, factor, capacity, dies };
    changes.extend(config.sections.present().flat_map(|section| section.scaled(&resizing)));
    changes
}

fn buffer(config: &DeviceConfig, scale: f64, largest_io: Bytes) -> Bytes {
    let units =
        (UNITS_PER_DIE * u64::from(config.geometry.dies)).max(u64::from(config.ftl.streams) + 1);
    let needed = units * config.word_line_bytes() * config.pieces_per_slot();
    let needed = needed + config.sections.buffer_bytes(&config.geometry) + largest_io.0;
    let merged = config.merged_bytes();
    let needed = (needed + merged).max(MERGED_SHARE * merged);
    let whole = config.controller.write_buffer.0;
    Bytes(needed.min(whole).max(slots(whole as f64 / scale) * SLOT_BYTES))
}

/// Preserves the fraction of time that dies spend erasing.
fn erases(config: &DeviceConfig, scale: f64) -> Vec<Change> {
    let timing = &config.timing;
    if timing.erase_suspend_step == Nanos::ZERO {
        return vec![shorter("flash.erase", timing.erase, scale)];
    }
    let before = f64::from(timing.erase_portions);
    let portions = (before * scale).round_ties_even();
    vec![
        shorter("flash.erase", timing.erase, before * scale / portions),
        Change::new("flash.erase_portions", portions as i64, SOURCE),
    ]
}

/// Returns the change to a time that shrinks with the drive.
pub(crate) fn shorter(key: &str, time: Nanos, scale: f64) -> Change {
    let least = if time == Nanos::ZERO { 0.0 } else { 1.0 };
    let ns = (time.0 as f64 / scale).round_ties_even().max(least);
    change(key, format!("{ns} ns"))
}

pub(crate) fn change(key: &str, value: String) -> Change {
    Change::new(key, value, SOURCE)
}

pub(crate) fn size(key: &str, bytes: Bytes) -> Change {
    change(key, format!("{} B", bytes.0))
}

pub(crate) fn slots(bytes: f64) -> u64 {
    (bytes / SLOT_BYTES as f64).round_ties_even() as u64
}
