//! Reads device files (TOML) of SSDs.
//!
//! Each section declares its keys in a table ([`writecliff_base::keys`]). Unknown keys are rejected
//! with the file, the line and the most similar key. Values that are individually valid but
//! incompatible (a capacity larger than the flash, a buffer too small for the open units) are
//! rejected at the key to change.

mod flash;
mod ftl;
mod resized;
pub(crate) mod scaled;
mod streams;

use writecliff_base::keys::{Section, SectionKeys, SizeWithin, top};
use writecliff_base::located::{Answer, LocatedToml, Table};
use writecliff_base::{Bytes, SLOT_BYTES, reject, section};
use writecliff_flash::Geometry;
use writecliff_ftl::FtlConfig;
use writecliff_host_interface::{Identity, LinkConfig};

use crate::config::ControllerConfig;
use crate::mechanisms::{
    Described, INDEPENDENT_PLANES, LARGE_UNITS, NOT_TOGETHER, SEVERAL_GROUPS, Sections, bad_blocks,
    indirection_units, reclaim_groups, reduction,
};
use crate::{DeviceConfig, data_placement};

pub use resized::{DeriveError, resized};
pub use scaled::{least_scale, nearest_scale, scaled, scales};
pub use streams::with_streams;

/// Maximum capacity in a device file: four times that of the largest drives of 2025.
const CAPACITY_MAX: Bytes = Bytes(1 << 50);

section! {
    /// Top-level keys of the file, in addition to the identity.
    struct Top {
        user_capacity: required SizeWithin(Bytes(SLOT_BYTES)..=CAPACITY_MAX),
            "capacity for the host ([very large drives](../guides/devices.md#very-large-drives))";
    }
}

/// Returns the keys of SSD device files.
pub fn keys() -> Vec<SectionKeys> {
    let mut sections = vec![
        top::<Identity, Top>(),
        flash::keys(),
        ftl::Keys::documented("ftl", true),
        ControllerConfig::documented("controller", true),
        LinkConfig::documented("link", true),
        data_placement::config::Keys::documented("data_placement", false),
        reduction::Keys::documented("reduction", false),
        bad_blocks::Keys::documented("bad_blocks", false),
    ];
    sections.extend(Sections::keys());
    sections
}

/// Reads a device file; `file_name` is for messages, `seed` for the drive's random choices.
pub fn read(text: &str, file_name: &str, seed: u64) -> Answer<DeviceConfig> {
    describe(&LocatedToml::parse(text, file_name)?, seed)
}

/// Reads a device file that has already been parsed.
pub fn describe(toml: &LocatedToml, seed: u64) -> Answer<DeviceConfig> {
    let root = toml.root();
    let identity = Identity::read_keys(&root)?;
    let user_capacity = Top::read_keys(&root)?.user_capacity;
    let (flash_table, ftl_table) = (root.required_table("flash")?, root.required_table("ftl")?);
    let (controller_table, link_table) =
        (root.required_table("controller")?, root.required_table("link")?);
    let placement_table = root.optional_table("data_placement")?;
    let (geometry, timing, rated_cycles) = flash::read(&flash_table)?;
    let (mut ftl, indirection_unit, merged_units) = ftl::read(&ftl_table, seed)?;
    let controller = ControllerConfig::read(&controller_table)?;
    let link = LinkConfig::read_keys(&link_table)?;
    let placement = placement_table.as_ref().map(|t| data_placement::config::read(t, ftl.streams));
    let data_placement = placement.transpose()?.flatten();
    ftl.rated_cycles = rated_cycles;
    ftl.user_slots = user_capacity.0.div_ceil(SLOT_BYTES);
    let groups = data_placement.as_ref().map_or(1, |placement| placement.reclaim_groups);
    check_modelled(&root, |feature| match feature {
        INDEPENDENT_PLANES => timing.independent_plane_reads,
        SEVERAL_GROUPS => groups > 1,
        LARGE_UNITS => indirection_unit > Some(Bytes(SLOT_BYTES)),
        section => root.has(section.trim_matches(['[', ']'])),
    })?;
    let geometry = reduced(&root, geometry, &mut ftl)?;
    let geometry = reclaim_groups::divided(
        placement_table.as_ref(),
        data_placement.as_ref(),
        geometry,
        &mut ftl,
    )?;
    ftl.volatile_buffer = !controller.power_loss_protection && ftl.reduction.is_none();
    if let Some(table) = root.optional_table("bad_blocks")? {
        ftl.bad_blocks = Some(bad_blocks::read(&table, rated_cycles)?);
        table.finish()?;
    }
    let mut drive = Described { root: &root, geometry, controller: &controller, user_capacity };
    let sections = Sections::read(&mut drive)?;
    let geometry = drive.geometry;
    check_together(&root, &ftl_table, &geometry, &ftl)?;
    let indirection_slots = indirection_units::slots(
        &ftl_table,
        indirection_unit,
        merged_units,
        &geometry,
        &controller,
    )?;
    let config = DeviceConfig {
        identity,
        user_capacity,
        geometry,
        timing,
        ftl,
        controller,
        link,
        sections,
        power_state: 0,
        data_placement,
        indirection_slots,
        merged_units,
        canonical: root.canonical(&Identity::DOCUMENTARY),
    };
    check_buffer(&controller_table, &config)?;
    reclaim_groups::check(placement_table.as_ref(), &config)?;
    let tables = [flash_table, ftl_table, controller_table, link_table];
    for table in tables.into_iter().chain(placement_table) {
        table.finish()?;
    }
    root.finish().map(|()| config)
}

