//! How a drive finds its mapping when it is powered up: section `[recovery]` of a device file.
//!
//! The firmware reads the last checkpoint of the mapping with all dies. What was programmed after
//! it is in a journal, of which the pages are read in the same way; only the reclaim units that are
//! open are scanned, by the page numbers beside the data. Without a journal, all that was
//! programmed since the checkpoint is scanned. After a loss of power that capacitors have bridged,
//! the mapping is complete, and only the checkpoint is read.

use writecliff_base::located::{LocatedError, Table};
use writecliff_base::{Bytes, Nanos};
use writecliff_flash::Geometry;
use writecliff_flash::geometry::SLOT_BYTES;

use crate::config::DeviceConfig;
use crate::mechanisms::power_loss::Rebuild;
use crate::mechanisms::slc_cache;

/// Bytes of a logical page's address in a checkpoint.
const MAP_ENTRY_BYTES: u64 = 4;
/// Checkpoints in the time in which the user capacity is programmed once, unless the device file
/// says otherwise: a compromise between the flash that they wear and the time that a start takes.
const CHECKPOINTS_PER_CAPACITY: u64 = 16;
/// A journal entry unless the device file says otherwise: a logical and a physical page number.
const JOURNAL_ENTRY: Bytes = Bytes(8);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryConfig {
    /// Until the firmware runs.
    pub start_time: Nanos,
    /// Bytes programmed between two checkpoints.
    pub checkpoint_interval: Bytes,
    /// Size of a journal entry; `None` for a drive without a journal.
    pub journal_entry: Option<Bytes>,
}

impl RecoveryConfig {
    /// What a drive has whose device file does not tell.
    pub fn standard(user: Bytes) -> Self {
        let checkpoint_interval = Bytes((user.0 / CHECKPOINTS_PER_CAPACITY).max(1));
        let journal_entry = Some(JOURNAL_ENTRY);
        Self { start_time: Nanos::ZERO, checkpoint_interval, journal_entry }
    }
}

/// Reads the section.
///
/// # Errors
/// Returns an error at the key that is invalid for this flash.
pub fn read(
    table: Table<'_>,
    geometry: &Geometry,
    user: Bytes,
) -> Result<RecoveryConfig, LocatedError> {
    let standard = RecoveryConfig::standard(user);
    let methods = [("journal", true), ("scan", false)];
    let has_journal = table.or("method", true, |t, key| t.optional_choice(key, &methods))?;
    let entry = table.optional_size("journal_entry")?;
    if !has_journal && entry.is_some() {
        let message = "a drive that scans keeps no journal; remove it";
        return Err(table.error("journal_entry", message, None));
    }
    if entry.is_some_and(|entry| !(1..=u64::from(SLOT_BYTES)).contains(&entry.0)) {
        return Err(table.error("journal_entry", "it must be 1 B to 4 KiB", None));
    }
    let interval =
        table.or("checkpoint_interval", standard.checkpoint_interval, Table::optional_size)?;
    if interval.0 < geometry.unit_bytes() {
        let unit = Bytes(geometry.unit_bytes());
        let message = format!("{interval} is less than a program unit of {unit}");
        return Err(table.error("checkpoint_interval", message, None));
    }
    let config = RecoveryConfig {
        start_time: table.or("start_time", Nanos::ZERO, Table::optional_time)?,
        checkpoint_interval: interval,
        journal_entry: has_journal.then(|| entry.unwrap_or(JOURNAL_ENTRY)),
    };
    table.finish()?;
    Ok(config)
}

impl DeviceConfig {
    /// Why cuts of the power of such drives are not modelled, if they are not.
    pub fn refuses_power_cut(&self) -> Option<&'static str> {
        if self.controller.power_loss_protection {
            return None;
        }
        if self.ftl.reduction.is_some() {
            return Some("power cuts of drives that reduce data need power-loss protection");
        }
        let has_bad_blocks = self.ftl.bad_blocks.is_some();
        has_bad_blocks.then_some("power cuts of drives with bad blocks need power-loss protection")
    }
}

