//! Reads device files of SSDs (TOML).
//!
//! Every key, with its unit, is one line here; unknown keys are rejected with file, line and the
//! most similar key. Values that are individually valid but incompatible (a capacity larger than
//! the flash, a buffer too small for the open units) are rejected at the key to change.

mod resized;
mod scaled;
mod streams;
use writecliff_base::located::{LocatedError, LocatedToml, Table, positive_rate, positive_time};
use writecliff_base::{Bytes, Nanos};
use writecliff_flash::geometry::SLOT_BYTES;
use writecliff_flash::{CellType, FlashTiming, Geometry, Shape};
use writecliff_ftl::gc::GcPolicy;
use writecliff_ftl::gc_destination::GcDestination;
use writecliff_ftl::spare::SparePolicy;
use writecliff_ftl::wear_leveling::WearPolicy;
use writecliff_ftl::{FtlConfig, GcPacing};
use writecliff_host_interface::{Identity, LinkConfig};

use crate::config::{ControllerConfig, DeviceConfig, ServiceOrder};
use crate::data_placement;
use crate::mechanisms::plane_reads::PLANES_MAX;
use crate::mechanisms::power_loss::recovery::{self, RecoveryConfig};
use crate::mechanisms::{
    bad_blocks, cell_care, die_parity, ecc, endurance, housekeeping, indirection_units, integrity,
    mapping_cache, power, reclaim_groups, reduction, slc_cache, thermal,
};

pub use resized::{ResizeError, resized};
pub use scaled::{least_scale, nearest_scale, scaled, scales};
pub use streams::with_streams;

type Answer<T> = Result<T, LocatedError>;

/// Largest capacity of a drive that can be described: four times that of 2025's largest.
const CAPACITY_MAX: Bytes = Bytes(1 << 50);
/// Largest quantum of garbage collection: some blocks of every die of a large drive.
const QUANTUM_MAX: Bytes = Bytes(1 << 30);

/// Reads a device file. `file_name` is used in messages only; `seed` seeds all random choices of
/// the drive.
pub fn read(text: &str, file_name: &str, seed: u64) -> Answer<DeviceConfig> {
    describe(&LocatedToml::parse(text, file_name)?, seed)
}

/// Reads a device file that is already parsed.
pub fn describe(toml: &LocatedToml, seed: u64) -> Answer<DeviceConfig> {
    let root = toml.root();
    let identity = Identity::read(&root)?;
    let user_capacity = root.required_size("user_capacity")?;
    let flash_table = root.required_table("flash")?;
    let (geometry, timing, rated_cycles) = flash(&flash_table)?;
    let ftl_table = root.required_table("ftl")?;
    let mut ftl = ftl(&ftl_table, seed)?;
    ftl.rated_cycles = rated_cycles;
    let (die_parity, geometry) =
        die_parity::section(&root, geometry, timing.independent_plane_reads)?;
    let geometry = reduced(&root, geometry, &mut ftl)?;
    let data_placement_table = root.optional_table("data_placement")?;
    let placement_table = data_placement_table.as_ref();
    let placement = placement_table.map(|t| data_placement::config::read(t, ftl.streams));
    let data_placement = placement.transpose()?.flatten();
    let geometry = reclaim_groups::divided(
        &root,
        placement_table,
        data_placement.as_ref(),
        geometry,
        &mut ftl,
    )?;
    let controller_table = root.required_table("controller")?;
    let controller = controller(&controller_table)?;
    ftl.volatile_buffer = !controller.power_loss_protection && ftl.reduction.is_none();
    let link_table = root.required_table("link")?;
    let link = LinkConfig::read(&link_table)?;
    let has_core = controller.has_mapping_core();
    let housekeeping =
        section(&root, "housekeeping", |t| housekeeping::read(t, &geometry, has_core))?;
    let ecc = section(&root, "ecc", ecc::read)?;
    let cell_care = section(&root, "cell_care", |t| cell_care::read(t, ecc.is_some()))?;
    let endurance = section(&root, "endurance", endurance::read)?.flatten();
    let integrity = section(&root, "integrity", integrity::read)?;
    let power = section(&root, "power", |t| power::read(t, geometry.dies))?;
    let thermal = section(&root, "thermal", |t| thermal::read(t, power.is_some()))?;
    let slc_cache = section(&root, "slc_cache", |t| slc_cache::read(t, &geometry, user_capacity))?;
    let recovery = section(&root, "recovery", |t| recovery::read(t, &geometry, user_capacity))?;
    ftl.bad_blocks = bad_blocks::section(&root, rated_cycles)?;
    ftl.user_slots = user_slots(&root, user_capacity)?;
    check_together(&root, &ftl_table, &geometry, &ftl)?;
    let config = DeviceConfig {
        indirection_slots: indirection_units::read(&ftl_table, &root, &geometry, &controller)?,
        mapping_cache: mapping_cache::section(&root, &geometry)?,
        identity,
        user_capacity,
        geometry,
        timing,
        ftl,
        controller,
        link,
        housekeeping,
        ecc,
        cell_care,
        power,
        power_state: 0,
        data_placement,
        thermal,
        endurance,
        slc_cache,
        integrity,
        die_parity,
        recovery: recovery.unwrap_or_else(|| RecoveryConfig::standard(user_capacity)),
        canonical: root.canonical(&Identity::DOCUMENTARY),
    };
    check_buffer(&controller_table, &config)?;
    reclaim_groups::check(placement_table, &config)?;
    flash_table.finish()?;
    ftl_table.finish()?;
    controller_table.finish()?;
    link_table.finish()?;
    data_placement_table.map_or(Ok(()), Table::finish)?;
    root.finish().map(|()| config)
}

