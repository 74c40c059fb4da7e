//! The three types of drives.
//!
//! Hosts are generic over [`DriveModel`], so each drive type has its own specialised loop without
//! dynamic dispatch per command. [`crate::AnyDrive`] dispatches once per step, for callers that
//! only have a device file.

use std::any::Any;

use writecliff_base::counters;
use writecliff_base::counters::{Reading, readings};
use writecliff_base::keys::SectionKeys;
use writecliff_base::located::{Answer, LocatedToml};
use writecliff_base::saved_state::RestoreError;
use writecliff_base::{Bytes, SLOT_BYTES};
use writecliff_disk::{Disk, DiskConfig, DiskCounters};
use writecliff_host_interface::{Drive, Identity, LinkConfig};
use writecliff_scm::{Scm, ScmConfig, ScmCounters};
use writecliff_ssd::attribution::Recorder;
use writecliff_ssd::{DeviceConfig, DriveCounters, PowerCut, Ssd};

use crate::any_drive::MovedByStream;

/// Drive operations that depend on the drive type, in addition to [`Drive`].
pub trait DriveModel: Drive + Any + Send + Sync {
    /// Returns a copy of the configuration.
    fn any_config(&self) -> AnyConfig;

    /// Returns the counters since the drive was new.
    fn counters(&self) -> Counters;

    /// Creates a new drive from the same device file, with the same recorder.
    fn fresh(&self) -> Result<Self, String>
    where
        Self: Sized;

    /// Copies the state of another drive directly, if possible. After an error, the drive must not
    /// be used.
    fn copy_of(&mut self, _other: &dyn Any) -> Option<Result<(), RestoreError>> {
        None
    }

    /// Cuts and restores the power. Outstanding commands do not complete, and the drive is busy
    /// until it has rebuilt its mapping. Returns `None`, without any effect, if power cuts of this
    /// drive are not modelled.
    fn cut_power(&mut self) -> Option<PowerCut> {
        None
    }

    /// Returns the data relocated by garbage collection and wear levelling since the drive was
    /// created or restored, by FTL stream. The result is `None` for drives without flash and drives
    /// that compress.
    fn moved_by_stream(&self) -> Option<MovedByStream> {
        None
    }
}

/// Drive counters since the drive was new.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "each step has two, which are copied")]
pub enum Counters {
    /// Counters of an SSD.
    Ssd(DriveCounters),
    /// Counters of a hard disk.
    Disk(DiskCounters),
    /// Counters of storage-class memory.
    Scm(ScmCounters),
}

impl Counters {
    /// Returns the numbers of bytes written and read by the host.
    fn host_bytes(&self) -> (u64, u64) {
        match self {
            Self::Ssd(c) => (c.host_write_bytes, c.host_read_bytes),
            Self::Disk(c) => (c.host.write_bytes, c.host.read_bytes),
            Self::Scm(c) => (c.host.write_bytes, c.host.read_bytes),
        }
    }

    /// Returns the number of bytes written by the host.
    pub fn host_write_bytes(&self) -> u64 {
        self.host_bytes().0
    }

    /// Returns the number of bytes read by the host.
    pub fn host_read_bytes(&self) -> u64 {
        self.host_bytes().1
    }

    /// Returns the number of bytes read from unmapped addresses; always 0 for drives without a map.
    pub fn unmapped_read_bytes(&self) -> u64 {
        match self {
            Self::Ssd(c) => c.unmapped_read_bytes,
            Self::Disk(_) | Self::Scm(_) => 0,
        }
    }

    /// Returns the number of bytes written to flash for any reason; `None` for drives without
    /// flash.
    pub fn nand_write_bytes(&self) -> Option<u64> {
        match self {
            Self::Ssd(c) => Some(c.nand_write_bytes),
            Self::Disk(_) | Self::Scm(_) => None,
        }
    }
}

counters! { |c: Counters|
    Integer "host_write_bytes" Bytes: c.host_write_bytes(), "bytes written by the host";
    Integer "host_read_bytes" Bytes: c.host_read_bytes(), "bytes read by the host";
}

/// Returns the counters of all drive types, with the values of this drive.
pub fn counter_readings(counters: Option<&Counters>) -> Vec<Reading> {
    let (ssd, disk, scm) = match counters {
        Some(Counters::Ssd(ssd)) => (Some(ssd), None, None),
        Some(Counters::Disk(disk)) => (None, Some(disk), None),
        Some(Counters::Scm(scm)) => (None, None, Some(scm)),
        None => (None, None, None),
    };
    let of_flash = readings(counters).chain(DriveCounters::readings(ssd));
    of_flash.chain(readings(disk)).chain(readings(scm)).collect()
}

