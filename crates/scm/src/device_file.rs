//! Reads device files of drives of storage-class memory (TOML).
//!
//! A file with a table `[media]` describes one. As for SSDs, every key is one line here, and
//! unknown keys are rejected with file, line and the most similar key.

use writecliff_base::Bytes;
use writecliff_base::located::{Change, LocatedError, LocatedToml, Table, positive_time};
use writecliff_host_interface::{Identity, LinkConfig};

use crate::config::{ControllerConfig, MediaConfig, ScmConfig};

type Answer<T> = Result<T, LocatedError>;

/// Commands address the drive in sectors of this size.
pub const SECTOR_BYTES: u64 = 512;
/// Supported scale factors.
pub const SCALES: [f64; 6] = [64.0, 32.0, 16.0, 8.0, 4.0, 2.0];

/// Whether the file describes a drive of storage-class memory.
pub fn is_scm(toml: &LocatedToml) -> bool {
    toml.root().keys().contains(&"media")
}

/// Reads the device file of a drive. `file_name` is used in messages only.
pub fn read(text: &str, file_name: &str) -> Answer<ScmConfig> {
    describe(&LocatedToml::parse(text, file_name)?)
}

/// Reads a device file that is already parsed.
pub fn describe(toml: &LocatedToml) -> Answer<ScmConfig> {
    let root = toml.root();
    let identity = Identity::read(&root)?;
    let user_capacity = root.required_size("user_capacity")?;
    if user_capacity.0 < 1 << 20 || user_capacity.0 > 64 << 40 {
        let message = format!("user_capacity is {user_capacity}; it must be 1 MiB to 64 TiB");
        return Err(root.error("user_capacity", message, None));
    }
    let media = root.required_table("media")?;
    let controller = root.required_table("controller")?;
    let link = root.required_table("link")?;
    let config = ScmConfig {
        identity,
        // Drop an incomplete last sector.
        user_capacity: Bytes(user_capacity.0 / SECTOR_BYTES * SECTOR_BYTES),
        media: read_media(&media)?,
        controller: ControllerConfig {
            command_time: controller.required_time("command_time")?,
            access_time: controller.required_time("access_time")?,
            latency: controller.required_time("latency")?,
        },
        link: LinkConfig::read(&link)?,
        canonical: root.canonical(&Identity::DOCUMENTARY),
    };
    check_queues(&link, &config)?;
    for table in [media, controller, link] {
        table.finish()?;
    }
    root.finish()?;
    Ok(config)
}

fn read_media(table: &Table<'_>) -> Answer<MediaConfig> {
    let multiple = |key: &str, of: u64, most: u64| {
        let size = table.required_size(key)?;
        if size.0 >= of && size.0 <= most && size.0.is_multiple_of(of) {
            return Ok(size);
        }
        let (of, most) = (Bytes(of), Bytes(most));
        let message = format!("{key} is {size}; it must be a multiple of {of}, at most {most}");
        Err(table.error(key, message, None))
    };
    let unit = multiple("unit", SECTOR_BYTES, 64 << 10)?;
    Ok(MediaConfig {
        banks: table.required_integer("banks", 1..=4096)? as u32,
        unit,
        interleave: multiple("interleave", unit.0, 16 << 20)?,
        read_time: positive_time(table, "read_time")?,
        write_time: positive_time(table, "write_time")?,
    })
}

/// Checks the limit on commands in flight, which have 16-bit numbers.
fn check_queues(table: &Table<'_>, config: &ScmConfig) -> Answer<()> {
    let in_drive = u64::from(config.link.queues) * u64::from(config.link.queue_depth);
    if in_drive <= 65_535 {
        return Ok(());
    }
    let message = format!("the queues hold {in_drive} commands; the drive takes at most 65,535");
    Err(table.error("queue_depth", message, None))
}

/// Changes to the device file for a drive that is `scale` times smaller. Its banks, and so all of
/// its times, are the same.
pub fn scaled(config: &ScmConfig, scale: f64) -> Vec<Change> {
    const BLOCK_BYTES: f64 = 4096.0;
    let blocks = (config.user_capacity.0 as f64 / scale / BLOCK_BYTES).round_ties_even().max(1.0);
    let size = format!("{} B", (blocks * BLOCK_BYTES) as u64);
    vec![Change::new("user_capacity", size, "scaled")]
}
