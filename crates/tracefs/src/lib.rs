//! Converts kernel trace buffers (tracefs) from pages of events into requests of a block device.
//!
//! A tracing instance has one ring buffer per processor. [`Buffers`] reads the pages, [`Records`]
//! iterates over the events in a page, and [`EventFormat`] finds an event's fields by name, as
//! described by the running kernel. [`Capture`] sorts the events of all processors, and
//! [`Requests`] combines the events of a request into one row. Other events become rows of numbers.

mod block_event;
mod capture;
mod format;
mod names;
mod page;
mod requests;

pub use block_event::{BlockEvent, EventKind, Flags, Operation, parse_rwbs};
pub use capture::{Capture, EventRows};
pub use format::{EventFormat, Field, FormatError};
pub use names::Names;
pub use page::{Buffers, PageLayout, Records};
pub use requests::{Anomalies, Request, Requests};
