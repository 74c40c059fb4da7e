//! What hosts do: the definition of a workload and the generators of its I/Os.
//!
//! [`WorkloadSpec`] mirrors `writecliff.workload.model` field by field and comes from JSON (the
//! seam to Python) or TOML (for people). Each thread of a job then has a [`ThreadGenerator`], which
//! says what its next I/O is, and a [`ThreadPacing`], which says when. Both depend on nothing but
//! the specification, the capacity and the seed: no clock, no drive, no other thread.

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
