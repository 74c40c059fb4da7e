//! Workloads: their definition and the generators of their I/Os.
//!
//! [`WorkloadSpec`] mirrors `writecliff.workload.model` field by field and is read from JSON
//! (passed by Python) or TOML (written by people). Each thread of a job has a [`ThreadGenerator`],
//! which determines its next I/O, and a [`ThreadPacing`], which determines when it is issued. Both
//! depend only on the specification, the capacity and the seed, and not on a clock, the drive or
//! other threads.

mod address;
pub mod assign;
mod check;
mod generator;
mod pacing;
mod segments;
mod spec;
mod toml_form;
pub mod trace;
mod uniform;
mod zipf;
mod zoned;

pub use check::{Limits, SpecError};
pub use generator::{IoRequest, Operation, ThreadGenerator};
pub use pacing::ThreadPacing;
pub use segments::SegmentMap;
pub use spec::{
    AddressKind, AddressSpec, Arrival, BlockSize, JobSpec, Pattern, SegmentSpec, WorkloadSpec, Zone,
};