impl<R: Recorder + Send + Sync + 'static> DriveModel for Ssd<R> {
    fn any_config(&self) -> AnyConfig {
        AnyConfig::Ssd(Box::new(self.config().clone()))
    }

    fn counters(&self) -> Counters {
        Counters::Ssd(self.counters())
    }

    fn fresh(&self) -> Result<Self, String> {
        let mut ssd = Self::recording(self.config().clone()).map_err(|e| e.to_string())?;
        ssd.reports_causes = self.reports_causes;
        Ok(ssd)
    }

    fn copy_of(&mut self, other: &dyn Any) -> Option<Result<(), RestoreError>> {
        other.downcast_ref::<Ssd>().map(|other| self.copy_from(other))
    }

    fn cut_power(&mut self) -> Option<PowerCut> {
        self.storage().refuses_power_cut(self.config()).is_none().then(|| self.cut_power())
    }

    fn moved_by_stream(&self) -> Option<MovedByStream> {
        if self.config().ftl.reduction.is_some() {
            return None;
        }
        let to_bytes = |&slots: &u64| slots * SLOT_BYTES;
        let (mixed, each) = self.ftl().moved_by_stream().split_last()?;
        Some(MovedByStream {
            bytes: each.iter().map(to_bytes).collect(),
            mixed_bytes: to_bytes(mixed),
        })
    }
}

impl DriveModel for Disk {
    fn any_config(&self) -> AnyConfig {
        AnyConfig::Disk(Box::new(self.config().clone()))
    }

    fn counters(&self) -> Counters {
        Counters::Disk(self.counters())
    }

    fn fresh(&self) -> Result<Self, String> {
        Self::new(self.config().clone()).map_err(|e| e.to_string())
    }
}

impl DriveModel for Scm {
    fn any_config(&self) -> AnyConfig {
        AnyConfig::Scm(Box::new(self.config().clone()))
    }

    fn counters(&self) -> Counters {
        Counters::Scm(self.counters())
    }

    fn fresh(&self) -> Result<Self, String> {
        Ok(Self::new(self.config().clone()))
    }
}

/// Returns the keys of device files, by drive type.
pub fn device_keys() -> [(&'static str, Vec<SectionKeys>); 3] {
    [
        ("SSDs", writecliff_ssd::device_file::keys()),
        ("Hard disks", writecliff_disk::device_file::keys()),
        ("Storage-class memory", writecliff_scm::device_file::keys()),
    ]
}

/// A validated device file of any drive type.
#[derive(Clone, Debug, PartialEq)]
pub enum AnyConfig {
    /// Configuration of an SSD.
    Ssd(Box<DeviceConfig>),
    /// Configuration of a hard disk.
    Disk(Box<DiskConfig>),
    /// Configuration of a drive with storage-class memory.
    Scm(Box<ScmConfig>),
}

impl AnyConfig {
    /// Reads a parsed device file. A table `[disk]` identifies a hard disk, and a table `[media]` a
    /// drive with storage-class memory. `seed` initialises the drive's random choices.
    pub fn describe(toml: &LocatedToml, seed: u64) -> Answer<Self> {
        if writecliff_disk::device_file::is_disk(toml) {
            let config = writecliff_disk::device_file::describe(toml, seed)?;
            return Ok(Self::Disk(Box::new(config)));
        }
        if writecliff_scm::device_file::is_scm(toml) {
            let config = writecliff_scm::device_file::describe(toml)?;
            return Ok(Self::Scm(Box::new(config)));
        }
        let config = writecliff_ssd::device_file::describe(toml, seed)?;
        Ok(Self::Ssd(Box::new(config)))
    }

    /// Returns the type of a drive without flash, for messages; `None` for SSDs.
    pub fn without_flash(&self) -> Option<&'static str> {
        match self {
            Self::Ssd(_) => None,
            Self::Disk(_) => Some("a hard disk"),
            Self::Scm(_) => Some("a drive of storage-class memory"),
        }
    }

    /// Returns the description common to all drive types: identity, capacity, link and canonical
    /// text.
    fn common(&self) -> (&Identity, Bytes, &LinkConfig, &str) {
        match self {
            Self::Ssd(c) => (&c.identity, c.user_capacity, &c.link, &c.canonical),
            Self::Disk(c) => (&c.identity, c.user_capacity, &c.link, &c.canonical),
            Self::Scm(c) => (&c.identity, c.user_capacity, &c.link, &c.canonical),
        }
    }

    /// Returns the model name and firmware revision.
    pub fn identity(&self) -> &Identity {
        self.common().0
    }

    /// Returns the capacity that the host can address.
    pub fn user_capacity(&self) -> Bytes {
        self.common().1
    }

    /// Returns the host link and the submission queues.
    pub fn link(&self) -> &LinkConfig {
        self.common().2
    }

    /// Returns the state of the volatile write cache after power-up.
    pub fn write_cache(&self) -> bool {
        match self {
            Self::Ssd(config) => config.controller.write_cache,
            Self::Disk(config) => config.cache.write_cache,
            Self::Scm(_) => false,
        }
    }

    /// Returns the canonical text that the device hash is computed from.
    pub fn canonical(&self) -> &str {
        self.common().3
    }
}
