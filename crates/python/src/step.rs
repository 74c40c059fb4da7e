//! A step's outcome as plain Python values, and the hook that watches it.

use std::ops::ControlFlow;

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use writecliff_flash::geometry::SLOT_BYTES;
use writecliff_runner::outcome::{JobOutcome, Observer};
use writecliff_runner::series::Columns;
use writecliff_runner::{Counters, Live, StepOutcome};
use writecliff_ssd::DriveCounters;
use writecliff_ssd::data_placement::status::DataPlacementStatus;

use crate::histogram::PyHistogram;
use crate::placement;

const OPERATION_NAMES: [&str; 3] = ["read", "write", "trim"];

/// Calls the hook with each look, and stops the step when Python raises: the hook itself, or a
/// signal.
pub(crate) struct Hook {
    pub(crate) callback: Option<Py<PyAny>>,
    pub(crate) raised: Option<PyErr>,
}

impl Observer for Hook {
    fn look(&mut self, live: &Live) -> ControlFlow<()> {
        let outcome = Python::attach(|py| {
            py.check_signals()?;
            if let Some(callback) = &self.callback {
                let counters = counters_to_dict(py, &live.counters)?;
                let look =
                    (live.fraction, live.elapsed_ns, live.ios, live.iops, live.waf, counters);
                callback.call1(py, look)?;
            }
            Ok(())
        });
        match outcome {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.raised = Some(error);
                ControlFlow::Break(())
            }
        }
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
    result.set_item("before", counters_to_dict(py, &outcome.before)?)?;
    result.set_item("after", counters_to_dict(py, &outcome.after)?)?;
    let look = |seen: &DataPlacementStatus| placement::status(py, seen);
    let seen = match &outcome.placement {
        Some((before, after)) => Some((look(before)?, look(after)?)),
        None => None,
    };
    result.set_item("placement", seen)?;
    result.set_item("warnings", outcome.warnings)?;
    Ok(result)
}

fn job_to_dict(py: Python<'_>, job: JobOutcome) -> PyResult<Bound<'_, PyDict>> {
    let result = PyDict::new(py);
    result.set_item("name", job.name)?;
    result.set_item("elapsed_ns", job.elapsed_ns)?;
    result.set_item("thread_ios", job.thread_ios)?;
    let operations = PyDict::new(py);
    for (name, operation) in OPERATION_NAMES.into_iter().zip(job.operations) {
        let Some(operation) = operation else { continue };
        let row = PyDict::new(py);
        row.set_item("ios", operation.ios)?;
        row.set_item("bytes", operation.bytes)?;
        row.set_item("service", Py::new(py, PyHistogram::of(operation.service))?)?;
        let response = operation.response.map(|h| Py::new(py, PyHistogram::of(h))).transpose()?;
        row.set_item("response", response)?;
        operations.set_item(name, row)?;
    }
    result.set_item("operations", operations)?;
    Ok(result)
}

fn columns_to_dict(py: Python<'_>, columns: Columns) -> PyResult<Bound<'_, PyDict>> {
    let result = PyDict::new(py);
    result.set_item("end_ns", PyArray1::from_vec(py, columns.end_ns))?;
    result.set_item("job", PyArray1::from_vec(py, columns.job))?;
    result.set_item("operation", PyArray1::from_vec(py, columns.operation))?;
    result.set_item("ios", PyArray1::from_vec(py, columns.ios))?;
    result.set_item("bytes", PyArray1::from_vec(py, columns.bytes))?;
    result.set_item("latency_mean_ns", PyArray1::from_vec(py, columns.latency_mean_ns))?;
    result.set_item("latency_max_ns", PyArray1::from_vec(py, columns.latency_max_ns))?;
    result.set_item("latency_sd_ns", PyArray1::from_vec(py, columns.latency_sd_ns))?;
    result.set_item("waf", PyArray1::from_vec(py, columns.waf))?;
    result.set_item("watts", PyArray1::from_vec(py, columns.watts))?;
    result.set_item("temperature_c", PyArray1::from_vec(py, columns.celsius))?;
    Ok(result)
}

/// What the drive counts, under the same names for all kinds where they mean the same; what a kind
/// does not have is absent.
pub(crate) fn counters_to_dict<'py>(
    py: Python<'py>,
    counters: &Counters,
) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    result.set_item("host_write_bytes", counters.host_write_bytes())?;
    result.set_item("host_read_bytes", counters.host_read_bytes())?;
    result.set_item("unmapped_read_bytes", counters.unmapped_read_bytes())?;
    match counters {
        Counters::Ssd(c) => flash_counters(&result, c)?,
        Counters::Disk(c) => {
            result.set_item("cache_hits", c.cache_hits)?;
            result.set_item("flash_hits", c.flash_hits)?;
            result.set_item("media_accesses", c.media_accesses)?;
            result.set_item("retries", c.retries)?;
            result.set_item("recalibrations", c.recalibrations)?;
        }
    }
    Ok(result)
}

fn flash_counters(result: &Bound<'_, PyDict>, c: &DriveCounters) -> PyResult<()> {
    result.set_item("nand_write_bytes", c.nand_write_bytes)?;
    result.set_item("gc_moved_bytes", c.gc_moved_bytes)?;
    result.set_item("wear_moved_bytes", c.wear_moved_bytes)?;
    result.set_item("padding_bytes", c.padding_bytes)?;
    result.set_item("trimmed_bytes", c.trimmed_bytes)?;
    result.set_item("collections", c.collections)?;
    result.set_item("free_reclaim_units", c.free_reclaim_units)?;
    result.set_item("erases_min", c.wear.min)?;
    result.set_item("erases_mean", c.wear.mean)?;
    result.set_item("erases_max", c.wear.max)?;
    result.set_item("percentage_used", c.wear.percentage_used)?;
    result.set_item("energy_j", c.energy.map(|energy| energy.total()))?;
    result.set_item("flash_energy_j", c.energy.map(|energy| energy.flash))?;
    result.set_item("read_retries", c.ecc.map(|ecc| ecc.retries))?;
    result.set_item("uncorrectable_reads", c.ecc.map(|ecc| ecc.uncorrectable_reads))?;
    result.set_item("temperature_c", c.thermal.map(|thermal| thermal.celsius))?;
    result.set_item("throttled_ns", c.thermal.map(|thermal| thermal.throttled.0))?;
    result.set_item("held_up_ns", c.held_up.map(|time| time.0))?;
    let slc = c.slc_cache;
    let bytes = |slots: u64| slots * u64::from(SLOT_BYTES);
    result.set_item("slc_write_bytes", slc.map(|done| bytes(done.writes + done.padding)))?;
    result.set_item("slc_fold_bytes", slc.map(|done| bytes(done.folds)))?;
    result.set_item("slc_coalesced_bytes", slc.map(|done| bytes(done.coalesced)))?;
    result.set_item("slc_bypassed_bytes", slc.map(|done| bytes(done.bypassed)))?;
    result.set_item("slc_held_bytes", slc.map(|done| bytes(done.held)))?;
    let reduced = c.reduction;
    result.set_item("stored_bytes", reduced.map(|done| done.stored_bytes()))?;
    result.set_item("duplicate_bytes", reduced.map(|done| bytes(done.duplicate_slots)))?;
    let kept = c.housekeeping;
    result.set_item("media_operations", kept.map(|done| done.media_operations))?;
    result.set_item("journal_programs", kept.map(|done| done.journal_programs))?;
    result.set_item("checkpoints", kept.map(|done| done.checkpoints))?;
    result.set_item("hiccups", kept.map(|done| done.hiccups))?;
    Ok(())
}
