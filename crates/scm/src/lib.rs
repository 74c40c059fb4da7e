//! A simulated drive with storage-class memory, in virtual time.
//!
//! ```text
//! host ──submit──▶ queues ─▶ firmware ─▶ link (writes) ─▶ controller ─▶ banks
//!      ◀─step───── completions ◀──────── link ◀──────────────────────────┘
//! ```
//!
//! Data are written in place: the drive neither erases nor moves data and has no map, so no state
//! makes later commands slower or faster. The drive makes no random choices.

pub mod config;
pub mod device_file;
pub mod media;
pub mod scm;

pub use config::ScmConfig;
pub use scm::{Scm, ScmCounters};
