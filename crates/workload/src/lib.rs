//! Workload definitions, and generators of their I/Os.
//!
//! [`WorkloadSpec`] mirrors `writecliff.workload.model` field by field and is read from JSON
//! (passed by Python) or TOML (written by users). Each thread of a job has a [`ThreadGenerator`],
//! which determines its next I/O, and a [`ThreadPacing`], which determines when it is issued. Both
//! depend only on the specification, the capacity and the seed, and not on a clock, the drive or
//! other threads. Threads with [`HostZones`] share their zones, so the order in which they generate
//! I/Os matters.

mod address;
mod block_map;
mod check;
mod ends;
mod file;
mod generator;
mod host_zones;
mod io_log;
mod pacing;
mod segments;
mod sequence;
mod skewed;
mod spec;
mod sprandom;
mod striding;
mod toml_form;

pub use check::memory::{SERIES_ROWS_KEPT, SERIES_ROWS_MAX};
pub use check::{Limits, SpecError, limits};
pub use ends::{LatencyTarget, LeastRate, Metric, SteadyEnd};
pub use file::{FileStep, WorkloadFile};
pub use generator::{IoRequest, ThreadGenerator};
pub use host_zones::{HostZones, Zones};
pub use pacing::ThreadPacing;
pub use segments::SegmentMap;
pub use spec::{
    AddressKind, AddressSpec, Arrival, BlockSize, JobSpec, OwnBlocks, Pattern, SegmentSpec,
    StreamOrder, WorkloadSpec, ZipfGenerator, Zone,
};
pub use toml_form::workload_keys;
pub use writecliff_host_interface::Operation;
pub use writecliff_synthesis::IoLog;
