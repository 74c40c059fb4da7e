//! The speed of the simulator itself.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use writecliff_runner::bench::{Bench, CASES};

use crate::device::PyDevice;
use crate::errors;

/// The benchmark's cases, in the order in which they are best run on one device.
#[pyfunction]
pub(crate) fn bench_cases() -> Vec<&'static str> {
    CASES.to_vec()
}

/// Runs cases on a device; `scale` changes the length of the measured part. A case prepares its own
/// preconditions.
#[pyclass(module = "writecliff._native", frozen)]
pub(crate) struct SimBench {
    inner: std::sync::Mutex<Bench>,
}

#[pymethods]
impl SimBench {
    #[new]
    fn new(device: &PyDevice, scale: f64) -> PyResult<Self> {
        let config = device.ssd(1)?;
        Ok(Self { inner: std::sync::Mutex::new(Bench::new(config, scale)) })
    }

    /// Run one case; returns its figures by name.
    fn run<'py>(&self, py: Python<'py>, case: &str) -> PyResult<Bound<'py, PyDict>> {
        let row = py.detach(|| {
            let mut bench = self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            bench.run(case)
        });
        let row = row.map_err(|e| errors::config(&e.to_string(), None))?;
        let result = PyDict::new(py);
        result.set_item("case", &row.case)?;
        for (name, value) in row.fields() {
            result.set_item(name, value)?;
        }
        Ok(result)
    }

    fn __repr__(&self) -> &'static str {
        "SimBench()"
    }
}
