//! Scales a drive down so that its performance stays that of the whole drive.
//!
//! Time and volume shrink by the same factor, so rates do not change. For this,
//!
//! * the number of reclaim units and every pool counted in them stays, and with it
//!   over-provisioning, write amplification and wear per drive fill: blocks get fewer word lines;
//! * dies, planes, channels, pages and their times stay, and with them the work of one I/O;
//! * the time of an erase shrinks with the block;
//! * the idle delay, the intervals and time of checkpoints, the interval and length of patrols, the
//!   heat capacity, the planned life, the interval of relocations from a lost die, the SLC cache
//!   and what is held of the mapping table shrink with the drive.
//!
//! The write buffer cannot shrink as far, because it must keep all dies busy along with the largest
//! command and hold the open units of all streams. The resulting error is about proportional to the
//! scale, so results at two scales can be extrapolated.
//!
//! Measured on the shipped SATA drive, WSAT up to four drive fills: device time and volume are
//! within 0.1 % at 1/32. With fewer blocks instead of smaller ones they are off by 7 % at 1/4
//! already, because the reserve of garbage collection cannot shrink.

use writecliff_base::located::Change;
use writecliff_base::{Bytes, Nanos};
use writecliff_flash::geometry::SLOT_BYTES;

use crate::config::DeviceConfig;
use crate::mechanisms::power_loss::recovery::RecoveryConfig;
use crate::mechanisms::slc_cache::SlcCacheConfig;

const SOURCE: &str = "scaled";
/// Capacity of a simulation of a drive that is beyond page numbers: it needs 4 GB of memory. The
/// same on every machine, as results are.
const BEYOND_AS: f64 = 2e12;
/// Program units in the buffer per die: one is programmed while the next one fills.
const UNITS_PER_DIE: u64 = 2;

/// Supported scale factors, largest first, without 1.
pub fn scales(config: &DeviceConfig) -> Vec<f64> {
    let lines = config.word_lines();
    let counts = (0..u32::BITS).map(|n| 1 << n).take_while(|&count| count < lines);
    counts.map(|count| f64::from(lines) / f64::from(count)).collect()
}

/// The least scale at which the drive can be simulated: 1 unless it is beyond page numbers. Then it
/// is what leaves 2 TB or less, or as little as can be.
pub fn least_scale(config: &DeviceConfig) -> f64 {
    if config.check_addresses().is_ok() {
        return 1.0;
    }
    let scales = scales(config);
    let most = config.user_capacity.0 as f64 / BEYOND_AS;
    let enough = scales.iter().rev().find(|&&scale| scale >= most);
    enough.or(scales.first()).copied().unwrap_or(1.0)
}

/// The scale nearest to `scale` that leaves whole word lines: any other changes the share of spare
/// flash.
pub fn nearest_scale(config: &DeviceConfig, scale: f64) -> f64 {
    let lines = f64::from(config.word_lines());
    lines / (lines / scale).round_ties_even().clamp(1.0, lines)
}