/// What there is to be rebuilt.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lost {
    /// Slots programmed since the drive was new.
    pub programmed_slots: u64,
    /// Program units written in open reclaim units.
    pub open_units: u64,
    /// Units written in the open block of the SLC cache.
    pub open_log_units: u64,
    pub interrupted_erases: u32,
    /// Whether capacitors have let the drive write all it knew.
    pub is_protected: bool,
}

/// The shortest and the longest time until a drive that has lost power is ready. Without capacitors
/// it is shortest behind a checkpoint with no reclaim unit open, and longest before one with all
/// streams in units that are nearly full and an erase that did not end. Of capacitors, the
/// checkpoint alone is left.
pub fn bounds(config: &DeviceConfig) -> [Rebuild; 2] {
    let is_protected = config.controller.power_loss_protection;
    let nothing = Lost { is_protected, ..Lost::default() };
    let geometry = &config.geometry;
    let units = geometry.slots_per_reclaim_unit / geometry.slots_per_program_unit;
    let most = Lost {
        programmed_slots: (config.recovery.checkpoint_interval.0 - 1) / u64::from(SLOT_BYTES),
        // The host and garbage collection have a unit of each stream.
        open_units: 2 * u64::from(config.ftl.streams) * u64::from(units),
        open_log_units: config.slc_cache.map_or(0, |_| {
            slc_cache::block_slots(geometry) / u64::from(geometry.slots_per_read_group)
        }),
        interrupted_erases: 1,
        is_protected,
    };
    [rebuild(config, &nothing), rebuild(config, &most)]
}

/// The time until a drive that has lost power is ready.
pub(crate) fn rebuild(config: &DeviceConfig, lost: &Lost) -> Rebuild {
    let recovery = &config.recovery;
    let geometry = &config.geometry;
    let slot = u64::from(SLOT_BYTES);
    let group = u64::from(geometry.slots_per_read_group) * slot;
    let pages = |bytes: u64| read_time(config, bytes.div_ceil(group), group);
    let map = config.ftl.user_slots * MAP_ENTRY_BYTES;
    let mut rebuild =
        Rebuild { start: recovery.start_time, checkpoint: pages(map), ..Rebuild::default() };
    if lost.is_protected {
        return rebuild;
    }
    let since = lost.programmed_slots * slot % recovery.checkpoint_interval.0;
    let groups_per_unit = u64::from(geometry.slots_per_program_unit).div_ceil(group / slot);
    let scanned = match recovery.journal_entry {
        Some(entry) => {
            rebuild.journal = pages(since / slot * entry.0);
            lost.open_units * groups_per_unit + lost.open_log_units
        }
        None => since.div_ceil(group),
    };
    rebuild.scan = read_time(config, scanned, 0);
    if lost.interrupted_erases > 0 {
        rebuild.erase = config.timing.command + config.timing.erase;
    }
    rebuild
}

/// The time in which all dies read `groups` read groups and transfer `bytes` of each: the dies of
/// a channel sense at the same time and transfer one after the other.
fn read_time(config: &DeviceConfig, groups: u64, bytes: u64) -> Nanos {
    if groups == 0 {
        return Nanos::ZERO;
    }
    let (geometry, timing) = (&config.geometry, &config.timing);
    let types = timing.read.len() as u64;
    let sense = timing.read.iter().map(|read| read.0).sum::<u64>() / types;
    let transfer = (timing.command + timing.transfer(bytes)).0;
    let per_die = groups.div_ceil(u64::from(geometry.dies));
    let per_channel = groups.div_ceil(u64::from(geometry.shape.channels));
    let by_dies = per_die * (sense + transfer);
    let by_channels = sense + per_channel * transfer;
    Nanos(by_dies.max(by_channels))
}
