//! The check of power cuts.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use writecliff_runner::power_loss::losses;
use writecliff_runner::validation::power_cuts::{Fault, KINDS, Tally, run};

use crate::device::PyDevice;
use crate::errors;

/// Cuts the power of one small drive `cuts` times. Returns what happened, and what was violated.
#[pyfunction]
#[pyo3(signature = (seed, drive, cuts))]
pub(crate) fn validate_power_cuts(
    py: Python<'_>,
    seed: u64,
    drive: u64,
    cuts: u32,
) -> PyResult<Bound<'_, PyDict>> {
    if cuts == 0 {
        return Err(errors::config("cuts is 0; it must be 1 or more", None));
    }
    let ended = py.detach(|| run(seed, drive, cuts, Fault::None));
    let kind = KINDS[(drive % KINDS.len() as u64) as usize];
    let tally = ended.as_ref().copied().unwrap_or(Tally::default());
    let result = PyDict::new(py);
    result.set_item("gc", kind.gc)?;
    result.set_item("data_placement", kind.placement.name())?;
    result.set_item("extra", kind.extra.name())?;
    result.set_item("write_cache", kind.write_cache)?;
    result.set_item("power_loss_protection", kind.power_loss_protection)?;
    result.set_item("cuts", tally.cuts)?;
    result.set_item("commands", tally.commands)?;
    result.set_item("lost_slots", tally.lost)?;
    result.set_item("unconfirmed_slots", tally.kept)?;
    result.set_item("torn_units", tally.torn_units)?;
    result.set_item("interrupted_erases", tally.interrupted_erases)?;
    result.set_item("saved_slots", tally.saved_slots)?;
    result.set_item("rebuild_ns_max", tally.slowest.0)?;
    result.set_item("violation", ended.err())?;
    Ok(result)
}

/// Cuts the power of a drive after each number of writes since the last flush.
#[pyfunction]
#[pyo3(signature = (device, seed, queue_depth, writes))]
pub(crate) fn power_losses<'py>(
    py: Python<'py>,
    device: &PyDevice,
    seed: u64,
    queue_depth: u32,
    writes: Vec<u64>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    if queue_depth == 0 || writes.contains(&0) {
        return Err(errors::config("queue_depth and writes must be 1 or more", None));
    }
    let config = device.ssd(seed)?;
    let found = py.detach(|| losses(config, seed, queue_depth, &writes));
    let found = found.map_err(|reason| errors::config(&reason, None))?;
    let row = |loss: writecliff_runner::power_loss::Loss| {
        let row = PyDict::new(py);
        row.set_item("confirmed_writes", loss.confirmed)?;
        row.set_item("lost_writes", loss.lost)?;
        row.set_item("torn_units", loss.torn_units)?;
        row.set_item("interrupted_erases", loss.interrupted_erases)?;
        row.set_item("saved_slots", loss.saved)?;
        row.set_item("hold_up_ns", loss.hold_up.0)?;
        row.set_item("rebuild_ns", loss.rebuild.0)?;
        row.set_item("elapsed_ns", loss.elapsed.0)?;
        Ok(row)
    };
    found.into_iter().map(row).collect()
}
