//! Results of a step, and its progress while it is running.

use std::ops::ControlFlow;

use writecliff_host_interface::placement::DataPlacementStatus;
use writecliff_measure::schedule::Adherence;
use writecliff_measure::series::Columns;
use writecliff_measure::{BatchColumns, OPERATIONS, OperationOutcome};

use crate::device::Counters;
use crate::watch::EndedBy;

/// Results of one job of a step.
#[derive(Clone, Debug, Default)]
pub struct JobOutcome {
    /// Name of the job in the workload.
    pub name: String,
    /// Start of the time covered by the results, relative to the start of the step. The time is the
    /// job's start after its start delay, or the start of the last window of a latency target.
    pub began_ns: u64,
    /// Duration covered by the results. The duration ends at the later of the job's deadline and
    /// its last completion, or at the last completion if another condition ended the job first.
    /// Rates are relative to this duration.
    pub elapsed_ns: u64,
    /// Results by operation (read, write, trim); `None` for operations that the job cannot issue.
    pub operations: [Option<OperationOutcome>; OPERATIONS],
    /// Flushes sent by the job, which do not count as I/Os.
    pub flush: Option<OperationOutcome>,
    /// I/O count of each thread of the job.
    pub thread_ios: Vec<u64>,
    /// Condition that ended the job early; `None` if it ran to its configured end.
    pub ended_by: Option<EndedBy>,
    /// Final queue depth of each thread.
    pub queue_depth: u32,
    /// Fit of the I/O ages in an open loop, which reveals a growing backlog.
    pub adherence: Option<Adherence>,
}

/// All results of a step.
#[derive(Clone, Debug)]
pub struct StepOutcome {
    /// Start of the step in virtual time.
    pub started_ns: u64,
    /// Duration of the step.
    pub elapsed_ns: u64,
    /// Results by job, in workload order.
    pub jobs: Vec<JobOutcome>,
    /// Time series of all jobs.
    pub intervals: Columns,
    /// Batches of I/Os, which quantiles over time are computed from.
    pub batches: BatchColumns,
    /// Counters at the start of the step.
    pub before: Counters,
    /// Counters at the end of the step.
    pub after: Counters,
    /// Status of the data placement interface before and after the step; `None` if the drive has no
    /// such interface.
    pub data_placement: Option<(DataPlacementStatus, DataPlacementStatus)>,
    /// Warnings about the step, for example a rate that the drive did not reach.
    pub warnings: Vec<String>,
    /// `true` if the observer stopped the step before its end.
    pub interrupted: bool,
}

/// Progress of a step that is running.
#[derive(Clone, Copy, Debug)]
pub struct StepProgress {
    /// Progress towards the step's nearest end, 0 to 1.
    pub fraction: f64,
    /// Time since the start of the step; 0 in fast-forward.
    pub elapsed_ns: u64,
    /// I/Os completed since the start of the step.
    pub ios: u64,
    /// IOPS since the last observer call.
    pub iops: f64,
    /// Write amplification since the last observer call; `None` for a drive without flash or if
    /// nothing was written.
    pub waf: Option<f64>,
    /// Drive counters since the drive was new.
    pub counters: Counters,
}

impl StepProgress {
    /// Returns the progress of an untimed step.
    pub(crate) fn untimed(fraction: f64, ios: u64, counters: &Counters) -> Self {
        Self { fraction, elapsed_ns: 0, ios, iops: 0.0, waf: None, counters: *counters }
    }
}

/// Observer that is called periodically while a step is running, and may stop the step.
pub trait Observer {
    /// Receives the current progress; `Break` stops the step.
    fn look(&mut self, live: &StepProgress) -> ControlFlow<()>;
}

/// An observer that does nothing.
pub struct Unobserved;

impl Observer for Unobserved {
    fn look(&mut self, _: &StepProgress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
