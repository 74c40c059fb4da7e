//! The drive against theory.

use pyo3::prelude::*;
use writecliff_ftl::gc::GcPolicy;
use writecliff_runner::validation::{WafCase, streams, uniform};

use crate::errors;

/// Measure one case; returns (measured, theory). `policy`: "greedy", "fifo", "random", "d=N", or
/// "streams" (four sequential writers, a stream each).
#[pyfunction]
#[pyo3(signature = (
    policy, overprovision, pages_per_block, blocks, seed = 1, warm_up = 10, measured = 10
))]
#[allow(clippy::too_many_arguments)] // one keyword argument a column of the table
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
    let unknown = || errors::config(&format!("no policy '{policy}'"), None);
    let gc = match policy {
        "greedy" | "streams" => GcPolicy::Greedy,
        "fifo" => GcPolicy::Fifo,
        "random" => GcPolicy::DChoices { d: 1 },
        other => {
            let d = other.strip_prefix("d=").and_then(|d| d.parse().ok()).ok_or_else(unknown)?;
            GcPolicy::DChoices { d }
        }
    };
    let case = WafCase {
        policy: gc,
        overprovision,
        units: blocks,
        slots: pages_per_block,
        seed,
        warm_up,
        measured,
    };
    let run = if policy == "streams" { streams } else { uniform };
    let row = py.detach(|| run(&case)).map_err(|e| errors::config(&e.to_string(), None))?;
    Ok((row.waf_measured, row.waf_theory))
}
