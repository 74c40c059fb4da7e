//! The interface between host and drive, and the two kinds of drives.
//!
//! Hosts are generic over [`DriveModel`], so each kind of drive has its own specialised loop
//! without dynamic dispatch per command. [`AnyDrive`] dispatches once per step, for callers that
//! only have a device file.

use std::io::{Read, Write};

use writecliff_base::codec::CodecError;
use writecliff_base::counters;
use writecliff_base::counters::{Reading, readings};
use writecliff_base::located::{LocatedError, LocatedToml};
use writecliff_base::saved_state::RestoreError;
use writecliff_base::{Bytes, Nanos};
use writecliff_disk::{Disk, DiskConfig, DiskCounters};
use writecliff_flash::geometry::SLOT_BYTES;
use writecliff_host_interface::{Command, Completion, Identity, LinkConfig, TimeByCause};
use writecliff_ssd::attribution::Recorder;
use writecliff_ssd::data_placement::status::DataPlacementStatus;
use writecliff_ssd::{Attribution, DeviceConfig, DriveCounters, PowerCut, Ssd};
use writecliff_workload::{SpecError, WorkloadSpec};

use crate::outcome::{Observer, StepOutcome};
use crate::{drive, fast_forward};

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

/// Evaluates the same expression for either kind of drive.
macro_rules! either {
    ($any:expr, $of:ident => $do:expr) => {
        match $any {
            Self::Ssd($of) => $do,
            Self::Disk($of) => $do,
        }
    };
}

/// Counters of a drive since it was new.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "two a step, and copied")]
pub enum Counters {
    Ssd(DriveCounters),
    Disk(DiskCounters),
}

impl Counters {
    pub fn host_write_bytes(&self) -> u64 {
        either!(self, c => c.host_write_bytes)
    }

    pub fn host_read_bytes(&self) -> u64 {
        either!(self, c => c.host_read_bytes)
    }

    /// Reads of unmapped addresses; always 0 for disks.
    pub fn unmapped_read_bytes(&self) -> u64 {
        match self {
            Self::Ssd(c) => c.unmapped_read_bytes,
            Self::Disk(_) => 0,
        }
    }

    /// Bytes written to flash for any reason; `None` for disks.
    pub fn nand_write_bytes(&self) -> Option<u64> {
        match self {
            Self::Ssd(c) => Some(c.nand_write_bytes),
            Self::Disk(_) => None,
        }
    }
}

counters! { |c: Counters|
    Integer "host_write_bytes" Bytes: c.host_write_bytes(), "written by the host";
    Integer "host_read_bytes" Bytes: c.host_read_bytes(), "read by the host";
}

/// All counters of both kinds of drives, with the values of this one.
pub fn counter_readings(counters: Option<&Counters>) -> Vec<Reading> {
    let (ssd, disk) = match counters {
        Some(Counters::Ssd(ssd)) => (Some(ssd), None),
        Some(Counters::Disk(disk)) => (None, Some(disk)),
        None => (None, None),
    };
    readings(counters).chain(DriveCounters::readings(ssd)).chain(readings(disk)).collect()
}

/// Methods that both kinds have under the same name.
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

impl DriveModel for Disk {
    passed_on!();

    fn streams(&self) -> u16 {
        1
    }

    fn refuses_trim(&self) -> Option<&'static str> {
        Some("the drive is a hard disk and has no TRIM")
    }

    fn time_by_cause(&self) -> Option<&TimeByCause> {
        None
    }

    fn announce(&self, _: u64) {}

    fn end_fast_forward(&mut self) {}

    fn counters(&self) -> Counters {
        Counters::Disk(self.counters())
    }

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
}

/// A checked device file of either kind.
#[derive(Clone, Debug, PartialEq)]
pub enum AnyConfig {
    Ssd(Box<DeviceConfig>),
    Disk(Box<DiskConfig>),
}

impl AnyConfig {
    /// Reads a parsed device file: a table `[disk]` makes it a disk's. `seed` seeds the drive's
    /// random choices.
    pub fn describe(toml: &LocatedToml, seed: u64) -> Result<Self, LocatedError> {
        if writecliff_disk::device_file::is_disk(toml) {
            let config = writecliff_disk::device_file::describe(toml, seed)?;
            return Ok(Self::Disk(Box::new(config)));
        }
        let config = writecliff_ssd::device_file::describe(toml, seed)?;
        Ok(Self::Ssd(Box::new(config)))
    }

