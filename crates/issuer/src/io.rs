//! An I/O to be issued, and the lane that it is in.

pub use writecliff_workload::Operation;

/// An I/O and when it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// Since the beginning. Never before that of the I/O before.
    pub due_ns: u64,
    /// Operation code.
    pub operation: Operation,
    /// Number of the [`Lane`].
    pub lane: u32,
    /// First byte.
    pub offset: u64,
    /// 0 for flushes. At most [`crate::LENGTH_MAX_BYTES`] for reads and writes.
    pub length: u64,
    /// A write with the data of the lane's last write that was not one of these.
    pub repeats: bool,
}

/// Attributes shared by a sequence of I/Os: a thread of a job, or a trace.
#[derive(Clone, Copy, Debug)]
pub struct Lane {
    /// The job whose results they are.
    pub job: u32,
    /// I/Os in flight at a time; others wait for them.
    pub depth: u32,
    /// Share of each written sector that is zeros.
    pub compressible_pct: f64,
    /// Each write is on the media when it completes.
    pub dsync: bool,
    /// I/Os that still wait for the depth then are not issued.
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
    /// Bytes that were moved, of an I/O without an error number.
    pub moved: u64,
}