fn section<'a, T>(
    root: &Table<'a>,
    key: &'static str,
    read: impl FnOnce(Table<'a>) -> Answer<T>,
) -> Answer<Option<T>> {
    root.optional_table(key)?.map(read).transpose()
}

fn flash(table: &Table<'_>) -> Answer<(Geometry, FlashTiming, u32)> {
    let count = |key: &str, most: u64| table.required_integer(key, 1..=most).map(|n| n as u32);
    let cells = [
        ("SLC", CellType::Slc),
        ("MLC", CellType::Mlc),
        ("TLC", CellType::Tlc),
        ("QLC", CellType::Qlc),
    ];
    let shape = Shape {
        channels: count("channels", 64)?,
        dies_per_channel: count("dies_per_channel", 64)?,
        planes_per_die: count("planes_per_die", 16)?,
        blocks_per_plane: count("blocks_per_plane", 1 << 20)?,
        pages_per_block: count("pages_per_block", 1 << 16)?,
        page: table.required_size("page")?,
        cell: table.required_choice("cell", &cells)?,
        multi_plane: table.required_flag("multi_plane")?,
        one_shot: table.required_flag("one_shot")?,
    };
    let types = shape.cell.page_types() as usize;
    let programs = if shape.one_shot { 1 } else { types };
    let timing = FlashTiming {
        read: times(table, "read", types, "one tR for each page type")?,
        program: times(table, "program", programs, "one tPROG for each program operation")?,
        erase: positive_time(table, "erase")?,
        bus: positive_rate(table, "bus")?,
        command: table.required_time("command")?,
        program_suspend: table.optional_time("program_suspend")?,
        erase_suspend: table.optional_time("erase_suspend")?,
        independent_plane_reads: independent_plane_reads(table, &shape)?,
    };
    let rated_cycles = count("rated_cycles", 10_000_000)?;
    let geometry = Geometry::new(shape).map_err(|e| table.error(e.key, e.to_string(), None))?;
    Ok((geometry, timing, rated_cycles))
}

fn independent_plane_reads(table: &Table<'_>, shape: &Shape) -> Answer<bool> {
    const KEY: &str = "independent_plane_reads";
    let is_on = table.or(KEY, false, Table::optional_flag)?;
    if is_on && !(shape.multi_plane && (2..=PLANES_MAX as u32).contains(&shape.planes_per_die)) {
        let message = format!("{KEY} needs multi_plane = true and 2 to {PLANES_MAX} planes");
        return Err(table.error(KEY, message, None));
    }
    Ok(is_on)
}

fn times(table: &Table<'_>, key: &str, count: usize, what: &str) -> Answer<Vec<Nanos>> {
    let times = table.required_times(key)?;
    if times.len() != count || times.contains(&Nanos::ZERO) {
        let message = format!("{key} has {} times; it must have {count} above zero", times.len());
        return Err(table.error(key, message, Some(what.to_owned())));
    }
    Ok(times)
}

