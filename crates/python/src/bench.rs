//! Speed benchmarks of the simulator itself.

use pyo3::prelude::*;
use pyo3::types::IntoPyDict;
use writecliff_runner::bench::{Bench, CASES};

use crate::device::PyDevice;
use crate::dict::{Dict, dict};
use crate::errors;
use crate::panics::locked;

#[pyfunction]
pub(crate) fn bench_cases() -> Vec<&'static str> {
    CASES.to_vec()
}

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

    fn run<'py>(&self, py: Python<'py>, case: &str) -> Dict<'py> {
        let row = py.detach(|| locked(&self.inner).run(case));
        let row = row.map_err(|e| errors::config(&e.to_string(), None))?;
        Ok(dict! { py, row.{case}, ..row.fields().into_py_dict(py)? })
    }

    fn __repr__(&self) -> &'static str {
        "SimBench()"
    }
}
