//! Limits of workloads, traces, and served and real drives, for the reference pages.

use pyo3::prelude::*;
use writecliff_serve::{listener, nbd, trace};

#[pyfunction]
pub(crate) fn limits() -> Vec<(&'static str, u64)> {
    let mut all = writecliff_workload::limits().to_vec();
    all.extend([
        ("trace_line_bytes", writecliff_traces::LINE_MAX_BYTES as u64),
        ("trace_io_bytes", writecliff_traces::LENGTH_MAX_BYTES),
        ("trace_unpacked_ratio", writecliff_traces::RATIO_MAX),
        ("trace_unpacked_bytes", writecliff_traces::UNPACKED_FREE_BYTES),
        ("served_connections", listener::CONNECTIONS_MAX as u64),
        ("served_nbd_requests", nbd::REQUESTS_MAX as u64),
        ("served_trace_rows", trace::TRACED_MAX as u64),
        ("issued_io_bytes", writecliff_issuer::LENGTH_MAX_BYTES),
    ]);
    all
}