/// Changes to the device file for a drive that is `scale` times smaller. `largest_io` is the
/// largest command of the load, which must fit into the buffer.
pub fn scaled(config: &DeviceConfig, scale: f64, largest_io: Bytes) -> Vec<Change> {
    let (shape, controller) = (&config.geometry.shape, &config.controller);
    let bits = shape.cell.page_types();
    let lines = (f64::from(shape.pages_per_block) / f64::from(bits) / scale).round_ties_even();
    let capacity = Bytes(slots(config.user_capacity.0 as f64 / scale).max(1) * slot_bytes());
    let buffer = buffer(config, scale, largest_io);
    let shorter = |key: &str, time: Nanos| {
        let least = if time == Nanos::ZERO { 0.0 } else { 1.0 };
        let ns = (time.0 as f64 / scale).round_ties_even().max(least);
        Change::new(key, format!("{ns} ns"), SOURCE)
    };
    let mut changes = vec![
        Change::new("flash.pages_per_block", (lines.max(1.0) as u32 * bits) as i64, SOURCE),
        size("controller.write_buffer", buffer),
        size("user_capacity", capacity),
        shorter("flash.erase", config.timing.erase),
        shorter("controller.idle_delay", controller.idle_delay),
    ];
    if let Some(checkpoint) = config.housekeeping.as_ref().and_then(|h| h.checkpoint) {
        let interval = (checkpoint.interval.0 as f64 / scale).round_ties_even() as u64;
        let interval = interval.max(config.word_line_bytes());
        let factor = interval as f64 / checkpoint.interval.0 as f64;
        changes.push(size("housekeeping.checkpoint_interval", Bytes(interval)));
        let ns = (checkpoint.time.0 as f64 * factor).round_ties_even().max(1.0);
        changes.push(Change::new("housekeeping.checkpoint_time", format!("{ns} ns"), SOURCE));
    }
    if let Some(patrol) = config.housekeeping.as_ref().and_then(|h| h.patrol) {
        // A scan has at least one page.
        let length = Nanos(patrol.step.0.max((patrol.length.0 as f64 / scale) as u64));
        let factor = patrol.length.0 as f64 / length.0 as f64;
        let interval = Nanos((patrol.interval.0 as f64 / factor) as u64).max(length);
        for (key, time) in [("patrol_interval", interval), ("patrol_length", length)] {
            let key = format!("housekeeping.{key}");
            changes.push(Change::new(&key, format!("{} ns", time.0), SOURCE));
        }
    }
    let (recovery, standard) = (config.recovery, RecoveryConfig::standard(config.user_capacity));
    if recovery.checkpoint_interval != standard.checkpoint_interval {
        let interval = (recovery.checkpoint_interval.0 as f64 / scale).round_ties_even() as u64;
        let interval = Bytes(interval.max(config.word_line_bytes()));
        changes.push(size("recovery.checkpoint_interval", interval));
    }
    if let Some(thermal) = &config.thermal {
        let joules = format!("{:?} J/C", thermal.capacity / scale);
        changes.push(Change::new("thermal.capacity", joules, SOURCE));
    }
    if let Some(parity) = &config.die_parity {
        changes.push(shorter("die_parity.relocate_interval", parity.relocate_interval));
    }
    changes.extend(config.endurance.map(|plan| shorter("endurance.life", plan.life)));
    let dies = config.geometry.dies;
    let slc = config.slc_cache.as_ref();
    changes.extend(
        slc.into_iter().flat_map(|slc| slc_cache(config, slc, 1.0 / scale, capacity, dies)),
    );
    changes.extend(mapping_cache(config, 1.0 / scale));
    changes
}

/// The SLC cache of a drive with `factor` times the capacity of `config` and `dies` dies: it scales
/// with the capacity, but holds at least a page of every die.
pub(super) fn slc_cache(
    config: &DeviceConfig,
    slc: &SlcCacheConfig,
    factor: f64,
    capacity: Bytes,
    dies: u32,
) -> Vec<Change> {
    let least = u64::from(dies) * config.slc_unit_bytes();
    let scaled = |size: Bytes| slots(size.0 as f64 * factor) * slot_bytes();
    let mut changes =
        vec![size("slc_cache.size", Bytes(scaled(slc.size).max(least).min(capacity.0)))];
    if slc.static_size.0 > 0 {
        changes.push(size("slc_cache.static_size", Bytes(scaled(slc.static_size))));
    }
    changes
}

/// What is held of the mapping table on a drive with `factor` times the capacity of `config`: the
/// same share, but at least a translation page.
pub(super) fn mapping_cache(config: &DeviceConfig, factor: f64) -> Vec<Change> {
    let Some(cache) = config.mapping_cache else { return Vec::new() };
    let pages = |held: Bytes| (held.0 as f64 * factor / cache.page.0 as f64).round_ties_even();
    let held =
        |key, least: f64, held| size(key, Bytes(pages(held).max(least) as u64 * cache.page.0));
    let own = held("mapping_cache.size", 1.0, cache.size);
    let least = pages(cache.size).max(1.0) + 1.0;
    let memory = cache.host_memory;
    let memory = memory.map(|m| held("mapping_cache.host_memory_buffer", least, m.size));
    [own].into_iter().chain(memory).collect()
}

fn buffer(config: &DeviceConfig, scale: f64, largest_io: Bytes) -> Bytes {
    let units =
        (UNITS_PER_DIE * u64::from(config.geometry.dies)).max(u64::from(config.ftl.streams) + 1);
    let needed = units * config.word_line_bytes() * config.pieces_per_slot();
    let needed = needed + config.slc_unit_bytes() + largest_io.0;
    let whole = config.controller.write_buffer.0;
    Bytes(needed.min(whole).max(slots(whole as f64 / scale) * slot_bytes()))
}

pub(super) fn size(key: &str, bytes: Bytes) -> Change {
    Change::new(key, format!("{} B", bytes.0), SOURCE)
}

fn slots(bytes: f64) -> u64 {
    (bytes / f64::from(SLOT_BYTES)).round_ties_even() as u64
}

pub(super) fn slot_bytes() -> u64 {
    u64::from(SLOT_BYTES)
}
