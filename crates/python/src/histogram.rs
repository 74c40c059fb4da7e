//! `Histogram` and `Quantile`.

use std::sync::{Mutex, MutexGuard};

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use writecliff_measure::{Histogram, Quantile};

use crate::dict::column;
use crate::panics::locked;

type Buckets<'py> =
    (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u64>>);

#[pyclass(name = "Histogram", module = "writecliff._native", frozen)]
pub(crate) struct PyHistogram {
    inner: Mutex<Histogram>,
}

impl PyHistogram {
    pub(crate) fn of(histogram: Histogram) -> Self {
        Self { inner: Mutex::new(histogram) }
    }

    fn get(&self) -> MutexGuard<'_, Histogram> {
        locked(&self.inner)
    }
}

#[pymethods]
impl PyHistogram {
    #[new]
    fn new() -> Self {
        Self::of(Histogram::new())
    }

    #[pyo3(signature = (value_ns, count = 1))]
    fn record(&self, value_ns: u64, count: u64) {
        self.get().record_many(value_ns, count);
    }

    fn merge(&self, other: &Self) {
        // `other` is copied because it may be this histogram.
        let other = other.get().clone();
        self.get().merge(&other);
    }

    #[getter]
    fn count(&self) -> u64 {
        self.get().count()
    }

    #[getter]
    fn min_ns(&self) -> Option<u64> {
        self.get().moments().min()
    }

    #[getter]
    fn max_ns(&self) -> Option<u64> {
        self.get().moments().max()
    }

    #[getter]
    fn mean_ns(&self) -> Option<f64> {
        self.get().moments().mean()
    }

    #[getter]
    fn sd_ns(&self) -> Option<f64> {
        self.get().moments().sd()
    }

    fn quantile(&self, q: f64) -> PyResult<PyQuantile> {
        let Quantile { q, count, value_ns, low_ns, high_ns } =
            self.get().quantile(q).map_err(value_error)?;
        Ok(PyQuantile { q, value_ns, count, low_ns, high_ns })
    }

    fn buckets<'py>(&self, py: Python<'py>) -> Buckets<'py> {
        let rows: Vec<(u64, u64, u64)> = self.get().buckets().collect();
        (column(py, &rows, |r| r.0), column(py, &rows, |r| r.1), column(py, &rows, |r| r.2))
    }

    #[staticmethod]
    fn from_buckets(
        midpoints_ns: PyReadonlyArray1<'_, u64>,
        counts: PyReadonlyArray1<'_, u64>,
        min_ns: u64,
        max_ns: u64,
        mean_ns: f64,
        sd_ns: f64,
    ) -> PyResult<Self> {
        let (values, counts) = (midpoints_ns.as_slice()?, counts.as_slice()?);
        let histogram = Histogram::from_buckets(values, counts, (min_ns, max_ns), (mean_ns, sd_ns));
        histogram.map(Self::of).map_err(value_error)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.get().to_bytes())
    }

    #[staticmethod]
    fn from_bytes(data: &[u8]) -> PyResult<Self> {
        Histogram::from_bytes(data).map(Self::of).map_err(value_error)
    }

    // These methods support pickle and copy, which transfer results between processes and machines.
    fn __getstate__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        self.to_bytes(py)
    }

    fn __setstate__(&self, state: &[u8]) -> PyResult<()> {
        *self.get() = Histogram::from_bytes(state).map_err(value_error)?;
        Ok(())
    }

    fn __eq__(&self, other: &Self) -> bool {
        let other = other.get().clone();
        *self.get() == other
    }

    fn __repr__(&self) -> String {
        let h = self.get();
        match (h.moments().min(), h.moments().max()) {
            (Some(min), Some(max)) => {
                format!("Histogram(count={}, min_ns={min}, max_ns={max})", h.count())
            }
            _ => "Histogram(count=0)".to_owned(),
        }
    }
}

fn value_error(error: writecliff_measure::HistogramError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pyclass(name = "Quantile", module = "writecliff._native", frozen, get_all)]
pub(crate) struct PyQuantile {
    q: f64,
    value_ns: Option<u64>,
    count: u64,
    low_ns: Option<u64>,
    high_ns: Option<u64>,
}

#[pymethods]
impl PyQuantile {
    fn __repr__(&self) -> String {
        let value = self.value_ns.map_or("not enough samples".to_owned(), |v| v.to_string());
        format!("Quantile(q={}, value_ns={value}, count={})", self.q, self.count)
    }
}
