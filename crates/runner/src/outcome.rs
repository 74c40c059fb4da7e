//! What a step measured, and what can be seen of it while it runs.

use std::ops::ControlFlow;

use writecliff_ssd::data_placement::status::DataPlacementStatus;

use crate::device::Counters;
use crate::histogram::Histogram;
use crate::series::Columns;

/// Operations that results are kept by: read, write, trim.
pub const OPERATIONS: usize = 3;

/// One operation of one job.
#[derive(Clone, Debug, Default)]
pub struct OperationOutcome {
    pub ios: u64,
    pub bytes: u64,
    /// From issue to completion.
    pub service: Histogram,
    /// From intended arrival to completion; jobs with a rate only.
    pub response: Option<Histogram>,
}

#[derive(Clone, Debug)]
pub struct JobOutcome {
    pub name: String,
    pub elapsed_ns: u64,
    pub operations: [Option<OperationOutcome>; OPERATIONS],
    pub thread_ios: Vec<u64>,
}

/// Everything measured in one step.
#[derive(Clone, Debug)]
pub struct StepOutcome {
    pub started_ns: u64,
    pub elapsed_ns: u64,
    pub jobs: Vec<JobOutcome>,
    pub intervals: Columns,
    pub before: Counters,
    pub after: Counters,
    /// The data placement interface before and after; `None` for a drive without one.
    pub data_placement: Option<(DataPlacementStatus, DataPlacementStatus)>,
    pub warnings: Vec<String>,
    /// The observer asked to stop before the step's end.
    pub interrupted: bool,
}

/// A live look at a running step.
#[derive(Clone, Copy, Debug)]
pub struct Live {
    /// Of the step's end that is nearest, 0 to 1.
    pub fraction: f64,
    pub elapsed_ns: u64,
    pub ios: u64,
    /// Over the time since the last look.
    pub iops: f64,
    pub waf: Option<f64>,
    /// The drive's own counters, since it was new.
    pub counters: Counters,
}

/// Looks at a running step now and then; may stop it.
pub trait Observer {
    fn look(&mut self, live: &Live) -> ControlFlow<()>;
}

/// Watches nothing.
pub struct Unobserved;

impl Observer for Unobserved {
    fn look(&mut self, _: &Live) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