    pub fn identity(&self) -> &Identity {
        either!(self, config => &config.identity)
    }

    pub fn user_capacity(&self) -> Bytes {
        either!(self, config => config.user_capacity)
    }

    pub fn link(&self) -> &LinkConfig {
        either!(self, config => &config.link)
    }

    /// State of the volatile write cache after power-up.
    pub fn write_cache(&self) -> bool {
        match self {
            Self::Ssd(config) => config.controller.write_cache,
            Self::Disk(config) => config.cache.write_cache,
        }
    }

    /// The text from which the device hash is computed.
    pub fn canonical(&self) -> &str {
        either!(self, config => &config.canonical)
    }
}

/// What garbage collection and wear levelling have moved, by stream of the FTL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MovedByStream {
    /// The stream of the FTL of each stream number that was asked for; `None` for one that the
    /// drive does not have.
    pub streams: Vec<Option<u16>>,
    /// By stream of the FTL, the rest is of units with relocated data of several streams.
    pub bytes: Vec<u64>,
    pub mixed_bytes: u64,
}

impl MovedByStream {
    /// Without what was moved before `earlier`, of the same drive.
    #[must_use]
    pub fn since(mut self, earlier: &Self) -> Self {
        for (now, before) in self.bytes.iter_mut().zip(&earlier.bytes) {
            *now -= before;
        }
        self.mixed_bytes -= earlier.mixed_bytes;
        self
    }

    fn of<R: Recorder>(ssd: &Ssd<R>, numbers: &[u16]) -> Option<Self> {
        if !ssd.has_fixed_streams() || ssd.config().ftl.reduction.is_some() {
            return None;
        }
        let to_bytes = |&slots: &u64| slots * u64::from(SLOT_BYTES);
        let (mixed, each) = ssd.ftl().moved_by_stream().split_last()?;
        Some(Self {
            streams: numbers.iter().map(|&n| ssd.routed(n).map(|stream| stream.0)).collect(),
            bytes: each.iter().map(to_bytes).collect(),
            mixed_bytes: to_bytes(mixed),
        })
    }
}

/// A drive of either kind.
pub enum AnyDrive {
    Ssd(Box<Ssd>),
    /// Records what the time of its commands is spent on.
    AttributedSsd(Box<Ssd<Attribution>>),
    Disk(Box<Disk>),
}

/// The same for every variant of a drive.
macro_rules! drive {
    ($any:expr, $of:ident => $do:expr) => {
        match $any {
            Self::Ssd($of) => $do,
            Self::AttributedSsd($of) => $do,
            Self::Disk($of) => $do,
        }
    };
}

impl AnyDrive {
    /// Creates a drive; `Err` explains why that is impossible. With `attribute_latency` it records
    /// what the time of its commands is spent on, unless it is a disk.
    pub fn new(config: AnyConfig, attribute_latency: bool) -> Result<Self, String> {
        match config {
            AnyConfig::Ssd(config) if attribute_latency => Ssd::recording(*config)
                .map(|ssd| Self::AttributedSsd(Box::new(ssd)))
                .map_err(|e| e.to_string()),
            AnyConfig::Ssd(config) => {
                Ssd::new(*config).map(|ssd| Self::Ssd(Box::new(ssd))).map_err(|e| e.to_string())
            }
            AnyConfig::Disk(config) => {
                Disk::new(*config).map(|disk| Self::Disk(Box::new(disk))).map_err(|e| e.to_string())
            }
        }
    }

    pub fn config(&self) -> AnyConfig {
        match self {
            Self::Ssd(ssd) => AnyConfig::Ssd(Box::new(ssd.config().clone())),
            Self::AttributedSsd(ssd) => AnyConfig::Ssd(Box::new(ssd.config().clone())),
            Self::Disk(disk) => AnyConfig::Disk(Box::new(disk.config().clone())),
        }
    }

    /// The drive without its kind, for callers to whom a dispatch per command is nothing.
    pub fn model(&mut self) -> &mut dyn DriveModel {
        drive!(self, drive => &mut **drive)
    }

    /// Whether data of a completed write may be lost with the power until the drive is flushed.
    pub fn is_volatile(&self) -> bool {
        let protected = match self {
            Self::Ssd(ssd) => ssd.config().controller.power_loss_protection,
            Self::AttributedSsd(ssd) => ssd.config().controller.power_loss_protection,
            Self::Disk(_) => false,
        };
        self.write_cache() && !protected
    }

