//! Workload files and checks.

use pyo3::prelude::*;
use writecliff_base::Bytes;
use writecliff_workload::{Limits, WorkloadFile, WorkloadSpec};

use crate::errors;

/// A workload file in TOML as JSON, its steps with the workloads that the Python model reads;
/// shares of the drive become bytes.
#[pyfunction]
pub(crate) fn parse_workload_toml(
    text: &str,
    file_name: &str,
    capacity_bytes: u64,
) -> PyResult<String> {
    let file = WorkloadFile::from_toml(text, file_name).map_err(|e| errors::spec(&e))?;
    Ok(file.resolved(Bytes(capacity_bytes)).to_json())
}

/// Check a workload (as JSON) against a drive; raises `NativeConfigError`.
#[pyfunction]
pub(crate) fn check_workload(json: &str, capacity_bytes: u64, streams: u16) -> PyResult<()> {
    let spec = WorkloadSpec::from_json(json).map_err(|e| errors::spec(&e))?;
    let limits = Limits { capacity: Bytes(capacity_bytes), streams };
    spec.validate(&limits).map_err(|e| errors::spec(&e))
}
