//! A step's outcome as plain Python values, and the hook that watches it.

use std::ops::ControlFlow;

use numpy::PyArray1;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use writecliff_base::counters::Value;
use writecliff_host_interface::Cause;
use writecliff_host_interface::placement::DataPlacementStatus;
use writecliff_runner::batches::SHARES;
use writecliff_runner::device::counter_readings;
use writecliff_runner::outcome::{JobOutcome, Observer, OperationOutcome};
use writecliff_runner::series::Columns;
use writecliff_runner::{
    Adherence, BatchColumns, BucketCauses, Counters, EndedBy, LatencyCauses, Live, StepOutcome,
};

use crate::data_placement;
use crate::histogram::PyHistogram;

const OPERATION_NAMES: [&str; 3] = ["read", "write", "trim"];

/// What is called now and then, and what Python raised.
pub(crate) struct Hook {
    pub(crate) callback: Option<Py<PyAny>>,
    pub(crate) raised: Option<PyErr>,
}

impl Hook {
    /// Calls the hook with what `look` gives it; stops when Python raises, in the hook or by a
    /// signal.
    fn call(
        &mut self,
        look: impl FnOnce(Python<'_>, &Py<PyAny>) -> PyResult<()>,
    ) -> ControlFlow<()> {
        let outcome = Python::attach(|py| {
            py.check_signals()?;
            self.callback.as_ref().map_or(Ok(()), |callback| look(py, callback))
        });
        match outcome {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.raised = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// Calls the hook with a share that is done, alone.
    pub(crate) fn share(&mut self, share: f64) -> ControlFlow<()> {
        self.call(|py, callback| callback.call1(py, (share,)).map(drop))
    }

    /// What stopped the work.
    pub(crate) fn stopped(&mut self) -> PyErr {
        self.raised.take().unwrap_or_else(|| PyRuntimeError::new_err("stopped by nothing"))
    }
}

impl Observer for Hook {
    fn look(&mut self, live: &Live) -> ControlFlow<()> {
        self.call(|py, callback| {
            let counters = counters_to_dict(py, &live.counters)?;
            let look = (live.fraction, live.elapsed_ns, live.ios, live.iops, live.waf, counters);
            callback.call1(py, look).map(drop)
        })
    }
}

pub(crate) fn outcome_to_dict(py: Python<'_>, outcome: StepOutcome) -> PyResult<Bound<'_, PyDict>> {
    let result = PyDict::new(py);
    result.set_item("started_ns", outcome.started_ns)?;
    result.set_item("elapsed_ns", outcome.elapsed_ns)?;
    let jobs = PyList::empty(py);
    for job in outcome.jobs {
        jobs.append(job_to_dict(py, job)?)?;
    }
    result.set_item("jobs", jobs)?;
    result.set_item("intervals", columns_to_dict(py, outcome.intervals)?)?;
    result.set_item("batches", batches_to_dict(py, outcome.batches)?)?;
    result.set_item("before", counters_to_dict(py, &outcome.before)?)?;
    result.set_item("after", counters_to_dict(py, &outcome.after)?)?;
    let look = |seen: &DataPlacementStatus| data_placement::status(py, seen);
    let seen = match &outcome.data_placement {
        Some((before, after)) => Some((look(before)?, look(after)?)),
        None => None,
    };
    result.set_item("data_placement", seen)?;
    result.set_item("warnings", outcome.warnings)?;
    Ok(result)
}

pub(crate) fn job_to_dict(py: Python<'_>, job: JobOutcome) -> PyResult<Bound<'_, PyDict>> {
    let result = PyDict::new(py);
    result.set_item("name", job.name)?;
    result.set_item("began_ns", job.began_ns)?;
    result.set_item("elapsed_ns", job.elapsed_ns)?;
    result.set_item("thread_ios", job.thread_ios)?;
    result.set_item("ended_by", job.ended_by.map(EndedBy::name))?;
    result.set_item("queue_depth", job.queue_depth)?;
    result.set_item(
        "adherence",
        job.adherence.map(|kept| adherence_to_dict(py, kept)).transpose()?,
    )?;
    let operations = PyDict::new(py);
    for (name, operation) in OPERATION_NAMES.into_iter().zip(job.operations) {
        let Some(operation) = operation else { continue };
        operations.set_item(name, operation_to_dict(py, operation)?)?;
    }
    result.set_item("operations", operations)?;
    let flush = job.flush.map(|flush| operation_to_dict(py, flush)).transpose()?;
    result.set_item("flush", flush)?;
    Ok(result)
}

fn adherence_to_dict(py: Python<'_>, kept: Adherence) -> PyResult<Bound<'_, PyDict>> {
    let result = PyDict::new(py);
    result.set_item("ios", kept.ios)?;
    result.set_item("span_ns", kept.span_ns)?;
    result.set_item("slope", kept.slope)?;
    result.set_item("slope_error", kept.slope_error)?;
    result.set_item("last_age_ns", kept.last_age_ns)?;
    Ok(result)
}

fn operation_to_dict(py: Python<'_>, operation: OperationOutcome) -> PyResult<Bound<'_, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("ios", operation.ios)?;
    row.set_item("bytes", operation.bytes)?;
    row.set_item("service", Py::new(py, PyHistogram::of(operation.service))?)?;
    let response = operation.response.map(|h| Py::new(py, PyHistogram::of(h))).transpose()?;
    row.set_item("response", response)?;
    let causes = operation.causes.map(|causes| causes_to_dict(py, &causes)).transpose()?;
    row.set_item("causes", causes)?;
    Ok(row)
}

/// A row for each non-empty latency bucket.
fn causes_to_dict<'py>(py: Python<'py>, causes: &LatencyCauses) -> PyResult<Bound<'py, PyDict>> {
    let rows = causes.buckets();
    let column = |pick: &dyn Fn(&BucketCauses) -> u64| {
        PyArray1::from_vec(py, rows.iter().map(pick).collect::<Vec<u64>>())
    };
    let result = PyDict::new(py);
    result.set_item("lower_ns", column(&|row| row.lower_ns))?;
    result.set_item("upper_ns", column(&|row| row.upper_ns))?;
    result.set_item("ios", column(&|row| row.ios))?;
    for cause in Cause::ALL {
        result.set_item(cause.name(), column(&|row| row.spent_ns[cause as usize]))?;
    }
    Ok(result)
}

/// All causes of latency: name and meaning.
#[pyfunction]
pub(crate) fn latency_causes() -> Vec<(&'static str, &'static str)> {
    Cause::ALL.map(|cause| (cause.name(), cause.meaning())).to_vec()
}

pub(crate) fn columns_to_dict(py: Python<'_>, columns: Columns) -> PyResult<Bound<'_, PyDict>> {
    let result = PyDict::new(py);
    result.set_item("end_ns", PyArray1::from_vec(py, columns.end_ns))?;
    result.set_item("job", PyArray1::from_vec(py, columns.job))?;
    result.set_item("operation", PyArray1::from_vec(py, columns.operation))?;
    result.set_item("ios", PyArray1::from_vec(py, columns.ios))?;
    result.set_item("bytes", PyArray1::from_vec(py, columns.bytes))?;
    result.set_item("latency_mean_ns", PyArray1::from_vec(py, columns.latency_mean_ns))?;
    result.set_item("latency_max_ns", PyArray1::from_vec(py, columns.latency_max_ns))?;
    result.set_item("latency_sd_ns", PyArray1::from_vec(py, columns.latency_sd_ns))?;
    if columns.response_mean_ns.iter().any(|mean| !mean.is_nan()) {
        result.set_item("response_mean_ns", PyArray1::from_vec(py, columns.response_mean_ns))?;
        result.set_item("response_max_ns", PyArray1::from_vec(py, columns.response_max_ns))?;
        result.set_item("response_sd_ns", PyArray1::from_vec(py, columns.response_sd_ns))?;
    }
    result.set_item("waf", PyArray1::from_vec(py, columns.waf))?;
    result.set_item("watts", PyArray1::from_vec(py, columns.watts))?;
    result.set_item("temperature_c", PyArray1::from_vec(py, columns.celsius))?;
    Ok(result)
}

pub(crate) fn batches_to_dict(
    py: Python<'_>,
    columns: BatchColumns,
) -> PyResult<Bound<'_, PyDict>> {
    let result = PyDict::new(py);
    result.set_item("end_ns", PyArray1::from_vec(py, columns.end_ns))?;
    result.set_item("width_ns", PyArray1::from_vec(py, columns.width_ns))?;
    result.set_item("job", PyArray1::from_vec(py, columns.job))?;
    result.set_item("operation", PyArray1::from_vec(py, columns.operation))?;
    result.set_item("is_response", PyArray1::from_vec(py, columns.is_response))?;
    result.set_item("ios", PyArray1::from_vec(py, columns.ios))?;
    result.set_item("bytes", PyArray1::from_vec(py, columns.bytes))?;
    result.set_item("latency_sum_ns", PyArray1::from_vec(py, columns.latency_sum_ns))?;
    for (share, slower) in SHARES.into_iter().zip(columns.slower) {
        result.set_item(slower_column(share), PyArray1::from_vec(py, slower))?;
    }
    result.set_item("host_write_bytes", PyArray1::from_vec(py, columns.host_write_bytes))?;
    result.set_item("nand_write_bytes", PyArray1::from_vec(py, columns.nand_write_bytes))?;
    Ok(result)
}

/// Column with the I/Os slower than a quantile of the step: `slower_p999` for 0.999.
fn slower_column(share: f64) -> String {
    let digits: String = format!("{share}").chars().skip(2).collect();
    format!("slower_p{digits:0<2}")
}

/// All declared counters, `None` for those that the drive does not have.
pub(crate) fn counters_to_dict<'py>(
    py: Python<'py>,
    counters: &Counters,
) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    for reading in counter_readings(Some(counters)) {
        match reading.value {
            Some(Value::Integer(value)) => result.set_item(reading.name, value)?,
            Some(Value::Real(value)) => result.set_item(reading.name, value)?,
            None => result.set_item(reading.name, py.None())?,
        }
    }
    Ok(result)
}

/// All counters that a drive may have: name, unit, description, whether it is a level, whether it
/// scales with the size of the drive, whether it is a real number.
#[pyfunction]
pub(crate) fn counter_declarations()
-> Vec<(&'static str, &'static str, &'static str, bool, bool, bool)> {
    let declared = counter_readings(None).into_iter();
    declared.map(|c| (c.name, c.unit.name(), c.meaning, c.is_level, c.scales, c.is_real)).collect()
}