    /// Cuts the power and gives it back: commands that are outstanding do not complete, and the
    /// drive is busy until its mapping is found again. `None` if cuts of this drive are not
    /// modelled; then nothing has happened.
    pub fn cut_power(&mut self) -> Option<PowerCut> {
        match self {
            Self::Ssd(ssd) => ssd.refuses_power_cut().is_none().then(|| ssd.cut_power()),
            Self::AttributedSsd(ssd) => ssd.refuses_power_cut().is_none().then(|| ssd.cut_power()),
            Self::Disk(_) => None,
        }
    }

    /// Reclaim units that hold nothing; `None` for disks.
    pub fn free_units(&self) -> Option<u32> {
        match self {
            Self::Ssd(ssd) => Some(ssd.ftl().free_units()),
            Self::AttributedSsd(ssd) => Some(ssd.ftl().free_units()),
            Self::Disk(_) => None,
        }
    }

    /// Where writes with these stream numbers go, and what garbage collection and wear levelling
    /// have moved of each stream since the drive was made or restored. `None` for disks, drives
    /// that assign stream numbers as they are opened, and drives that compress.
    pub fn moved_by_stream(&self, numbers: &[u16]) -> Option<MovedByStream> {
        match self {
            Self::Ssd(ssd) => MovedByStream::of(ssd, numbers),
            Self::AttributedSsd(ssd) => MovedByStream::of(ssd, numbers),
            Self::Disk(_) => None,
        }
    }

    /// Run `spec` on the timed clock; see [`drive::run`].
    pub fn run(
        &mut self,
        spec: &WorkloadSpec,
        observer: &mut dyn Observer,
    ) -> Result<StepOutcome, SpecError> {
        drive!(self, drive => drive::run(&mut **drive, spec, observer))
    }

    /// Bring the drive to the state after `spec`; see [`fast_forward::run`].
    pub fn fast_forward(
        &mut self,
        spec: &WorkloadSpec,
        observer: &mut dyn Observer,
    ) -> Result<StepOutcome, SpecError> {
        drive!(self, drive => fast_forward::run(&mut **drive, spec, observer))
    }

    /// Returns flash to the state of "no writes". A disk has no such state and only writes back its
    /// cache.
    pub fn purge(&mut self) {
        match self {
            Self::Ssd(ssd) => ssd.purge(),
            Self::AttributedSsd(ssd) => ssd.purge(),
            Self::Disk(disk) => disk.quiesce(),
        }
    }

    pub fn set_write_cache(&mut self, enabled: bool) {
        drive!(self, drive => drive.set_write_cache(enabled));
    }

    pub fn write_cache(&self) -> bool {
        drive!(self, drive => drive.write_cache())
    }

    pub fn now(&self) -> Nanos {
        drive!(self, drive => drive.now())
    }

    pub fn counters(&self) -> Counters {
        drive!(self, drive => DriveModel::counters(&**drive))
    }

    /// Checks all invariants of the drive's state; returns the first violation.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Ssd(ssd) => ssd.ftl().check_invariants(),
            Self::AttributedSsd(ssd) => ssd.ftl().check_invariants(),
            Self::Disk(disk) => disk.check_invariants(),
        }
    }

    /// Takes the state of `other`; see [`Ssd::copy_from`]. A disk takes that of the same device.
    /// After an error the drive is a new one.
    pub fn copy_from(&mut self, other: &Self) -> Result<(), RestoreError> {
        if let (Self::Ssd(ssd), Self::Ssd(other)) = (&mut *self, other) {
            let copied = ssd.copy_from(other);
            if copied.is_err()
                && let Ok(fresh) = Self::new(self.config(), false)
            {
                *self = fresh;
            }
            return copied;
        }
        self.restore(&*other.save(Vec::new())?)
    }

    pub fn save<W: Write>(&self, out: W) -> Result<W, CodecError> {
        drive!(self, drive => drive.save(out))
    }

    /// Restores a saved state. After an error the drive is a new one.
    pub fn restore<R: Read>(&mut self, input: R) -> Result<(), RestoreError> {
        let restored = drive!(self, drive => drive.restore(input));
        if restored.is_err()
            && let Ok(fresh) = Self::new(self.config(), matches!(self, Self::AttributedSsd(_)))
        {
            *self = fresh;
        }
        restored
    }
}
