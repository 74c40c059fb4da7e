//! Mapping rebuild at power-up: section `[recovery]` of a device file.
//!
//! The firmware reads the last mapping checkpoint with all dies. A journal, whose pages are read in
//! the same way, lists the programs since that checkpoint. Only open reclaim units are scanned for
//! the page numbers stored with the data. Without a journal, the firmware scans all data programmed
//! since the checkpoint. After a power loss bridged by the capacitors, the checkpoint is complete,
//! and the firmware reads no other data.

use writecliff_base::keys::{Choice, Size, Time};
use writecliff_base::located::{Change, Table};
use writecliff_base::{Bytes, Nanos, SLOT_BYTES, reject, section};

use crate::DeviceConfig;
use crate::device_file::scaled::size;
use crate::mechanisms::power_loss::Rebuild;
use crate::mechanisms::{Checked, Described, MechanismSection, Resizing};

/// Size of a logical page's address in a checkpoint, in bytes.
const MAP_ENTRY_BYTES: u64 = 4;
/// Default number of checkpoints per programming of the user capacity, which is a compromise
/// between the wear that they cause and the time until the drive is ready.
const CHECKPOINTS_PER_CAPACITY: u64 = 16;
/// Default size of a journal entry: a logical and a physical page number.
const JOURNAL_ENTRY: Bytes = Bytes(8);

/// Journal and checkpoints, which the mapping is rebuilt from after a power loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryConfig {
    /// Time until the firmware is running.
    pub start_time: Nanos,
    /// Bytes programmed between two checkpoints.
    pub checkpoint_interval: Bytes,
    /// Size of a journal entry; `None` for a drive without a journal.
    pub journal_entry: Option<Bytes>,
}

impl RecoveryConfig {
    /// Returns the values for a drive without the section.
    pub fn standard(user: Bytes) -> Self {
        let checkpoint_interval = Bytes((user.0 / CHECKPOINTS_PER_CAPACITY).max(1));
        let journal_entry = Some(JOURNAL_ENTRY);
        Self { start_time: Nanos::ZERO, checkpoint_interval, journal_entry }
    }
}

section! {
    pub(crate) struct Keys {
        method: default Choice<bool>(&[("journal", true), ("scan", false)]) = true,
            "source of the programs since the checkpoint: a journal, or a scan of the flash";
        journal_entry: optional Size = "8 B",
            "journal bytes per programmed slot, 1 B to 4 KiB; not with `\"scan\"`";
        checkpoint_interval: optional Size = "1/16 of the user capacity",
            "data programmed between two mapping checkpoints, at least a program unit";
        start_time: default Time = Nanos::ZERO, "time until the firmware is running";
    }
}

impl MechanismSection for RecoveryConfig {
    type Keys = Keys;

    fn check(keys: Self::Keys, table: &Table<'_>, drive: &mut Described<'_>) -> Checked<Self> {
        let (has_journal, entry) = (keys.method, keys.journal_entry);
        let entries = 1..=SLOT_BYTES;
        let standard = Self::standard(drive.user_capacity).checkpoint_interval;
        let interval = table.otherwise("checkpoint_interval", keys.checkpoint_interval, standard);
        let unit = Bytes(drive.geometry.unit_bytes());
        reject! { table,
            "journal_entry" if !has_journal && entry.is_some() =>
                "a drive that scans keeps no journal; remove it";
            "journal_entry" if entry.is_some_and(|entry| !entries.contains(&entry.0)) =>
                "it must be 1 B to 4 KiB";
            "checkpoint_interval" if interval < unit =>
                "{interval} is less than a program unit of {unit}";
        }
        Ok(Some(Self {
            start_time: keys.start_time,
            checkpoint_interval: interval,
            journal_entry: has_journal.then(|| entry.unwrap_or(JOURNAL_ENTRY)),
        }))
    }

    /// No change is needed because the default interval follows from the capacity.
    fn scaled(&self, drive: &Resizing<'_>) -> Vec<Change> {
        let interval = self.checkpoint_interval;
        if interval == Self::standard(drive.config.user_capacity).checkpoint_interval {
            return Vec::new();
        }
        let shorter = (interval.0 as f64 / drive.scale).round_ties_even() as u64;
        let shorter = Bytes(shorter.max(drive.config.word_line_bytes()));
        vec![size("recovery.checkpoint_interval", shorter)]
    }
}

