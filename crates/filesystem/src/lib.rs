//! File I/O traces, and their conversion into block writes and TRIMs.

pub mod assign;
mod block_trace;
mod classes;
mod dirty;
mod events;
mod layout;
mod redraw;
mod rounds;
mod space;
pub mod synthetic;

pub use block_trace::{BlockTrace, Footprint, LayOut, NEVER, Repeats, Watch, deaths};
pub use classes::{Classes, Labels};
pub use events::{Batch, Events, FileOp, LEFT_OUT, TraceEvent};
pub use layout::{BlockOp, BlockRequest, FileLayout, FileSystem, WriteBack};
pub use space::Allocator;

use thiserror::Error;

/// Error while converting a trace for a drive.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TraceError {
    /// A trace row contains impossible values.
    #[error("trace: row {row}: {message}")]
    #[allow(missing_docs, reason = "row number, counted from 0, and problem")]
    Row { row: usize, message: String },
    /// The error does not concern a single row.
    #[error("trace: {0}")]
    Trace(String),
    /// The drive is too small for the files.
    #[error(
        "the trace's files need {needed_bytes} bytes at their peak, but the drive has only \
         {capacity_bytes} bytes"
    )]
    #[allow(missing_docs, reason = "units are in the names")]
    OutOfSpace { needed_bytes: u64, capacity_bytes: u64 },
    /// The observer stopped the conversion.
    #[error("stopped")]
    Stopped,
}

impl TraceError {
    /// Suggests a sufficiently large drive.
    pub fn hint(&self) -> Option<String> {
        let Self::OutOfSpace { needed_bytes, .. } = self else { return None };
        Some(format!("use a drive of at least {:.3} GB", *needed_bytes as f64 / 1e9))
    }
}

#[cfg(test)]
mod tests;
