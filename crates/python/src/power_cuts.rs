//! Power cut check.

use pyo3::prelude::*;
use writecliff_runner::power_loss::{Loss, losses};
use writecliff_validate::power_cuts::{Fault, Kind, PowerCutTally, run};

use crate::device::PyDevice;
use crate::dict::{Dict, Dicts, dict};
use crate::errors;

#[pyfunction]
#[pyo3(signature = (seed, drive, cuts))]
pub(crate) fn validate_power_cuts(py: Python<'_>, seed: u64, drive: u64, cuts: u32) -> Dict<'_> {
    if cuts == 0 {
        return Err(errors::config("cuts is 0; it must be 1 or more", None));
    }
    let ended = py.detach(|| run(seed, drive, cuts, Fault::None));
    let kind = Kind::of(drive);
    let tally = ended.as_ref().copied().unwrap_or(PowerCutTally::default());
    Ok(dict! {
        py,
        kind.{gc},
        "data_placement" = kind.placement.name(),
        "extra" = kind.extra.name(),
        kind.{write_cache, power_loss_protection},
        tally.{cuts, commands},
        "lost_slots" = tally.lost,
        "unconfirmed_slots" = tally.survived,
        tally.{torn_units, interrupted_erases, saved_slots},
        "rebuild_ns_max" = tally.slowest.0,
        "violation" = ended.err()
    })
}

#[pyfunction]
#[pyo3(signature = (device, seed, queue_depth, writes))]
pub(crate) fn power_losses<'py>(
    py: Python<'py>,
    device: &PyDevice,
    seed: u64,
    queue_depth: u32,
    writes: Vec<u64>,
) -> Dicts<'py> {
    if queue_depth == 0 || writes.contains(&0) {
        return Err(errors::config("queue_depth and writes must be 1 or more", None));
    }
    let config = device.ssd(seed)?;
    let losses = py.detach(|| losses(config, seed, queue_depth, &writes));
    let losses = losses.map_err(|reason| errors::config(&reason, None))?;
    let row = |loss: Loss| {
        Ok(dict! {
            py,
            "confirmed_writes" = loss.confirmed,
            "lost_writes" = loss.lost,
            loss.{torn_units, interrupted_erases},
            "saved_slots" = loss.saved,
            "hold_up_ns" = loss.hold_up.0,
            "rebuild_ns" = loss.rebuild.0,
            "elapsed_ns" = loss.elapsed.0
        })
    };
    losses.into_iter().map(row).collect()
}
