//! Results of a step as plain Python values, and the hook that observes the step.

use std::ops::ControlFlow;

use numpy::PyArray1;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use writecliff_base::counters::Value;
use writecliff_host_interface::Cause;
use writecliff_measure::batches::SHARES;
use writecliff_measure::series::Columns;
use writecliff_measure::{Adherence, BatchColumns, LatencyCauses, OperationOutcome};
use writecliff_runner::device::counter_readings;
use writecliff_runner::outcome::{JobOutcome, Observer};
use writecliff_runner::{Counters, EndedBy, StepOutcome, StepProgress};

use crate::data_placement;
use crate::dict::{Dict, column, dict};
use crate::histogram::PyHistogram;

const OPERATION_NAMES: [&str; 3] = ["read", "write", "trim"];

/// A Python function that is called periodically, and the exception that it raised.
pub(crate) struct Hook {
    pub(crate) callback: Option<Py<PyAny>>,
    pub(crate) raised: Option<PyErr>,
}

impl Hook {
    /// Calls the hook with the value that `look` returns; stops when Python raises an exception,
    /// either in the hook or because of a signal.
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

    /// Calls the hook with the completed fraction only.
    pub(crate) fn share(&mut self, share: f64) -> ControlFlow<()> {
        self.call(|py, callback| callback.call1(py, (share,)).map(drop))
    }

    /// Returns the exception that stopped the work.
    pub(crate) fn stopped(&mut self) -> PyErr {
        self.raised.take().unwrap_or_else(|| PyRuntimeError::new_err("stopped without an error"))
    }
}

impl Observer for Hook {
    fn look(&mut self, live: &StepProgress) -> ControlFlow<()> {
        self.call(|py, callback| {
            let counters = counters_to_dict(py, &live.counters)?;
            let look = (live.fraction, live.elapsed_ns, live.ios, live.iops, live.waf, counters);
            callback.call1(py, look).map(drop)
        })
    }
}

pub(crate) fn outcome_to_dict(py: Python<'_>, outcome: StepOutcome) -> Dict<'_> {
    let jobs = outcome.jobs.into_iter().map(|job| job_to_dict(py, job));
    let status = |seen| data_placement::status(py, seen);
    let seen = outcome.data_placement.as_ref();
    let seen = seen.map(|(before, after)| PyResult::Ok((status(before)?, status(after)?)));
    Ok(dict! {
        py,
        outcome.{started_ns, elapsed_ns},
        "jobs" = jobs.collect::<PyResult<Vec<_>>>()?,
        "intervals" = columns_to_dict(py, outcome.intervals)?,
        "batches" = batches_to_dict(py, outcome.batches)?,
        "before" = counters_to_dict(py, &outcome.before)?,
        "after" = counters_to_dict(py, &outcome.after)?,
        "data_placement" = seen.transpose()?,
        outcome.{warnings}
    })
}

pub(crate) fn job_to_dict(py: Python<'_>, job: JobOutcome) -> Dict<'_> {
    let adherence = |fit: Adherence| -> Dict<'_> {
        Ok(dict! { py, fit.{ios, span_ns, slope, slope_error, last_age_ns} })
    };
    let operations = PyDict::new(py);
    for (name, operation) in OPERATION_NAMES.into_iter().zip(job.operations) {
        let Some(operation) = operation else { continue };
        operations.set_item(name, operation_to_dict(py, operation)?)?;
    }
    Ok(dict! {
        py,
        job.{name, began_ns, elapsed_ns, thread_ios},
        "ended_by" = job.ended_by.map(EndedBy::name),
        job.{queue_depth},
        "adherence" = job.adherence.map(adherence).transpose()?,
        "operations" = operations,
        "flush" = job.flush.map(|flush| operation_to_dict(py, flush)).transpose()?
    })
}

fn operation_to_dict(py: Python<'_>, operation: OperationOutcome) -> Dict<'_> {
    let causes = operation.causes.map(|causes| causes_to_dict(py, &causes));
    Ok(dict! {
        py,
        operation.{ios, bytes},
        "service" = PyHistogram::of(operation.service),
        "response" = operation.response.map(PyHistogram::of),
        "causes" = causes.transpose()?
    })
}

/// Returns one row per non-empty latency bucket.
fn causes_to_dict<'py>(py: Python<'py>, causes: &LatencyCauses) -> Dict<'py> {
    let rows = causes.buckets();
    let spent = Cause::ALL
        .map(|cause| (cause.name(), column(py, &rows, |row| row.spent_ns[cause as usize])));
    Ok(dict! {
        py,
        "lower_ns" = column(py, &rows, |row| row.lower_ns),
        "upper_ns" = column(py, &rows, |row| row.upper_ns),
        "ios" = column(py, &rows, |row| row.ios),
        ..spent.into_py_dict(py)?
    })
}

#[pyfunction]
pub(crate) fn latency_causes() -> Vec<(&'static str, &'static str)> {
    Cause::ALL.map(|cause| (cause.name(), cause.meaning())).to_vec()
}

pub(crate) fn columns_to_dict(py: Python<'_>, columns: Columns) -> Dict<'_> {
    let responses = if columns.response_mean_ns.iter().any(|mean| !mean.is_nan()) {
        dict! { py, columns.[response_mean_ns, response_max_ns, response_sd_ns] }
    } else {
        PyDict::new(py)
    };
    Ok(dict! {
        py,
        columns.[end_ns, job, operation, ios, bytes],
        columns.[latency_mean_ns, latency_max_ns, latency_sd_ns],
        ..responses,
        columns.[waf, watts],
        "temperature_c" = PyArray1::from_vec(py, columns.celsius)
    })
}

fn batches_to_dict(py: Python<'_>, columns: BatchColumns) -> Dict<'_> {
    let slower = SHARES.into_iter().map(slower_column).zip(columns.slower);
    let slower = slower.map(|(name, slower)| (name, PyArray1::from_vec(py, slower)));
    Ok(dict! {
        py,
        columns.[end_ns, width_ns, job, operation, is_response, ios, bytes, latency_sum_ns],
        ..slower.into_py_dict(py)?,
        columns.[host_write_bytes, nand_write_bytes]
    })
}

/// Returns the column that counts the I/Os slower than a quantile of the step: `slower_p999` for
/// 0.999.
fn slower_column(share: f64) -> String {
    let digits: String = format!("{share}").chars().skip(2).collect();
    format!("slower_p{digits:0<2}")
}

/// Returns all declared counters; `None` for counters that the drive does not have.
pub(crate) fn counters_to_dict<'py>(py: Python<'py>, counters: &Counters) -> Dict<'py> {
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

#[pyfunction]
pub(crate) fn counter_declarations()
-> Vec<(&'static str, &'static str, &'static str, bool, bool, bool)> {
    let declared = counter_readings(None).into_iter();
    declared.map(|c| (c.name, c.unit.name(), c.meaning, c.is_level, c.scales, c.is_real)).collect()
}
