//! A drive of any kind, and with what it records.

use std::io::{Read, Write};

use writecliff_base::codec::CodecError;
use writecliff_base::saved_state::RestoreError;
use writecliff_base::{Nanos, StreamId};
use writecliff_disk::Disk;
use writecliff_flash::geometry::SLOT_BYTES;
use writecliff_ftl::bad_blocks::BadBlocks;
use writecliff_host_interface::{Command, Status};
use writecliff_scm::Scm;
use writecliff_ssd::attribution::Recorder;
use writecliff_ssd::{Attribution, DeviceConfig, PowerCut, Ssd, Volatile};
use writecliff_workload::{SpecError, WorkloadSpec};

use crate::device::{AnyConfig, Counters, DriveModel};
use crate::outcome::{Observer, StepOutcome};
use crate::{drive, fast_forward};

/// What garbage collection and wear levelling have moved, by stream of the FTL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MovedByStream {
    /// By stream of the FTL; the rest is of units with relocated data of several streams.
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

    fn of<R: Recorder>(ssd: &Ssd<R>) -> Option<Self> {
        if ssd.config().ftl.reduction.is_some() {
            return None;
        }
        let to_bytes = |&slots: &u64| slots * u64::from(SLOT_BYTES);
        let (mixed, each) = ssd.ftl().moved_by_stream().split_last()?;
        Some(Self { bytes: each.iter().map(to_bytes).collect(), mixed_bytes: to_bytes(mixed) })
    }
}

/// A drive of any kind.
pub enum AnyDrive {
    Ssd(Box<Ssd>),
    /// Records what the time of its commands is spent on, or has a limit on active dies, or both:
    /// one more kind of drive for the limit alone would be compiled once more.
    AttributedSsd(Box<Ssd<Attribution>>),
    /// Records what a power cut undoes.
    VolatileSsd(Box<Ssd<Volatile>>),
    Disk(Box<Disk>),
    Scm(Box<Scm>),
}

/// The same for every variant of a drive.
macro_rules! drive {
    ($any:expr, $of:ident => $do:expr) => {
        match $any {
            Self::Ssd($of) => $do,
            Self::AttributedSsd($of) => $do,
            Self::VolatileSsd($of) => $do,
            Self::Disk($of) => $do,
            Self::Scm($of) => $do,
        }
    };
}

/// The same for an SSD, and other expressions for the rest.
macro_rules! ssd {
    ($any:expr, $of:ident => $do:expr, $($other:pat => $otherwise:expr),+) => {
        match $any {
            Self::Ssd($of) => $do,
            Self::AttributedSsd($of) => $do,
            Self::VolatileSsd($of) => $do,
            $($other => $otherwise,)+
        }
    };
}

impl AnyDrive {
    /// Creates a drive; `Err` explains why that is impossible. With `attribute_latency` it records
    /// what the time of its commands is spent on, if it has flash.
    pub fn new(config: AnyConfig, attribute_latency: bool) -> Result<Self, String> {
        match config {
            AnyConfig::Ssd(config) if attribute_latency || config.max_active_dies().is_some() => {
                let mut ssd = Ssd::recording(*config).map_err(|e| e.to_string())?;
                ssd.reports_causes = attribute_latency;
                Ok(Self::AttributedSsd(Box::new(ssd)))
            }
            AnyConfig::Ssd(config) => {
                Ssd::new(*config).map(|ssd| Self::Ssd(Box::new(ssd))).map_err(|e| e.to_string())
            }
            AnyConfig::Disk(config) => {
                Disk::new(*config).map(|disk| Self::Disk(Box::new(disk))).map_err(|e| e.to_string())
            }
            AnyConfig::Scm(config) => Ok(Self::Scm(Box::new(Scm::new(*config)))),
        }
    }

    /// A drive whose power may be cut: one that can lose data, and of which that is modelled,
    /// records what it would lose.
    pub fn losing_power(config: AnyConfig) -> Result<Self, String> {
        let loses = |ssd: &DeviceConfig| {
            !ssd.controller.power_loss_protection && ssd.refuses_power_cut().is_none()
        };
        match config {
            AnyConfig::Ssd(config) if loses(&config) => Ssd::recording(*config)
                .map(|ssd| Self::VolatileSsd(Box::new(ssd)))
                .map_err(|e| e.to_string()),
            other => Self::new(other, false),
        }
    }

    /// A new drive of the same kind.
    fn fresh(&self) -> Result<Self, String> {
        match self {
            Self::VolatileSsd(_) => Self::losing_power(self.config()),
            Self::AttributedSsd(ssd) => Self::new(self.config(), ssd.reports_causes),
            _ => Self::new(self.config(), false),
        }
    }

    pub fn config(&self) -> AnyConfig {
        ssd!(self, ssd => AnyConfig::Ssd(Box::new(ssd.config().clone())),
            Self::Disk(disk) => AnyConfig::Disk(Box::new(disk.config().clone())),
            Self::Scm(scm) => AnyConfig::Scm(Box::new(scm.config().clone())))
    }

