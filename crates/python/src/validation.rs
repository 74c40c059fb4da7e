//! Validation of the simulator against theory.

use pyo3::prelude::*;
use writecliff_ftl::gc_destination::GcDestination;
use writecliff_ftl::gc_policy::GcPolicy;
use writecliff_ftl::spare::SparePolicy;
use writecliff_ftl::{ConfigError, GcPacing, limit};
use writecliff_validate::data_placement::{Lifetimes, PlacementLoad, data_placement};
use writecliff_validate::handles::{HandlesCase, handles};
use writecliff_validate::reduction::{Data, reduction};
use writecliff_validate::{Policies, WafCase, WafRow, uniform};

use crate::device::PyDevice;
use crate::errors;

#[pyfunction]
pub(crate) fn ftl_limit(
    py: Python<'_>,
    device: &PyDevice,
    overwrites: f64,
    seed: u64,
) -> PyResult<Option<(u64, u64)>> {
    let config = device.ssd(1)?;
    let (slots, flash) = (config.ftl.user_slots as u32, &config.geometry);
    let (units, unit_slots) = (flash.reclaim_units, flash.slots_per_reclaim_unit);
    let written = py.detach(|| limit::run(slots, units, unit_slots, overwrites, seed));
    Ok(written.map(|written| (written.host_slots, written.moved_slots)))
}

type Measured = Result<WafRow, ConfigError>;

#[pyfunction]
#[pyo3(signature = (
    policy, overprovision, pages_per_block, blocks, seed = 1, warm_up = 10, measured = 10
))]
pub(crate) fn validate_waf(
    py: Python<'_>,
    policy: &str,
    overprovision: f64,
    pages_per_block: u32,
    blocks: u32,
    seed: u64,
    warm_up: u32,
    measured: u32,
) -> PyResult<(f64, f64)> {
    let (run, policy): (fn(&WafCase) -> Measured, _) = if policy == "streams" {
        (writecliff_validate::streams, "greedy")
    } else {
        (uniform, policy)
    };
    let case = case(policy, overprovision, (blocks, pages_per_block), seed, (warm_up, measured))?;
    row(py.detach(|| run(&case)))
}

#[pyfunction]
#[pyo3(signature = (
    policy, overprovision, sizes, duplicates, *, pages_per_block, blocks, seed = 1, warm_up = 10,
    measured = 10
))]
pub(crate) fn validate_reduction(
    py: Python<'_>,
    policy: &str,
    overprovision: f64,
    sizes: Vec<u32>,
    duplicates: f64,
    pages_per_block: u32,
    blocks: u32,
    seed: u64,
    warm_up: u32,
    measured: u32,
) -> PyResult<(f64, f64)> {
    if sizes.is_empty() || sizes.iter().any(|size| !(1..=8).contains(size)) {
        return Err(errors::config("give at least one size of 1 to 8 sectors", None));
    }
    if !(0.0..1.0).contains(&duplicates) {
        return Err(errors::config("duplicates must be at least 0 and below 1", None));
    }
    let case = case(policy, overprovision, (blocks, pages_per_block), seed, (warm_up, measured))?;
    let data = Data { sizes, duplicates };
    row(py.detach(|| reduction(&case, &data)))
}

/// Returns the case that a row's keyword arguments describe.
fn case(
    policy: &str,
    overprovision: f64,
    (units, slots): (u32, u32),
    seed: u64,
    (warm_up, measured): (u32, u32),
) -> PyResult<WafCase> {
    let policy = match policy {
        "greedy" => GcPolicy::Greedy,
        "fifo" => GcPolicy::Fifo,
        "random" => GcPolicy::DChoices { d: 1 },
        other => {
            let d = other.strip_prefix("d=").and_then(|d| d.parse().ok());
            GcPolicy::DChoices { d: d.ok_or_else(|| unknown("policy", other))? }
        }
    };
    Ok(WafCase { policy, overprovision, units, slots, seed, warm_up, measured })
}

fn row(measured: Measured) -> PyResult<(f64, f64)> {
    let row = measured.map_err(|e| errors::config(&e.to_string(), None))?;
    Ok((row.waf_measured, row.waf_theory))
}

fn unknown(what: &str, name: &str) -> PyErr {
    errors::config(&format!("unknown {what} '{name}'"), None)
}

#[pyfunction]
#[pyo3(signature = (
    load, overprovision, *, streams, gc_destination = "per-stream", gc_pacing = "incremental",
    self_tuned = false, policy = "greedy", data = 0.2, writes = 0.8, request = 32,
    pages_per_block = 256, blocks = 4096, seed = 1, warm_up = 10, measured = 10
))]
pub(crate) fn validate_data_placement(
    py: Python<'_>,
    load: &str,
    overprovision: f64,
    streams: bool,
    gc_destination: &str,
    gc_pacing: &str,
    self_tuned: bool,
    policy: &str,
    data: f64,
    writes: f64,
    request: u32,
    pages_per_block: u32,
    blocks: u32,
    seed: u64,
    warm_up: u32,
    measured: u32,
) -> PyResult<(f64, f64)> {
    let load = match load {
        "hot-cold" => PlacementLoad::HotCold { data, writes },
        "by-size" => PlacementLoad::Sequential { reading: Lifetimes::BySize, request },
        "by-rate" => PlacementLoad::Sequential { reading: Lifetimes::ByRate, request },
        other => return Err(unknown("load", other)),
    };
    let gc_destination = match gc_destination {
        "per-stream" => GcDestination::PerStream,
        "host-unit" => GcDestination::HostUnit,
        "shared" => GcDestination::Shared,
        other => return Err(unknown("gc_destination", other)),
    };
    let spare = if self_tuned { SparePolicy::SelfTuned } else { SparePolicy::Global };
    let gc_pacing = match gc_pacing {
        "incremental" => GcPacing::Incremental,
        "per-victim" => GcPacing::PerVictim,
        other => return Err(unknown("gc_pacing", other)),
    };
    let how = Policies { gc_pacing, gc_destination, spare, reduction: None };
    let case = case(policy, overprovision, (blocks, pages_per_block), seed, (warm_up, measured))?;
    row(py.detach(|| data_placement(&case, load, streams, how)))
}

#[pyfunction]
#[pyo3(signature = (
    units, user_units, pages_per_block, *, persistent, rates, capacities, settled = None,
    seed = 1
))]
pub(crate) fn validate_handles(
    py: Python<'_>,
    units: u32,
    user_units: u32,
    pages_per_block: u32,
    persistent: bool,
    rates: [f64; 3],
    capacities: f64,
    settled: Option<(f64, f64)>,
    seed: u64,
) -> PyResult<(f64, f64)> {
    let settled = settled.unwrap_or_default();
    let slots = pages_per_block;
    let case =
        HandlesCase { units, user_units, slots, persistent, rates, capacities, settled, seed };
    py.detach(|| handles(&case)).map_err(|e| errors::config(&e.to_string(), None))
}
