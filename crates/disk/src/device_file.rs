//! Reads device files (TOML) of hard disks.
//!
//! A file with a `[disk]` table describes a hard disk. `config.rs` declares the table's keys.

use writecliff_base::keys::{Section, SectionKeys, top};
use writecliff_base::located::{Answer, Change, LocatedToml, Table};
use writecliff_base::{SECTOR_BYTES, reject};
use writecliff_host_interface::identity::{InPlace, smaller};
use writecliff_host_interface::{Identity, LinkConfig};

use crate::config::{
    CacheConfig, ControllerConfig, DiskConfig, FlashCacheConfig, ImpossibleDisk, MechanicsConfig,
};

pub use writecliff_host_interface::identity::SCALES;

/// Returns `true` if the file describes a hard disk.
pub fn is_disk(toml: &LocatedToml) -> bool {
    toml.root().keys().contains(&"disk")
}

/// Returns the keys of hard disk device files.
pub fn keys() -> Vec<SectionKeys> {
    vec![
        top::<Identity, InPlace>(),
        MechanicsConfig::documented("disk", true),
        CacheConfig::documented("cache", true),
        ControllerConfig::documented("controller", true),
        LinkConfig::documented("link", true),
        FlashCacheConfig::documented("flash_cache", false),
    ]
}

/// Reads a device file. `file_name` is for messages; `seed` selects the accesses with retries.
pub fn read(text: &str, file_name: &str, seed: u64) -> Answer<DiskConfig> {
    describe(&LocatedToml::parse(text, file_name)?, seed)
}

/// Reads a device file that has already been parsed.
pub fn describe(toml: &LocatedToml, seed: u64) -> Answer<DiskConfig> {
    let root = toml.root();
    let identity = Identity::read_keys(&root)?;
    let user_capacity = InPlace::read_keys(&root)?.whole_sectors();
    let disk = root.required_table("disk")?;
    let cache = root.required_table("cache")?;
    let controller = root.required_table("controller")?;
    let link = root.required_table("link")?;
    let flash = root.optional_table("flash_cache")?;
    let config = DiskConfig {
        identity,
        user_capacity,
        mechanics: mechanics(&disk)?,
        cache: read_cache(&cache)?,
        controller: ControllerConfig::read_keys(&controller)?,
        link: LinkConfig::read_keys(&link)?,
        flash_cache: flash.as_ref().map(flash_cache).transpose()?,
        seed,
        canonical: root.canonical(&Identity::DOCUMENTARY),
    };
    check_together(&disk, &config)?;
    let in_drive = u64::from(config.link.queues) * u64::from(config.link.queue_depth);
    reject! { link,
        "queue_depth" if in_drive > 4096 => // Command tags are 16 bits wide.
            "the queues hold {in_drive} commands; a disk supports at most 4,096";
    }
    if let (Some(table), Some(flash)) = (&flash, &config.flash_cache) {
        // Block numbers in the flash cache have 30 bits.
        let blocks = config.user_capacity.max(flash.size).0 / flash.block.0;
        reject! { table,
            "block" if blocks >= 1 << 30 =>
                "block is {}, which gives {blocks} blocks; the limit is 2^30 - 1", flash.block;
        }
    }
    for table in [disk, cache, controller, link].into_iter().chain(flash) {
        table.finish()?;
    }
    root.finish()?;
    Ok(config)
}

fn mechanics(table: &Table<'_>) -> Answer<MechanicsConfig> {
    let m = MechanicsConfig::read_keys(table)?;
    let (is_needed, key) = (m.recalibration_interval.is_some(), "recalibration_radii");
    let refusal = "recalibration_radii requires recalibration_interval, which is missing";
    table.needed_if(is_needed, key, m.recalibration_radii, refusal)?;
    reject! { table,
        "inner_rate" if m.inner_rate > m.outer_rate =>
            "inner_rate is {}, above outer_rate {}"
            ["inner tracks are shorter and hold fewer sectors"], m.inner_rate, m.outer_rate;
    }
    Ok(m)
}

fn read_cache(table: &Table<'_>) -> Answer<CacheConfig> {
    let config = CacheConfig::read_keys(table)?;
    let CacheConfig { size, segments, .. } = config;
    reject! { table,
        "size" if size.0 / 2 / u64::from(segments) < SECTOR_BYTES =>
            "size is {size}; half of it is too small for {segments} segments";
    }
    Ok(config)
}

fn flash_cache(table: &Table<'_>) -> Answer<FlashCacheConfig> {
    let config = FlashCacheConfig::read_keys(table)?;
    let block = config.block.0;
    reject! { table,
        "block"
            if block < 4096 || !block.is_multiple_of(SECTOR_BYTES) || config.size.0 / block == 0 =>
            "block is {}; it must be 4 KiB to {}", config.block, config.size;
    }
    Ok(config)
}

/// Checks that the layout and the seek curve are valid, and that the skew is below a revolution.
fn check_together(table: &Table<'_>, config: &DiskConfig) -> Answer<()> {
    let m = &config.mechanics;
    let turn = m.turn();
    reject! { table,
        "seek_track" if m.skew() >= turn =>
            "seek_track and write_settle take {}, longer than a turn of {turn}", m.skew();
        "seek_full" if m.seek_full <= m.seek_track =>
            "{} is not above seek_track {}", m.seek_full, m.seek_track;
    }
    let geometry = m.geometry(config.user_capacity);
    geometry.map(|_| ()).map_err(|impossible| {
        let key = match impossible {
            ImpossibleDisk::Rate => "inner_rate",
            ImpossibleDisk::Average(..) => "seek_average",
        };
        table.error(key, impossible, None)
    })
}

/// Returns the changes to the device file for a disk that is `scale` times smaller: it has fewer
/// tracks with the same properties. Seek times depend on the share of the stroke, so its latencies
/// are equal. The flash cache of a hybrid disk keeps its share of the capacity.
pub fn scaled(config: &DiskConfig, scale: f64) -> Vec<Change> {
    let mut changes = vec![smaller("user_capacity", config.user_capacity, scale)];
    let flash = config.flash_cache.as_ref();
    changes.extend(flash.map(|flash| smaller("flash_cache.size", flash.size, scale)));
    changes
}
