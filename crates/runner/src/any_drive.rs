//! A drive of any type, and its recorder.

use std::any::Any;
use std::io::{Read, Write};
use std::ops::{Deref, DerefMut};

use writecliff_base::codec::CodecError;
use writecliff_base::saved_state::RestoreError;
use writecliff_disk::Disk;
use writecliff_scm::Scm;
use writecliff_ssd::attribution::Recorder;
use writecliff_ssd::{Attribution, DeviceConfig, Ssd, Volatile};
use writecliff_workload::{SpecError, WorkloadSpec};

use crate::device::{AnyConfig, DriveModel};
use crate::outcome::{Observer, StepOutcome};
use crate::{drive, fast_forward};

/// Bytes moved by garbage collection and wear levelling, by FTL stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MovedByStream {
    /// Bytes moved, by FTL stream; `mixed_bytes` counts units with relocated data from several
    /// streams.
    pub bytes: Vec<u64>,
    /// Bytes moved from units that held data from several streams.
    pub mixed_bytes: u64,
}

impl MovedByStream {
    /// Subtracts `earlier`, an earlier result of the same drive.
    #[must_use]
    pub fn since(mut self, earlier: &Self) -> Self {
        assert_eq!(self.bytes.len(), earlier.bytes.len(), "streams of two drives");
        for (now, before) in self.bytes.iter_mut().zip(&earlier.bytes) {
            *now -= before;
        }
        self.mixed_bytes -= earlier.mixed_bytes;
        self
    }
}

type Outcome = Result<StepOutcome, SpecError>;

/// A drive of any type, for callers that run a whole workload in one call.
pub trait Runnable: DriveModel {
    /// Runs `spec` with timing; see [`drive::run`].
    fn run(&mut self, spec: &WorkloadSpec, observer: &mut dyn Observer) -> Outcome;

    /// Fast-forwards the drive through `spec`; see [`fast_forward::run`].
    fn run_untimed(&mut self, spec: &WorkloadSpec, observer: &mut dyn Observer) -> Outcome;

    /// Copies the state of `other`; see [`Ssd::copy_from`]. Drives of other types can be copied
    /// only from the same device. After an error, the drive is in the state of a new drive.
    fn copy_from(&mut self, other: &dyn Runnable) -> Result<(), RestoreError>;

    /// Restores a saved state. After an error, the drive is in the state of a new drive.
    fn restore(&mut self, input: &mut dyn Read) -> Result<(), RestoreError>;
}

impl<D: DriveModel> Runnable for D {
    fn run(&mut self, spec: &WorkloadSpec, observer: &mut dyn Observer) -> Outcome {
        drive::run(self, spec, observer)
    }

    fn run_untimed(&mut self, spec: &WorkloadSpec, observer: &mut dyn Observer) -> Outcome {
        fast_forward::run(self, spec, observer)
    }

    fn copy_from(&mut self, other: &dyn Runnable) -> Result<(), RestoreError> {
        let Some(copied) = self.copy_of(other) else {
            let mut saved = Vec::new();
            other.save_to(&mut saved)?;
            return self.restore(&mut &*saved);
        };
        or_fresh(self, copied)
    }

    fn restore(&mut self, input: &mut dyn Read) -> Result<(), RestoreError> {
        let restored = self.restore_from(input);
        or_fresh(self, restored)
    }
}

/// Replaces a drive with a new drive if changing its state failed.
fn or_fresh<D: DriveModel, E>(drive: &mut D, outcome: Result<(), E>) -> Result<(), E> {
    if outcome.is_err()
        && let Ok(fresh) = drive.fresh()
    {
        *drive = fresh;
    }
    outcome
}

/// A drive of any type.
pub struct AnyDrive(Box<dyn Runnable>);

impl Deref for AnyDrive {
    type Target = dyn Runnable;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl DerefMut for AnyDrive {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.0
    }
}

fn recording<R: Recorder + Send + Sync + 'static>(
    config: DeviceConfig,
) -> Result<Box<Ssd<R>>, String> {
    Ssd::recording(config).map(Box::new).map_err(|e| e.to_string())
}

impl AnyDrive {
    /// Creates a drive. If `attribute_latency`, a drive with flash records the causes of its
    /// command latencies.
    ///
    /// # Errors
    /// Returns the reason why the drive cannot be created.
    pub fn new(config: AnyConfig, attribute_latency: bool) -> Result<Self, String> {
        Ok(Self(match config {
            // The recorder of latency causes also enforces a limit on active dies. A separate type
            // for the limit would make the compiler generate another copy of the drive.
            AnyConfig::Ssd(config) if attribute_latency || config.max_active_dies().is_some() => {
                let mut ssd = recording::<Attribution>(*config)?;
                ssd.reports_causes = attribute_latency;
                ssd
            }
            AnyConfig::Ssd(config) => Box::new(Ssd::new(*config).map_err(|e| e.to_string())?),
            AnyConfig::Disk(config) => Box::new(Disk::new(*config).map_err(|e| e.to_string())?),
            AnyConfig::Scm(config) => Box::new(Scm::new(*config)),
        }))
    }

    /// Creates a drive whose power can be cut. The drive records the data that a power cut would
    /// lose, if it can lose data and if power cuts of the drive are modelled.
    pub fn losing_power(config: AnyConfig) -> Result<Self, String> {
        let loses = |ssd: &DeviceConfig| {
            !ssd.controller.power_loss_protection && ssd.refuses_power_cut().is_none()
        };
        match config {
            AnyConfig::Ssd(config) if loses(&config) => Ok(Self(recording::<Volatile>(*config)?)),
            other => Self::new(other, false),
        }
    }

    /// Returns the SSD that records the effects of a power cut; `None` for any other drive.
    pub fn volatile(&mut self) -> Option<&mut Ssd<Volatile>> {
        (&mut *self.0 as &mut dyn Any).downcast_mut()
    }

    /// Writes the drive state. The host must have no outstanding commands.
    pub fn save<W: Write>(&self, mut out: W) -> Result<W, CodecError> {
        self.save_to(&mut out)?;
        Ok(out)
    }
}
