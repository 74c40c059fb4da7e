//! Results of one operation of one job.

use crate::{Histogram, LatencyCauses};

/// Number of operations that count as I/Os and have a series: read, write, trim.
pub const OPERATIONS: usize = 3;

/// Results of one operation of one job.
#[derive(Clone, Debug, Default)]
pub struct OperationOutcome {
    /// Completed I/Os.
    pub ios: u64,
    /// Bytes transferred by these I/Os.
    pub bytes: u64,
    /// Service times, from issue to completion.
    pub service: Histogram,
    /// Response times from intended arrival to completion; only for jobs with a rate.
    pub response: Option<Histogram>,
    /// Causes of the service times; `None` if the drive does not record them.
    pub causes: Option<LatencyCauses>,
}
