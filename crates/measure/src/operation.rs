//! Results of one operation of one job.

use crate::{Histogram, LatencyCauses};

/// Number of operations that count as I/Os and have a series: read, write, trim.
pub const OPERATIONS: usize = 3;

/// One operation of one job.
#[derive(Clone, Debug, Default)]
pub struct OperationOutcome {
    /// Completed I/Os.
    pub ios: u64,
    /// Bytes of these I/Os.
    pub bytes: u64,
    /// Service times, from issue to completion.
    pub service: Histogram,
    /// Response times, from intended arrival to completion, for jobs with a rate only.
    pub response: Option<Histogram>,
    /// Causes of the service times, if the drive records them.
    pub causes: Option<LatencyCauses>,
}