fn ftl(table: &Table<'_>, seed: u64) -> Answer<FtlConfig> {
    let d = table.or("d", 10, |t, key| t.optional_integer(key, 1..=1024))? as u32;
    let gc = [
        ("greedy", GcPolicy::Greedy),
        ("fifo", GcPolicy::Fifo),
        ("d-choices", GcPolicy::DChoices { d }),
        ("random", GcPolicy::DChoices { d: 1 }),
        ("cost-benefit", GcPolicy::CostBenefit),
        ("windowed-greedy", GcPolicy::WindowedGreedy { window: gc_window(table)? }),
    ];
    let quanta = GcPacing::Quanta { slots: gc_quantum(table)? };
    let gc_pacing = [GcPacing::Incremental, quanta, GcPacing::PerVictim, GcPacing::OnDemand]
        .map(|pacing| (pacing.name(), pacing));
    let threshold =
        table.or("wear_threshold", 50, |t, key| t.optional_integer(key, 1..=1_000_000))?;
    let wear = [
        ("none", WearPolicy::None),
        ("dynamic", WearPolicy::Dynamic),
        ("static", WearPolicy::Static { threshold: threshold as u32 }),
    ];
    let isolated = isolated_streams(table)?;
    let gc_destination = [
        ("per-stream", GcDestination::PerStream),
        ("host-unit", GcDestination::HostUnit),
        ("shared", GcDestination::Shared),
        ("per-handle", GcDestination::PerHandle { isolated }),
    ];
    let spare = [("global", SparePolicy::Global), ("self-tuned", SparePolicy::SelfTuned)];
    let count = |key: &str, most: u64| table.required_integer(key, 1..=most).map(|n| n as u32);
    Ok(FtlConfig {
        user_slots: 0,
        streams: count("streams", 128)? as u16,
        gc: table.required_choice("gc", &gc)?,
        gc_pacing: table
            .or("gc_pacing", GcPacing::Incremental, |t, key| t.optional_choice(key, &gc_pacing))?,
        gc_destination: table.required_choice("gc_destination", &gc_destination)?,
        spare: table.or("spare", SparePolicy::Global, |t, key| t.optional_choice(key, &spare))?,
        wear: table.required_choice("wear_leveling", &wear)?,
        gc_high_watermark: count("gc_high_watermark", 1 << 20)?,
        gc_low_watermark: count("gc_low_watermark", 1 << 20)?,
        gc_idle_watermark: count("gc_idle_watermark", 1 << 20)?,
        rated_cycles: 1,
        volatile_buffer: false,
        seed,
        reduction: None,
        bad_blocks: None,
    })
}

/// Window of `gc = "windowed-greedy"`; 0 with another policy.
fn gc_window(table: &Table<'_>) -> Answer<u32> {
    const KEY: &str = "gc_window";
    if table.optional_text("gc")? == Some("windowed-greedy") {
        return table.required_integer(KEY, 1..=1 << 20).map(|window| window as u32);
    }
    if table.has(KEY) {
        let message = format!("{KEY} requires gc = \"windowed-greedy\"");
        return Err(table.error(KEY, message, None));
    }
    Ok(0)
}

/// Slots that `gc_pacing = "quanta"` relocates at once; 0 with another pacing.
fn gc_quantum(table: &Table<'_>) -> Answer<u32> {
    const KEY: &str = "gc_quantum";
    let slot = u64::from(SLOT_BYTES);
    let is_used = table.optional_text("gc_pacing")? == Some("quanta");
    let Some(quantum) = table.optional_size(KEY)? else {
        return if is_used { Err(table.missing(KEY)) } else { Ok(0) };
    };
    let wrong = if !is_used {
        format!("{KEY} requires gc_pacing = \"quanta\"")
    } else if quantum.0 < slot || quantum.0 > QUANTUM_MAX.0 {
        format!("{KEY} is {quantum}; it must be 4 KiB to {QUANTUM_MAX}")
    } else {
        return Ok((quantum.0 / slot) as u32);
    };
    Err(table.error(KEY, wrong, None))
}

/// The isolated streams of `gc_destination = "per-handle"`, as a set.
fn isolated_streams(table: &Table<'_>) -> Answer<u128> {
    const KEY: &str = "isolated_streams";
    if table.optional_text("gc_destination")? != Some("per-handle") {
        if table.has(KEY) {
            return Err(table.error(
                KEY,
                format!("{KEY} needs gc_destination = 'per-handle'"),
                None,
            ));
        }
        return Ok(0);
    }
    let listed = table.optional_numbers(KEY, 0.0..=127.0)?.ok_or_else(|| table.missing(KEY))?;
    if let Some(odd) = listed.iter().find(|n| n.fract() != 0.0) {
        return Err(table.error(
            KEY,
            format!("{KEY} contains {odd}; stream numbers are whole numbers"),
            None,
        ));
    }
    Ok(listed.iter().fold(0, |set, &n| set | 1 << n as u32))
}

