//! `Drive`: a simulated drive of any type.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, TryLockError};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use writecliff_runner::{AnyConfig, AnyDrive, StepOutcome};
use writecliff_workload::{SpecError, WorkloadSpec};

use crate::data_placement::DataPlacementCommands;
use crate::device::PyDevice;
use crate::dict::Dict;
use crate::errors;
use crate::step::{Hook, counters_to_dict, outcome_to_dict};

#[pyclass(module = "writecliff._native", frozen)]
pub(crate) struct Drive {
    inner: Mutex<AnyDrive>,
    name: String,
}

type Clock = fn(
    &mut AnyDrive,
    &WorkloadSpec,
    &mut dyn writecliff_runner::outcome::Observer,
) -> Result<StepOutcome, SpecError>;

impl Drive {
    /// Returns a reference to the drive. Returns an error while the drive is running because a hook
    /// that requested the drive would deadlock.
    pub(crate) fn get(&self) -> PyResult<MutexGuard<'_, AnyDrive>> {
        match self.inner.try_lock() {
            Ok(guard) => Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(PyRuntimeError::new_err(
                "the drive is running; use the counters in the progress report",
            )),
        }
    }

    fn on_clock<'py>(
        &self,
        py: Python<'py>,
        clock: Clock,
        workload: &str,
        hook: Option<Py<PyAny>>,
    ) -> Dict<'py> {
        let spec = WorkloadSpec::from_json(workload).map_err(|e| errors::spec(&e))?;
        let mut hook = Hook { callback: hook, raised: None };
        let mut drive = self.get()?;
        let drive = &mut *drive;
        let outcome = py.detach(|| clock(drive, &spec, &mut hook));
        if let Some(raised) = hook.raised {
            return Err(raised);
        }
        outcome_to_dict(py, outcome.map_err(|e| errors::spec(&e))?)
    }
}

#[pymethods]
impl Drive {
    #[new]
    #[pyo3(signature = (device, seed, *, attribute_latency = false, power_state = 0))]
    fn new(
        device: &PyDevice,
        seed: u64,
        attribute_latency: bool,
        power_state: usize,
    ) -> PyResult<Self> {
        let mut config = device.inner.with_seed(seed);
        if let AnyConfig::Ssd(ssd) = &mut config {
            ssd.power_state = power_state;
        }
        let name = config.identity().name.clone();
        let drive = AnyDrive::new(config, attribute_latency);
        let drive = drive.map_err(|e| device.not_made(&e))?;
        Ok(Self { inner: Mutex::new(drive), name })
    }

    #[pyo3(signature = (workload, hook = None))]
    fn run<'py>(&self, py: Python<'py>, workload: &str, hook: Option<Py<PyAny>>) -> Dict<'py> {
        self.on_clock(py, |drive, spec, observer| drive.run(spec, observer), workload, hook)
    }

    #[pyo3(signature = (workload, hook = None))]
    fn fast_forward<'py>(
        &self,
        py: Python<'py>,
        workload: &str,
        hook: Option<Py<PyAny>>,
    ) -> Dict<'py> {
        self.on_clock(py, |drive, spec, observer| drive.run_untimed(spec, observer), workload, hook)
    }

    fn purge(&self, py: Python<'_>) -> PyResult<()> {
        let mut drive = self.get()?;
        let drive = &mut *drive;
        py.detach(|| drive.purge());
        Ok(())
    }

    fn set_write_cache(&self, enabled: bool) -> PyResult<()> {
        self.get()?.set_write_cache(enabled);
        Ok(())
    }

    fn lose_die(&self, die: u32) -> PyResult<()> {
        self.get()?.lose_die(die).map_err(|reason| errors::config(&reason, None))
    }

    #[getter]
    fn write_cache(&self) -> PyResult<bool> {
        Ok(self.get()?.write_cache())
    }

    #[getter]
    fn now_ns(&self) -> PyResult<u64> {
        Ok(self.get()?.now().0)
    }

    /// Returns the commands of the drive's data placement interface.
    #[getter]
    fn data_placement(slf: Py<Self>) -> DataPlacementCommands {
        DataPlacementCommands { drive: slf }
    }

    fn counters<'py>(&self, py: Python<'py>) -> Dict<'py> {
        counters_to_dict(py, &self.get()?.counters())
    }

    fn check(&self, py: Python<'_>) -> PyResult<()> {
        let drive = self.get()?;
        let drive = &*drive;
        let outcome = py.detach(|| drive.check_invariants());
        outcome.map_err(PyValueError::new_err)
    }

    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let drive = self.get()?;
        let drive = &*drive;
        py.detach(|| {
            let file = File::create(&path).map_err(|e| errors::state(&path, &e))?;
            let out = drive.save(BufWriter::with_capacity(1 << 20, file));
            let out = out.map_err(|e| errors::state(&path, &e))?;
            let file = out.into_inner().map_err(|e| errors::state(&path, &e))?;
            file.sync_all().map_err(|e| errors::state(&path, &e))
        })
    }

    fn restore(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let mut drive = self.get()?;
        let drive = &mut *drive;
        py.detach(|| {
            let file = File::open(&path).map_err(|e| errors::state(&path, &e))?;
            let restored = drive.restore(&mut BufReader::with_capacity(1 << 20, file));
            restored.map_err(|e| errors::config(&format!("{}: {e}", path.display()), None))
        })
    }

    fn copy_from(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
        let (mut drive, other) = (self.get()?, other.get()?);
        let (drive, other) = (&mut *drive, &*other);
        let copied = py.detach(|| drive.copy_from(&**other));
        copied.map_err(|e| errors::config(&e.to_string(), None))
    }

    fn __repr__(&self) -> String {
        format!("Drive({})", self.name)
    }
}
