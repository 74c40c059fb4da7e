//! Mechanisms of a drive, one per directory or file, and their device file sections.

use writecliff_base::keys::{Section, SectionKeys};
use writecliff_base::located::{Answer, Change, Table};
use writecliff_base::{Bytes, Lpn, Nanos, saved};
use writecliff_flash::Geometry;
use writecliff_host_interface::Status;

use crate::config::ControllerConfig;
use crate::die::medium_of;
use crate::{DeviceConfig, Recorder, Ssd};

pub(crate) use crate::device_file::scaled::Resizing;
pub(crate) use hooks::each;
pub(crate) use hooks::{Access, MappedSlots, Mechanism, Medium, Numbered, steps};

#[macro_use]
mod hooks;

pub mod bad_blocks;
pub mod cell_care;
pub mod die_parity;
pub mod ecc;
pub mod endurance;
pub mod housekeeping;
pub mod indirection_units;
pub mod integrity;
pub mod mapping_cache;
pub mod mapping_core;
pub mod plane_reads;
pub mod power;
pub mod power_loss;
pub mod read_ahead;
pub mod reclaim_groups;
pub mod reduction;
pub mod slc_cache;
pub mod thermal;

/// A section, present if the drive has its mechanism.
pub(crate) type Checked<T> = Answer<Option<T>>;

/// Device file data that are read before the sections of the mechanisms.
pub(crate) struct Described<'a> {
    pub root: &'a Table<'a>,
    /// Flash that remains for host data and spare space.
    pub geometry: Geometry,
    pub controller: &'a ControllerConfig,
    pub user_capacity: Bytes,
}

/// A section of the device file, which only drives with the mechanism have.
pub(crate) trait MechanismSection {
    type Keys: Section
    where
        Self: Sized;

    /// Checks the values of the section; returns `None` if they disable the mechanism. A mechanism
    /// that uses flash removes it from the drive's geometry.
    ///
    /// # Errors
    /// Returns an error at the key whose value is impossible for this drive.
    fn check(keys: Self::Keys, table: &Table<'_>, drive: &mut Described<'_>) -> Checked<Self>
    where
        Self: Sized;

    /// Returns the changes for a drive of another size that receives commands at the same times.
    fn resized(&self, _: &Resizing<'_>) -> Vec<Change> {
        Vec::new()
    }

    /// Returns the changes for a smaller drive where time passes faster by the same factor.
    fn scaled(&self, drive: &Resizing<'_>) -> Vec<Change> {
        self.resized(drive)
    }

    /// Returns `true` if two drives with these sections place equal fast-forwarded writes
    /// identically, and store no state of these writes outside the FTL and its front.
    fn places_alike(_ours: Option<&Self>, _theirs: Option<&Self>) -> bool
    where
        Self: Sized,
    {
        true
    }

    /// Returns the number of page numbers that the mechanism uses after those of the main flash.
    fn addresses(&self) -> u64 {
        0
    }

    /// Returns the firmware time of a slot moved to the main flash; `None`: as for host slots.
    fn move_time(&self) -> Option<Nanos> {
        None
    }

    /// Returns the maximum number of open program units in the mechanism's own blocks.
    fn open_units(&self, _: &Geometry) -> u64 {
        0
    }

    /// Returns the bytes of the write buffer that the mechanism needs beyond the streams'.
    fn buffer_bytes(&self, _: &Geometry) -> u64 {
        0
    }
}

/// Declares [`Sections`] from one line per mechanism, in the order in which the sections are read.
macro_rules! sections {
    ($($name:ident: $config:ty,)*) => {
        /// Mechanisms described by a device file.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Sections {
            $(
                #[doc = concat!("The section `[", stringify!($name), "]`; `None` without it.")]
                pub $name: Option<$config>,
            )*
        }

        impl Sections {
            pub(crate) fn keys() -> Vec<SectionKeys> {
                vec![$(<$config as MechanismSection>::Keys::documented(stringify!($name), false)),*]
            }

            pub(crate) fn read(drive: &mut Described<'_>) -> Answer<Self> {
                Ok(Self { $($name: read(stringify!($name), drive)?),* })
            }

            pub(crate) fn place_alike(&self, other: &Self) -> bool {
                true $(&& <$config>::places_alike(self.$name.as_ref(), other.$name.as_ref()))*
            }

            pub(crate) fn present(&self) -> impl Iterator<Item = &dyn MechanismSection> {
                let all = [$(self.$name.as_ref().map(|s| s as &dyn MechanismSection)),*];
                all.into_iter().flatten()
            }
        }
    };
}

impl Sections {
    pub(crate) fn addresses(&self) -> u64 {
        self.present().map(MechanismSection::addresses).sum()
    }

