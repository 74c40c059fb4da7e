//! I/Os to be issued, and their lanes.

pub use writecliff_workload::Operation;

/// An I/O with its due time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// Due time since the start of the issue, which is at least the due time of the previous I/O.
    pub due_ns: u64,
    /// I/O operation.
    pub operation: Operation,
    /// Number of the [`Lane`].
    pub lane: u32,
    /// First byte.
    pub offset: u64,
    /// Length in bytes; 0 for flushes, at most [`crate::LENGTH_MAX_BYTES`] for reads and writes.
    pub length: u64,
    /// `true` for a write that repeats the data of the lane's last unique write.
    pub repeats: bool,
}

/// Attributes shared by a sequence of I/Os, which is a thread of a job or a trace.
#[derive(Clone, Copy, Debug)]
pub struct Lane {
    /// Job whose results include the I/Os.
    pub job: u32,
    /// Maximum number of I/Os in flight; further I/Os wait.
    pub depth: u32,
    /// Percentage of each written sector that is zero.
    pub compressible_pct: f64,
    /// `true` if each write must be on the media when it completes.
    pub dsync: bool,
    /// Time after which I/Os that still wait for a free queue entry are dropped.
    pub deadline_ns: Option<u64>,
}

impl Lane {
    /// Returns the lane of a trace.
    pub fn of_trace(depth: u32, compressible_pct: f64) -> Self {
        Self { job: 0, depth, compressible_pct, dsync: false, deadline_ns: None }
    }
}

/// First failed I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoFailure {
    /// Failed I/O.
    pub io: Io,
    /// Error number; 0 if the drive transferred fewer bytes than requested.
    pub errno: i32,
    /// Bytes transferred by an I/O without an error number.
    pub moved: u64,
}
