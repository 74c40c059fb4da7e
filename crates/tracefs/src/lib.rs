//! The kernel's trace buffers (tracefs): pages of events in, requests of a block device out.
//!
//! A tracing instance has one ring buffer for each processor. [`Buffers`] reads their pages,
//! [`Records`] walks the events of a page, [`EventFormat`] finds an event's fields by name, as the
//! running kernel describes them. [`Capture`] sorts the events of all processors, and [`Requests`]
//! combines the events of a request to one row. Other events become rows of numbers.

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
