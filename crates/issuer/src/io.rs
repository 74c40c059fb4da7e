//! I/Os to be issued, and their lanes.

pub use writecliff_workload::Operation;

/// An I/O and its due time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// Due time since the start of the issue, at least that of the previous I/O.
    pub due_ns: u64,
    /// Operation of the I/O.
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

/// Attributes shared by a sequence of I/Os: a thread of a job, or a trace.
#[derive(Clone, Copy, Debug)]
pub struct Lane {
    /// Job to whose results the I/Os belong.
    pub job: u32,
    /// Maximum number of I/Os in flight; others wait.
    pub depth: u32,
    /// Percentage of each written sector that is zero.
    pub compressible_pct: f64,
    /// `true` if each write is on the media when it completes.
    pub dsync: bool,
    /// Time after which I/Os that still wait for a free queue entry are not issued.
    pub deadline_ns: Option<u64>,
}

impl Lane {
    /// Returns the lane of a trace.
    pub fn of_trace(depth: u32, compressible_pct: f64) -> Self {
        Self { job: 0, depth, compressible_pct, dsync: false, deadline_ns: None }
    }
}

/// The first I/O that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoFailure {
    /// The I/O that failed.
    pub io: Io,
    /// Error number; 0 if the drive moved fewer bytes than requested.
    pub errno: i32,
    /// Transferred bytes of an I/O without an error number.
    pub moved: u64,
}