/// Rejects combinations that are not modelled, with an error at the section.
fn check_modelled(root: &Table<'_>, has: impl Fn(&str) -> bool) -> Answer<()> {
    let features = NOT_TOGETHER.iter().filter(|(feature, _)| has(feature));
    let mut pairs = features.flat_map(|(feature, others)| others.iter().map(move |o| (feature, o)));
    match pairs.find(|(_, other)| root.has(other)) {
        Some((feature, other)) => {
            let message = format!("{feature} and [{other}] are not modelled together");
            Err(root.error(other, message, Some("remove one of them".to_owned())))
        }
        None => Ok(()),
    }
}

/// Returns the geometry with the addresses that the controller needs for data reduction.
fn reduced(root: &Table<'_>, geometry: Geometry, ftl: &mut FtlConfig) -> Answer<Geometry> {
    let Some(table) = root.optional_table("reduction")? else { return Ok(geometry) };
    let (config, addressed) = reduction::read(&table, geometry)?;
    table.finish()?;
    ftl.reduction = Some(config);
    Ok(addressed)
}

fn check_together(
    root: &Table<'_>,
    ftl_table: &Table<'_>,
    geometry: &Geometry,
    ftl: &FtlConfig,
) -> Answer<()> {
    ftl.check(geometry).map_err(|e| {
        let table = if e.key == "user_capacity" { root } else { ftl_table };
        let raw = geometry.raw_bytes();
        let hint = format!("the flash holds {raw} in {} reclaim units", geometry.reclaim_units);
        table.error(e.key, e.to_string(), Some(hint))
    })
}

/// Checks that the buffer can hold the open units of all streams, and mechanisms' units.
fn check_buffer(table: &Table<'_>, config: &DeviceConfig) -> Answer<()> {
    let (needed, buffer) =
        (config.buffer_needed(config.ftl.streams), config.controller.write_buffer);
    let has_cache = config.sections.buffer_bytes(&config.geometry) > 0;
    let in_drive = u64::from(config.link.queues) * u64::from(config.link.queue_depth);
    reject! { table,
        "write_buffer" if buffer < needed =>
            "write_buffer is {buffer}; {} streams with program units of {} KiB{}{} need {} KiB or \
             more",
            config.ftl.streams,
            config.geometry.unit_bytes() * config.pieces_per_slot() / 1024,
            if has_cache { " and an SLC cache" } else { "" },
            if config.merged_units > 0 { " and merged units" } else { "" },
            needed.0 / 1024;
        "write_buffer" if in_drive > 60_000 =>
            "the queues hold {in_drive} commands; a drive supports at most 60,000"
            ["lower link.queues"];
    }
    Ok(())
}
