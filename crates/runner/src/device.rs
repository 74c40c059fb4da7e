//! The interface between host and drive, and the three kinds of drives.
//!
//! Hosts are generic over [`DriveModel`], so each kind of drive has its own specialised loop
//! without dynamic dispatch per command. [`crate::AnyDrive`] dispatches once per step, for callers
//! that only have a device file.

use writecliff_base::counters;
use writecliff_base::counters::{Reading, readings};
use writecliff_base::keys::SectionKeys;
use writecliff_base::located::{LocatedError, LocatedToml};
use writecliff_base::{Bytes, Nanos};
use writecliff_disk::{Disk, DiskConfig, DiskCounters};
use writecliff_host_interface::placement::DataPlacementStatus;
use writecliff_host_interface::{Command, Completion, Identity, LinkConfig, TimeByCause};
use writecliff_scm::{Scm, ScmConfig, ScmCounters};
use writecliff_ssd::attribution::Recorder;
use writecliff_ssd::{DeviceConfig, DriveCounters, Ssd};

/// A drive in virtual time. See `Ssd` for the contract of each method.
pub trait DriveModel {
    fn capacity(&self) -> Bytes;
    /// Number of streams that a load may use, including the default one.
    fn streams(&self) -> u16;
    /// Why the drive does not support TRIM, if it does not.
    fn refuses_trim(&self) -> Option<&'static str>;
    fn now(&self) -> Nanos;
    fn submit(&mut self, at: Nanos, command: Command);
    fn step(&mut self, limit: Nanos) -> Option<Completion>;
    /// When the drive does something next, if it is left alone; `None` for never.
    fn next_event(&self) -> Option<Nanos>;
    /// What the time of the command that completed last was spent on, if it is recorded.
    fn time_by_cause(&self) -> Option<&TimeByCause>;
    /// Announces a command at `offset`.
    fn announce(&self, offset: u64);
    fn idle_until(&mut self, time: Nanos);
    fn quiesce(&mut self);
    fn fast_forward(&mut self, command: &Command);
    fn end_fast_forward(&mut self);
    fn counters(&self) -> Counters;
    /// Status of the data placement interface; `None` without one.
    fn data_placement_status(&mut self) -> Option<DataPlacementStatus>;
    fn host_write_bytes(&self) -> u64;
    /// `None` for drives that do not write flash.
    fn nand_write_bytes(&self) -> Option<u64>;
    /// Energy until `time`; `None` if the device file has no power section.
    fn joules_until(&self, time: Nanos) -> Option<f64>;
    /// Temperature at `time`; `None` if the device file has no thermal section.
    fn celsius_at(&self, time: Nanos) -> Option<f64>;
}

/// Evaluates the same expression for any kind of drive.
macro_rules! each {
    ($any:expr, $of:ident => $do:expr) => {
        match $any {
            Self::Ssd($of) => $do,
            Self::Disk($of) => $do,
            Self::Scm($of) => $do,
        }
    };
}

/// Counters of a drive since it was new.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "two a step, and copied")]
pub enum Counters {
    Ssd(DriveCounters),
    Disk(DiskCounters),
    Scm(ScmCounters),
}

impl Counters {
    pub fn host_write_bytes(&self) -> u64 {
        each!(self, c => c.host_write_bytes)
    }

    pub fn host_read_bytes(&self) -> u64 {
        each!(self, c => c.host_read_bytes)
    }

    /// Reads of unmapped addresses; always 0 for drives without a map.
    pub fn unmapped_read_bytes(&self) -> u64 {
        match self {
            Self::Ssd(c) => c.unmapped_read_bytes,
            Self::Disk(_) | Self::Scm(_) => 0,
        }
    }

    /// Bytes written to flash for any reason; `None` for drives that have none.
    pub fn nand_write_bytes(&self) -> Option<u64> {
        match self {
            Self::Ssd(c) => Some(c.nand_write_bytes),
            Self::Disk(_) | Self::Scm(_) => None,
        }
    }
}

counters! { |c: Counters|
    Integer "host_write_bytes" Bytes: c.host_write_bytes(), "written by the host";
    Integer "host_read_bytes" Bytes: c.host_read_bytes(), "read by the host";
}

/// All counters of all kinds of drives, with the values of this one.
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

/// Methods that all kinds have under the same name.
macro_rules! passed_on {
    () => {
        #[inline]
        fn now(&self) -> Nanos {
            self.now()
        }
        #[inline]
        fn submit(&mut self, at: Nanos, command: Command) {
            self.submit(at, command);
        }
        #[inline(always)]
        fn step(&mut self, limit: Nanos) -> Option<Completion> {
            self.step(limit)
        }
        fn next_event(&self) -> Option<Nanos> {
            self.next_event()
        }
        fn idle_until(&mut self, time: Nanos) {
            self.idle_until(time);
        }
        fn quiesce(&mut self) {
            self.quiesce();
        }
        #[inline]
        fn fast_forward(&mut self, command: &Command) {
            self.fast_forward(command);
        }
        fn capacity(&self) -> Bytes {
            self.config().user_capacity
        }
        fn host_write_bytes(&self) -> u64 {
            self.host_write_bytes()
        }
    };
}

