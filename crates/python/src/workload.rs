//! Workload files and validation of workloads.

use numpy::PyArray1;
use pyo3::prelude::*;
use writecliff_base::Bytes;
use writecliff_workload::{Limits, WorkloadFile, WorkloadSpec};

use crate::dict::{Dict, column, dict};
use crate::errors;

#[pyfunction]
pub(crate) fn parse_workload_toml(
    text: &str,
    file_name: &str,
    capacity_bytes: u64,
) -> PyResult<String> {
    let file = WorkloadFile::from_toml(text, file_name).map_err(|e| errors::spec(&e))?;
    Ok(file.resolved(Bytes(capacity_bytes)).to_json())
}

#[pyfunction]
pub(crate) fn check_workload(json: &str, capacity_bytes: u64, streams: u16) -> PyResult<()> {
    let spec = WorkloadSpec::from_json(json).map_err(|e| errors::spec(&e))?;
    let limits = Limits { capacity: Bytes(capacity_bytes), streams };
    spec.validate(&limits).map_err(|e| errors::spec(&e))
}

#[pyfunction]
pub(crate) fn model_ios<'py>(py: Python<'py>, json: &str) -> Dict<'py> {
    let spec = WorkloadSpec::from_json(json).map_err(|e| errors::spec(&e))?;
    let [job] = &spec.jobs[..] else {
        return Err(errors::config("the workload has several jobs", None));
    };
    let Some(model) = &job.model else {
        return Err(errors::config("the job has no model", None));
    };
    let log = py.detach(|| model.expand(job.offset_bytes));
    let rows = log.offsets.len();
    let number = |letter: &u8| match letter {
        b'r' => 0_u8,
        b'w' => 1,
        b'f' => 2,
        _ => 3,
    };
    let signed = |values: &[u64]| column(py, values, |value| value.cast_signed());
    Ok(dict! {
        py,
        "time_ns" = signed(&log.times_ns),
        "operation" = column(py, log.operations.as_bytes(), number),
        "offset_bytes" = signed(&log.offsets),
        "length_bytes" = signed(&log.lengths),
        "volume" = PyArray1::from_vec(py, vec![0_i32; rows]),
        "process" = PyArray1::from_vec(py, vec![0_i32; rows]),
        "response_ns" = PyArray1::from_vec(py, vec![-1_i64; rows]),
        "content" = PyArray1::from_vec(py, vec![0_u64; rows])
    })
}