fn controller(table: &Table<'_>) -> Answer<ControllerConfig> {
    let command_time = table.required_time("command_time")?;
    let of_kind = |key: &str| {
        let time = table.or(key, command_time, Table::optional_time)?;
        if time < command_time {
            let message = format!("{key} is below command_time; it must be as long or longer");
            return Err(table.error(key, message, None));
        }
        Ok(time)
    };
    let orders = [("overlapped", ServiceOrder::Overlapped), ("barrier", ServiceOrder::Barrier)];
    let count = |key: &str, most: u64| table.required_integer(key, 0..=most).map(|n| n as u32);
    Ok(ControllerConfig {
        write_buffer: table.required_size("write_buffer")?,
        power_loss_protection: table.required_flag("power_loss_protection")?,
        write_cache: table.required_flag("write_cache")?,
        command_time,
        read_command_time: of_kind("read_command_time")?,
        write_command_time: of_kind("write_command_time")?,
        latency: table.required_time("latency")?,
        mapping_update_time: table.or("mapping_update_time", Nanos::ZERO, Table::optional_time)?,
        relocation_time: table.or("relocation_time", Nanos::ZERO, Table::optional_time)?,
        lookup_time: table.or("lookup_time", Nanos::ZERO, Table::optional_time)?,
        read_slot_time: table.or("read_slot_time", Nanos::ZERO, Table::optional_time)?,
        merge_time: table.or("merge_time", Nanos::ZERO, Table::optional_time)?,
        service_order: table.or("service_order", ServiceOrder::Overlapped, |t, key| {
            t.optional_choice(key, &orders)
        })?,
        reads_in_a_row: count("reads_in_a_row", 1_000_000)?.max(1),
        suspends_per_operation: count("suspends_per_operation", 200)?,
        idle_delay: table.required_time("idle_delay")?,
    })
}

fn user_slots(root: &Table<'_>, capacity: Bytes) -> Answer<u64> {
    let slot = u64::from(SLOT_BYTES);
    if capacity.0 < slot || capacity > CAPACITY_MAX {
        let message = format!("user_capacity is {capacity}; it must be 4 KiB to 1024 TiB");
        return Err(root.error("user_capacity", message, None));
    }
    Ok(capacity.0.div_ceil(slot))
}

/// The geometry with the addresses that the controller needs for data reduction.
fn reduced(root: &Table<'_>, geometry: Geometry, ftl: &mut FtlConfig) -> Answer<Geometry> {
    let Some(table) = root.optional_table("reduction")? else { return Ok(geometry) };
    // Combinations that are not modelled.
    for other in ["slc_cache", "data_placement"] {
        if root.has(other) {
            let message = format!("[reduction] and [{other}] are not modelled together");
            return Err(root.error(other, message, Some("remove one of them".to_owned())));
        }
    }
    let (config, addressed) = reduction::read(table, geometry)?;
    ftl.reduction = Some(config);
    Ok(addressed)
}

/// Checks capacity and spare space against the flash.
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

/// Checks that the buffer can hold the partly filled units of all streams and one more unit.
fn check_buffer(table: &Table<'_>, config: &DeviceConfig) -> Answer<()> {
    let (needed, buffer) =
        (config.buffer_needed(config.ftl.streams), config.controller.write_buffer);
    if buffer < needed {
        let message = format!(
            "write_buffer is {buffer}; {} streams with program units of {} KiB{} need {} KiB or \
             more",
            config.ftl.streams,
            config.program_unit_bytes() * config.pieces_per_slot() / 1024,
            if config.slc_cache.is_some() { " and an SLC cache" } else { "" },
            needed.0 / 1024
        );
        return Err(table.error("write_buffer", message, None));
    }
    let in_drive = u64::from(config.link.queues) * u64::from(config.link.queue_depth);
    if in_drive > 60_000 {
        let message =
            format!("the queues hold {in_drive} commands; a drive supports at most 60,000");
        return Err(table.error("write_buffer", message, Some("lower link.queues".to_owned())));
    }
    Ok(())
}