impl<R: Recorder> DriveModel for Ssd<R> {
    passed_on!();

    #[inline]
    fn time_by_cause(&self) -> Option<&TimeByCause> {
        self.time_by_cause()
    }

    fn streams(&self) -> u16 {
        self.stream_numbers()
    }

    fn refuses_trim(&self) -> Option<&'static str> {
        None
    }

    #[inline]
    fn announce(&self, offset: u64) {
        self.announce(offset);
    }

    fn end_fast_forward(&mut self) {
        self.end_fast_forward();
    }

    fn counters(&self) -> Counters {
        Counters::Ssd(self.counters())
    }

    fn data_placement_status(&mut self) -> Option<DataPlacementStatus> {
        self.data_placement_status()
    }

    fn nand_write_bytes(&self) -> Option<u64> {
        Some(self.nand_write_bytes())
    }

    fn joules_until(&self, time: Nanos) -> Option<f64> {
        self.energy_until(time).map(|energy| energy.total())
    }

    fn celsius_at(&self, time: Nanos) -> Option<f64> {
        self.thermal_at(time).map(|thermal| thermal.celsius)
    }
}

/// Methods of drives without flash: one stream, nothing recorded, no flash written, no models of
/// power and temperature.
macro_rules! without_flash {
    () => {
        fn streams(&self) -> u16 {
            1
        }
        fn time_by_cause(&self) -> Option<&TimeByCause> {
            None
        }
        fn announce(&self, _: u64) {}
        fn end_fast_forward(&mut self) {}
        fn data_placement_status(&mut self) -> Option<DataPlacementStatus> {
            None
        }
        fn nand_write_bytes(&self) -> Option<u64> {
            None
        }
        fn joules_until(&self, _: Nanos) -> Option<f64> {
            None
        }
        fn celsius_at(&self, _: Nanos) -> Option<f64> {
            None
        }
    };
}

impl DriveModel for Disk {
    passed_on!();
    without_flash!();

    fn refuses_trim(&self) -> Option<&'static str> {
        Some("the drive is a hard disk and has no TRIM")
    }

    fn counters(&self) -> Counters {
        Counters::Disk(self.counters())
    }
}

impl DriveModel for Scm {
    passed_on!();
    without_flash!();

    fn refuses_trim(&self) -> Option<&'static str> {
        None
    }

    fn counters(&self) -> Counters {
        Counters::Scm(self.counters())
    }
}

/// Returns the keys of device files, by kind of drive.
pub fn device_keys() -> [(&'static str, Vec<SectionKeys>); 3] {
    [
        ("SSDs", writecliff_ssd::device_file::keys()),
        ("Hard disks", writecliff_disk::device_file::keys()),
        ("Storage-class memory", writecliff_scm::device_file::keys()),
    ]
}

/// A checked device file of any kind.
#[derive(Clone, Debug, PartialEq)]
pub enum AnyConfig {
    Ssd(Box<DeviceConfig>),
    Disk(Box<DiskConfig>),
    Scm(Box<ScmConfig>),
}

impl AnyConfig {
    /// Reads a parsed device file: a table `[disk]` makes it a disk's, a table `[media]` that of a
    /// drive of storage-class memory. `seed` seeds the drive's random choices.
    pub fn describe(toml: &LocatedToml, seed: u64) -> Result<Self, LocatedError> {
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

    /// What the drive is instead of a drive with flash, in a message; `None` for SSDs.
    pub fn without_flash(&self) -> Option<&'static str> {
        match self {
            Self::Ssd(_) => None,
            Self::Disk(_) => Some("a hard disk"),
            Self::Scm(_) => Some("a drive of storage-class memory"),
        }
    }

    pub fn identity(&self) -> &Identity {
        each!(self, config => &config.identity)
    }

    pub fn user_capacity(&self) -> Bytes {
        each!(self, config => config.user_capacity)
    }

    pub fn link(&self) -> &LinkConfig {
        each!(self, config => &config.link)
    }

    /// State of the volatile write cache after power-up.
    pub fn write_cache(&self) -> bool {
        match self {
            Self::Ssd(config) => config.controller.write_cache,
            Self::Disk(config) => config.cache.write_cache,
            Self::Scm(_) => false,
        }
    }

    /// The text from which the device hash is computed.
    pub fn canonical(&self) -> &str {
        each!(self, config => &config.canonical)
    }
}
