//! Traces of file I/O and what they become on a drive: writes and TRIMs of blocks.
//!
//! | file | owns |
//! |---|---|
//! | `classes.rs` | rows that agree in where they come from |
//! | `events.rs` | what a program did to its files, in columns |
//! | `space.rs` | free space of the drive |
//! | `layout.rs` | file objects, where their blocks lie, write-back |
//! | `block_trace.rs` | a whole trace laid on a drive |
//! | `rounds.rs` | the trace again and again, and copies of it beside each other |
//! | `deaths.rs` | when the data of each write die |
//! | `synthetic.rs` | a small log-structured merge store, for tests and benchmarks |

mod block_trace;
mod classes;
mod deaths;
mod events;
mod layout;
mod rounds;
mod space;
pub mod synthetic;

pub use block_trace::{BlockTrace, Footprint, LayOut, Repeats};
pub use classes::{Classes, Labels};
pub use deaths::{NEVER, deaths};
pub use events::{Batch, Events, FileOp, LEFT_OUT, TraceEvent};
pub use layout::{BlockOp, BlockRequest, FileSystem, Layout, WriteBack};
pub use space::Allocator;

use thiserror::Error;

/// The unit in which files lie on the drive.
pub const BLOCK_BYTES: u64 = 4096;

/// Why a trace cannot be laid on a drive.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TraceError {
    #[error("trace: row {row}: {message}")]
    Row { row: usize, message: String },
    #[error("trace: {0}")]
    Trace(String),
    #[error(
        "the files of the trace take {needed_bytes} bytes at their peak, the drive holds \
         {capacity_bytes} bytes"
    )]
    OutOfSpace { needed_bytes: u64, capacity_bytes: u64 },
}

impl TraceError {
    /// What would do.
    pub fn hint(&self) -> Option<String> {
        let Self::OutOfSpace { needed_bytes, .. } = self else { return None };
        Some(format!("a drive of {:.3} GB or more holds them", *needed_bytes as f64 / 1e9))
    }
}

#[cfg(test)]
mod tests;
