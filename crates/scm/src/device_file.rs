//! Reads device files (TOML) of drives with storage-class memory.
//!
//! A file with a `[media]` table describes such a drive. `config.rs` declares the table's keys.

use writecliff_base::keys::{Section, SectionKeys, top};
use writecliff_base::located::{Answer, Change, LocatedToml, Table};
use writecliff_base::{Bytes, SECTOR_BYTES, reject};
use writecliff_host_interface::identity::{InPlace, smaller};
use writecliff_host_interface::{Identity, LinkConfig};

use crate::config::{ControllerConfig, MediaConfig, ScmConfig};

pub use writecliff_host_interface::identity::SCALES;

/// Returns `true` if the file describes a drive with storage-class memory.
pub fn is_scm(toml: &LocatedToml) -> bool {
    toml.root().keys().contains(&"media")
}

/// Returns the device file keys of such drives.
pub fn keys() -> Vec<SectionKeys> {
    vec![
        top::<Identity, InPlace>(),
        MediaConfig::documented("media", true),
        ControllerConfig::documented("controller", true),
        LinkConfig::documented("link", true),
    ]
}

/// Reads a drive's device file. `file_name` is used in messages only.
pub fn read(text: &str, file_name: &str) -> Answer<ScmConfig> {
    describe(&LocatedToml::parse(text, file_name)?)
}

/// Reads a device file that has already been parsed.
pub fn describe(toml: &LocatedToml) -> Answer<ScmConfig> {
    let root = toml.root();
    let identity = Identity::read_keys(&root)?;
    let user_capacity = InPlace::read_keys(&root)?.whole_sectors();
    let media = root.required_table("media")?;
    let controller = root.required_table("controller")?;
    let link = root.required_table("link")?;
    let config = ScmConfig {
        identity,
        user_capacity,
        media: read_media(&media)?,
        controller: ControllerConfig::read_keys(&controller)?,
        link: LinkConfig::read_keys(&link)?,
        canonical: root.canonical(&Identity::DOCUMENTARY),
    };
    let in_drive = u64::from(config.link.queues) * u64::from(config.link.queue_depth);
    reject! { link,
        "queue_depth" if in_drive > 65_535 => // Tags of commands in flight have 16 bits.
            "the queues hold {in_drive} commands; the drive takes at most 65,535";
    }
    for table in [media, controller, link] {
        table.finish()?;
    }
    root.finish()?;
    Ok(config)
}

fn read_media(table: &Table<'_>) -> Answer<MediaConfig> {
    let config = MediaConfig::read_keys(table)?;
    for (key, size, of, most) in [
        ("unit", config.unit, Bytes(SECTOR_BYTES), Bytes(64 << 10)),
        ("interleave", config.interleave, config.unit, Bytes(16 << 20)),
    ] {
        reject! { table,
            key if size < of || size > most || !size.0.is_multiple_of(of.0) =>
                "{key} is {size}; it must be a multiple of {of}, at most {most}";
        }
    }
    Ok(config)
}

/// Returns the file changes for a drive that is `scale` times smaller, with equal banks and times.
pub fn scaled(config: &ScmConfig, scale: f64) -> Vec<Change> {
    vec![smaller("user_capacity", config.user_capacity, scale)]
}