    /// The SSD that records what a power cut undoes, if this is one.
    pub fn volatile(&mut self) -> Option<&mut Ssd<Volatile>> {
        match self {
            Self::VolatileSsd(ssd) => Some(ssd),
            _ => None,
        }
    }

    /// The drive without its kind, for callers to whom a dispatch per command is nothing.
    pub fn model(&mut self) -> &mut dyn DriveModel {
        drive!(self, drive => &mut **drive)
    }

    /// Whether data of a completed write may be lost with the power until the drive is flushed.
    pub fn is_volatile(&self) -> bool {
        let protected = ssd!(self, ssd => ssd.config().controller.power_loss_protection,
            Self::Disk(_) | Self::Scm(_) => false);
        self.write_cache() && !protected
    }

    /// Whether no spare space is left, so that the drive refuses writes.
    pub fn is_read_only(&self) -> bool {
        ssd!(self, ssd => ssd.ftl().is_read_only(), Self::Disk(_) | Self::Scm(_) => false)
    }

    /// Writes that it has refused for that.
    pub fn refused_writes(&self) -> u64 {
        ssd!(self, ssd => ssd.ftl().bad_blocks().map_or(0, BadBlocks::refused_writes),
            Self::Disk(_) | Self::Scm(_) => 0)
    }

    /// A die does not answer from now on; see [`Ssd::lose_die`].
    pub fn lose_die(&mut self, die: u32) -> Result<(), String> {
        ssd!(self, ssd => ssd.lose_die(die),
            Self::Disk(_) => Err("a hard disk has no dies".to_owned()),
            Self::Scm(_) => Err("a drive of storage-class memory loses no die".to_owned()))
    }

    /// Cuts the power and gives it back: commands that are outstanding do not complete, and the
    /// drive is busy until its mapping is found again. `None` if cuts of this drive are not
    /// modelled; then nothing has happened.
    pub fn cut_power(&mut self) -> Option<PowerCut> {
        ssd!(self, ssd => ssd.refuses_power_cut().is_none().then(|| ssd.cut_power()),
            Self::Disk(_) | Self::Scm(_) => None)
    }

    /// Reclaim units that hold nothing; `None` without flash.
    pub fn free_units(&self) -> Option<u32> {
        ssd!(self, ssd => Some(ssd.ftl().free_units()), Self::Disk(_) | Self::Scm(_) => None)
    }

    /// What garbage collection and wear levelling have moved of each stream of the FTL since the
    /// drive was made or restored. `None` without flash and for drives that compress.
    pub fn moved_by_stream(&self) -> Option<MovedByStream> {
        ssd!(self, ssd => MovedByStream::of(ssd), Self::Disk(_) | Self::Scm(_) => None)
    }

    /// The stream of the FTL to which a write with stream number `number` would go now; `None`
    /// without flash.
    pub fn routed(&self, number: StreamId) -> Option<StreamId> {
        ssd!(self, ssd => Some(ssd.routed(number.0).unwrap_or_default()),
            Self::Disk(_) | Self::Scm(_) => None)
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

    /// Returns the outcome of a read on the fast-forward clock; see [`Ssd::fast_forward_read`].
    pub fn fast_forward_read(&mut self, command: &Command) -> Status {
        ssd!(self, ssd => ssd.fast_forward_read(command),
            Self::Disk(_) | Self::Scm(_) => Status::Success)
    }

    /// Returns flash to the state of "no writes". Others have no such state; a disk writes back its
    /// cache.
    pub fn purge(&mut self) {
        ssd!(self, ssd => ssd.purge(), Self::Disk(disk) => disk.quiesce(),
            Self::Scm(scm) => scm.quiesce());
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
        ssd!(self, ssd => ssd.check_invariants(),
            Self::Disk(disk) => disk.check_invariants(),
            Self::Scm(scm) => scm.check_invariants())
    }

    /// Takes the state of `other`; see [`Ssd::copy_from`]. Others take that of the same device.
    /// After an error the drive is a new one.
    pub fn copy_from(&mut self, other: &Self) -> Result<(), RestoreError> {
        let copied = match (&mut *self, other) {
            (Self::Ssd(ssd), Self::Ssd(other)) => ssd.copy_from(other),
            (Self::VolatileSsd(ssd), Self::Ssd(other)) => ssd.copy_from(other),
            _ => return self.restore(&*other.save(Vec::new())?),
        };
        self.or_fresh(copied)
    }

    pub fn save<W: Write>(&self, out: W) -> Result<W, CodecError> {
        drive!(self, drive => drive.save(out))
    }

    /// Restores a saved state. After an error the drive is a new one.
    pub fn restore<R: Read>(&mut self, input: R) -> Result<(), RestoreError> {
        let restored = drive!(self, drive => drive.restore(input));
        self.or_fresh(restored)
    }

    fn or_fresh<E>(&mut self, outcome: Result<(), E>) -> Result<(), E> {
        if outcome.is_err()
            && let Ok(fresh) = self.fresh()
        {
            *self = fresh;
        }
        outcome
    }
}
