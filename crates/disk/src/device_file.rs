//! Reads device files of disks (TOML).
//!
//! A file with a table `[disk]` describes a disk. As for SSDs, every key is one line here, and
//! unknown keys are rejected with file, line and the most similar key.

mod scaled;

use writecliff_base::Bytes;
use writecliff_base::located::{LocatedError, LocatedToml, Table};
use writecliff_base::located::{positive_rate, positive_time};
use writecliff_host_interface::{Identity, LinkConfig};

use crate::config::{
    CacheConfig, ControllerConfig, DiskConfig, FlashCacheConfig, Impossible, MechanicsConfig,
    Recalibration,
};
use crate::layout::SECTOR_BYTES;

pub use scaled::{SCALES, scaled};

type Answer<T> = Result<T, LocatedError>;

/// Whether the file describes a disk.
pub fn is_disk(toml: &LocatedToml) -> bool {
    toml.root().keys().contains(&"disk")
}

/// Reads the device file of a disk. `file_name` is used in messages only; `seed` selects the
/// accesses that need retries.
pub fn read(text: &str, file_name: &str, seed: u64) -> Answer<DiskConfig> {
    describe(&LocatedToml::parse(text, file_name)?, seed)
}

/// Reads a device file that is already parsed.
pub fn describe(toml: &LocatedToml, seed: u64) -> Answer<DiskConfig> {
    let root = toml.root();
    let identity = Identity::read(&root)?;
    let user_capacity = root.required_size("user_capacity")?;
    if user_capacity.0 < 1 << 20 || user_capacity.0 > 64 << 40 {
        let message = format!("user_capacity is {user_capacity}; it must be 1 MiB to 64 TiB");
        return Err(root.error("user_capacity", message, None));
    }
    let disk = root.required_table("disk")?;
    let cache = root.required_table("cache")?;
    let controller = root.required_table("controller")?;
    let link = root.required_table("link")?;
    let flash = root.optional_table("flash_cache")?;
    let config = DiskConfig {
        identity,
        // Drop an incomplete last sector.
        user_capacity: Bytes(user_capacity.0 / SECTOR_BYTES * SECTOR_BYTES),
        mechanics: mechanics(&disk)?,
        cache: read_cache(&cache)?,
        controller: ControllerConfig {
            command_time: controller.required_time("command_time")?,
            latency: controller.required_time("latency")?,
            age_limit: positive_time(&controller, "age_limit")?,
        },
        link: LinkConfig::read(&link)?,
        flash_cache: flash.as_ref().map(flash_cache).transpose()?,
        seed,
        canonical: root.canonical(&Identity::DOCUMENTARY),
    };
    check_together(&disk, &config)?;
    check_queues(&link, &config)?;
    if let (Some(table), Some(flash)) = (&flash, &config.flash_cache) {
        check_blocks(table, flash, config.user_capacity)?;
    }
    for table in [disk, cache, controller, link].into_iter().chain(flash) {
        table.finish()?;
    }
    root.finish()?;
    Ok(config)
}

fn mechanics(table: &Table<'_>) -> Answer<MechanicsConfig> {
    let count = |key: &str, least: u64, most: u64| {
        table.required_integer(key, least..=most).map(|n| n as u32)
    };
    let m = MechanicsConfig {
        rpm: count("rpm", 1000, 30_000)?,
        heads: count("heads", 1, 64)?,
        zones: count("zones", 1, 256)?,
        outer_rate: positive_rate(table, "outer_rate")?,
        inner_rate: positive_rate(table, "inner_rate")?,
        seek_track: positive_time(table, "seek_track")?,
        seek_average: positive_time(table, "seek_average")?,
        seek_full: positive_time(table, "seek_full")?,
        head_switch: positive_time(table, "head_switch")?,
        write_settle: table.required_time("write_settle")?,
        seek_margin: table.required_time("seek_margin")?,
        retry_probability: table.required_percent("retry_probability", 0.0..=50.0)? / 100.0,
        retries: count("retries", 0, 1000)?,
        recalibration: recalibration(table)?,
    };
    if m.inner_rate > m.outer_rate {
        let message = format!("inner_rate is {}, above outer_rate {}", m.inner_rate, m.outer_rate);
        let hint = "inner tracks are shorter and hold fewer sectors".to_owned();
        return Err(table.error("inner_rate", message, Some(hint)));
    }
    Ok(m)
}

