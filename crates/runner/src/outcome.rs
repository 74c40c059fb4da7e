//! Results of a step, and its progress while it runs.

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
    /// Start of the time that the results cover, since the start of the step: the job's start after
    /// its start delay, or the start of the last window of a latency target.
    pub began_ns: u64,
    /// Length of the time that the results cover: until the later of the job's deadline and its
    /// last completion, or until the last completion if another condition ended the job first.
    /// Rates are relative to this time.
    pub elapsed_ns: u64,
    /// Results by operation (read, write, trim); `None` for operations that the job cannot issue.
    pub operations: [Option<OperationOutcome>; OPERATIONS],
    /// Flushes that the job sent, which do not count as I/Os.
    pub flush: Option<OperationOutcome>,
    /// I/Os of each thread of the job.
    pub thread_ios: Vec<u64>,
    /// Condition that ended the job before its own end; `None` if it ran to its end.
    pub ended_by: Option<EndedBy>,
    /// Queue depth of each thread at the end.
    pub queue_depth: u32,
    /// Fit of the ages of I/Os of an open loop, which shows a growing backlog.
    pub adherence: Option<Adherence>,
}

/// All results of one step.
#[derive(Clone, Debug)]
pub struct StepOutcome {
    /// Start of the step in virtual time.
    pub started_ns: u64,
    /// Duration of the step.
    pub elapsed_ns: u64,
    /// Results by job, in the order of the workload.
    pub jobs: Vec<JobOutcome>,
    /// Time series of all jobs.
    pub intervals: Columns,
    /// Batches of I/Os, from which quantiles over time are computed.
    pub batches: BatchColumns,
    /// Counters at the start of the step.
    pub before: Counters,
    /// Counters at the end of the step.
    pub after: Counters,
    /// Status of the data placement interface before and after the step; `None` for a drive without
    /// one.
    pub data_placement: Option<(DataPlacementStatus, DataPlacementStatus)>,
    /// Warnings about the step, such as a rate that the drive did not reach.
    pub warnings: Vec<String>,
    /// `true` if the observer stopped the step before its end.
    pub interrupted: bool,
}

/// Progress of a running step.
#[derive(Clone, Copy, Debug)]
pub struct StepProgress {
    /// Progress towards the step's nearest end, 0 to 1.
    pub fraction: f64,
    /// Time since the start of the step; 0 on the fast-forward clock.
    pub elapsed_ns: u64,
    /// I/Os completed since the start of the step.
    pub ios: u64,
    /// IOPS since the last call of the observer.
    pub iops: f64,
    /// Write amplification since the last call; `None` without flash or without writes.
    pub waf: Option<f64>,
    /// The drive's counters since it was new.
    pub counters: Counters,
}

impl StepProgress {
    /// Returns the progress of an untimed step.
    pub(crate) fn untimed(fraction: f64, ios: u64, counters: &Counters) -> Self {
        Self { fraction, elapsed_ns: 0, ios, iops: 0.0, waf: None, counters: *counters }
    }
}

/// Called periodically while a step runs; may stop it.
pub trait Observer {
    /// Receives the current state; `Break` stops the step.
    fn look(&mut self, live: &StepProgress) -> ControlFlow<()>;
}

/// An observer that does nothing.
pub struct Unobserved;

impl Observer for Unobserved {
    fn look(&mut self, _: &StepProgress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