    pub(crate) fn buffer_bytes(&self, geometry: &Geometry) -> u64 {
        self.present().map(|section| section.buffer_bytes(geometry)).sum()
    }
}

sections! {
    die_parity: die_parity::DieParityConfig,
    housekeeping: housekeeping::HousekeepingConfig,
    ecc: ecc::EccConfig,
    cell_care: cell_care::CellCareConfig,
    endurance: endurance::EnduranceConfig,
    integrity: integrity::IntegrityConfig,
    power: power::PowerConfig,
    thermal: thermal::ThermalConfig,
    slc_cache: slc_cache::SlcCacheConfig,
    recovery: power_loss::recovery::RecoveryConfig,
    mapping_cache: mapping_cache::MappingCacheConfig,
    read_ahead: read_ahead::ReadAheadConfig,
}

// Mechanisms that own flash come first, because only the first mechanisms can have a medium.
mechanisms! { ($)
    mapping_cache: mapping_cache::MappingCache,
    mapping_core: mapping_core::MappingCore,
    housekeeping: housekeeping::Housekeeping,
    refresh: cell_care::Refreshing,
    relocation: die_parity::Relocation,
    thermal: thermal::Thermal,
    endurance: endurance::Endurance,
    integrity: integrity::Integrity,
    read_ahead: read_ahead::ReadAhead,
}

/// Mechanisms that take part in flash operations. The backend calls them directly.
pub(crate) struct FlashMechanisms {
    pub ecc: Option<Box<ecc::Ecc>>,
    pub die_parity: Option<Box<die_parity::DieParity>>,
    pub plane_reads: Option<Box<plane_reads::Planes>>,
    pub active_dies: Option<Box<power::active_dies::ActiveDies>>,
}

saved! { FlashMechanisms { (ecc), (die_parity), (plane_reads), (active_dies) } }

impl FlashMechanisms {
    pub(crate) fn of(config: &DeviceConfig) -> Self {
        Self {
            ecc: ecc::Ecc::of(config),
            die_parity: die_parity::DieParity::of(config),
            plane_reads: plane_reads::Planes::of(config),
            active_dies: power::active_dies::ActiveDies::of(config),
        }
    }

    /// Returns the number of flash reads with lost data, which parity across dies reduces.
    pub(crate) fn lost_reads(&self) -> u64 {
        match (&self.die_parity, &self.ecc) {
            (Some(parity), _) => parity.counts.unrecovered,
            (None, Some(ecc)) => ecc.counters.uncorrectable_reads,
            (None, None) => 0,
        }
    }

    /// Called when all operations of all dies have finished or are dropped.
    pub(crate) fn cleared(&mut self) {
        if let Some(planes) = &mut self.plane_reads {
            planes.cleared();
        }
        if let Some(active) = &mut self.active_dies {
            active.cleared();
        }
    }
}

/// Sections, each with the section that it requires.
const NEEDED: [(&str, &str); 2] = [("cell_care", "ecc"), ("thermal", "power")];

/// Combinations that are not modelled: a section or feature, with the sections it excludes.
pub const NOT_TOGETHER: [(&str, &[&str]); 7] = [
    ("[reduction]", &["slc_cache", "data_placement"]),
    ("[bad_blocks]", &["slc_cache", "reduction"]),
    ("[die_parity]", &["slc_cache", "reduction", "bad_blocks", "mapping_cache"]),
    (INDEPENDENT_PLANES, &["die_parity"]),
    (SEVERAL_GROUPS, &["slc_cache", "bad_blocks", "die_parity"]),
    ("[read_ahead]", &["slc_cache", "reduction", "die_parity", "mapping_cache"]),
    (LARGE_UNITS, &["slc_cache", "reduction", "integrity", "read_ahead"]),
];
pub(crate) const INDEPENDENT_PLANES: &str = "independent_plane_reads";
pub(crate) const SEVERAL_GROUPS: &str = "several reclaim_groups";
pub(crate) const LARGE_UNITS: &str = "indirection_unit above 4 KiB";

fn read<T: MechanismSection>(name: &str, drive: &mut Described<'_>) -> Checked<T> {
    let Some(table) = drive.root.optional_table(name)? else { return Ok(None) };
    let needed = NEEDED.iter().find(|(section, other)| *section == name && !drive.root.has(other));
    if let Some((_, other)) = needed {
        let message = format!("[{name}] requires section [{other}], which is missing");
        return Err(drive.root.error(name, message, None));
    }
    let section = T::check(T::Keys::read_keys(&table)?, &table, drive)?;
    table.finish()?;
    Ok(section)
}