fn recalibration(table: &Table<'_>) -> Answer<Option<Recalibration>> {
    const INTERVAL: &str = "recalibration_interval";
    const RADII: &str = "recalibration_radii";
    if !table.has(INTERVAL) {
        if table.has(RADII) {
            let message = format!("{RADII} needs {INTERVAL}, which is missing");
            return Err(table.error(RADII, message, None));
        }
        return Ok(None);
    }
    let interval = positive_time(table, INTERVAL)?;
    let radii = table.required_integer(RADII, 1..=64)? as u32;
    Ok(Some(Recalibration { interval, radii }))
}

fn read_cache(table: &Table<'_>) -> Answer<CacheConfig> {
    let count = |key: &str, most: u64| table.required_integer(key, 1..=most).map(|n| n as u32);
    let size = table.required_size("size")?;
    let segments = count("segments", 1024)?;
    if size.0 / 2 / u64::from(segments) < SECTOR_BYTES {
        let message = format!("size is {size}; half of it is too small for {segments} segments");
        return Err(table.error("size", message, None));
    }
    Ok(CacheConfig {
        size,
        segments,
        write_cache: table.required_flag("write_cache")?,
        cached_writes: count("cached_writes", 4096)?,
    })
}

fn flash_cache(table: &Table<'_>) -> Answer<FlashCacheConfig> {
    let config = FlashCacheConfig {
        size: table.required_size("size")?,
        block: table.required_size("block")?,
        promote_after: table.required_integer("promote_after", 1..=255)? as u32,
        read_time: positive_time(table, "read_time")?,
        bandwidth: positive_rate(table, "bandwidth")?,
    };
    let block = config.block.0;
    if block < 4096 || !block.is_multiple_of(SECTOR_BYTES) || config.size.0 / block == 0 {
        let message = format!("block is {}; it must be 4 KiB to {}", config.block, config.size);
        return Err(table.error("block", message, None));
    }
    Ok(config)
}

/// Checks that layout and seek curve are valid, and that the track skew is shorter than a turn.
fn check_together(table: &Table<'_>, config: &DiskConfig) -> Answer<()> {
    let m = &config.mechanics;
    let turn = config.turn();
    if config.skew() >= turn {
        let message = format!(
            "seek_track and write_settle take {}, longer than a turn of {turn}",
            config.skew()
        );
        return Err(table.error("seek_track", message, None));
    }
    let refused = |impossible: Impossible| {
        let key = match impossible {
            Impossible::Rate => "inner_rate",
            Impossible::Average(..) => "seek_average",
        };
        table.error(key, impossible, None)
    };
    if m.seek_full <= m.seek_track {
        let message = format!("{} is not above seek_track {}", m.seek_full, m.seek_track);
        return Err(table.error("seek_full", message, None));
    }
    let layout = config.layout().map_err(refused)?;
    config.seek_curve(&layout).map_err(refused)?;
    Ok(())
}

/// Checks the limit on commands in flight, which have 16-bit numbers.
fn check_queues(table: &Table<'_>, config: &DiskConfig) -> Answer<()> {
    let in_drive = u64::from(config.link.queues) * u64::from(config.link.queue_depth);
    if in_drive <= 4096 {
        return Ok(());
    }
    let message = format!("the queues hold {in_drive} commands; a disk supports at most 4,096");
    Err(table.error("queue_depth", message, None))
}

/// Checks the limit on flash cache blocks, which have 30-bit numbers.
fn check_blocks(table: &Table<'_>, flash: &FlashCacheConfig, capacity: Bytes) -> Answer<()> {
    let blocks = capacity.max(flash.size).0 / flash.block.0;
    if blocks < 1 << 30 {
        return Ok(());
    }
    let message = format!(
        "block is {}, which makes {blocks} blocks; it must make fewer than 2^30",
        flash.block
    );
    Err(table.error("block", message, None))
}