impl DeviceConfig {
    pub(crate) fn recovery(&self) -> RecoveryConfig {
        let section = self.sections.recovery;
        section.unwrap_or_else(|| RecoveryConfig::standard(self.user_capacity))
    }

    /// Returns the reason why power cuts of such drives are not modelled; `None` if they are.
    pub fn refuses_power_cut(&self) -> Option<&'static str> {
        let (reduction, bad_blocks) = (&self.ftl.reduction, &self.ftl.bad_blocks);
        let reduced = "power cuts of drives with data reduction require power-loss protection";
        let bad = "power cuts of drives with bad blocks require power-loss protection";
        let reason = reduction.as_ref().map(|_| reduced).or(bad_blocks.as_ref().map(|_| bad));
        reason.filter(|_| !self.controller.power_loss_protection)
    }
}

/// State at the start of a rebuild.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lost {
    /// Slots programmed since the drive was new.
    pub programmed_slots: u64,
    /// Program units written in open reclaim units.
    pub open_units: u64,
    /// Units written in the open block of the SLC cache.
    pub open_log_units: u64,
    pub interrupted_erases: u32,
    /// `true` if the drive wrote the complete mapping with capacitor power.
    pub is_protected: bool,
}

/// Returns the shortest and the longest time until a drive that has lost power is ready. With
/// capacitors, only the checkpoint is read. Without, it is shortest after a checkpoint with no
/// reclaim unit open, and longest before one with nearly full units and an erase that did not end.
pub fn bounds(config: &DeviceConfig) -> [Rebuild; 2] {
    let is_protected = config.controller.power_loss_protection;
    let nothing = Lost { is_protected, ..Lost::default() };
    let geometry = &config.geometry;
    let units = geometry.slots_per_reclaim_unit / geometry.slots_per_program_unit;
    let most = Lost {
        programmed_slots: (config.recovery().checkpoint_interval.0 - 1) / SLOT_BYTES,
        // The host and garbage collection each have an open unit for every stream.
        open_units: 2 * u64::from(config.ftl.streams) * u64::from(units),
        open_log_units: config.sections.present().map(|s| s.open_units(geometry)).sum(),
        interrupted_erases: 1,
        is_protected,
    };
    [rebuild(config, &nothing), rebuild(config, &most)]
}

pub(crate) fn rebuild(config: &DeviceConfig, lost: &Lost) -> Rebuild {
    let recovery = config.recovery();
    let geometry = &config.geometry;
    let group = u64::from(geometry.slots_per_read_group) * SLOT_BYTES;
    let pages = |bytes: u64| read_time(config, bytes.div_ceil(group), group);
    let map = config.ftl.user_slots * MAP_ENTRY_BYTES;
    let mut rebuild =
        Rebuild { start: recovery.start_time, checkpoint: pages(map), ..Rebuild::default() };
    if lost.is_protected {
        return rebuild;
    }
    let since = lost.programmed_slots * SLOT_BYTES % recovery.checkpoint_interval.0;
    let groups_per_unit = u64::from(geometry.slots_per_program_unit).div_ceil(group / SLOT_BYTES);
    let scanned = match recovery.journal_entry {
        Some(entry) => {
            rebuild.journal = pages(since / SLOT_BYTES * entry.0);
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

/// Returns the time for all dies to read `groups` read groups and transfer `bytes` from each. The
/// dies of a channel sense at the same time and transfer in turn.
fn read_time(config: &DeviceConfig, groups: u64, bytes: u64) -> Nanos {
    if groups == 0 {
        return Nanos::ZERO;
    }
    let (geometry, timing) = (&config.geometry, &config.timing);
    let types = timing.read.len() as u64;
    let sense = timing.read.iter().map(|read| read.0).sum::<u64>() / types;
    let transfer = (timing.command + timing.bus.time_for(bytes)).0;
    let per_die = groups.div_ceil(u64::from(geometry.dies));
    let per_channel = groups.div_ceil(u64::from(geometry.shape.channels));
    let by_dies = per_die * (sense + transfer);
    let by_channels = sense + per_channel * transfer;
    Nanos(by_dies.max(by_channels))
}
