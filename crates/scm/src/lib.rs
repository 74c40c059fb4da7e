//! A simulated drive of storage-class memory in virtual time.
//!
//! ```text
//! host ──submit──▶ queues ─▶ firmware ─▶ link (writes) ─▶ controller ─▶ banks
//!      ◀─step───── completions ◀──────── link ◀──────────────────────────┘
//! ```
//!
//! | file | content |
//! |---|---|
//! | `config.rs`, `device_file.rs` | the configuration, and device files in TOML |
//! | `media.rs` | the controller and the banks: when the accesses of a command are done |
//! | `scm.rs` | the drive: commands in flight |
//!
//! The memory is written where it is read. Nothing is erased, nothing is moved, and no map records
//! where data are, so the drive has no state that makes later commands slower or faster. It makes
//! no random choice.

pub mod config;
pub mod device_file;
pub mod media;
pub mod scm;

pub use config::ScmConfig;
pub use scm::{Scm, ScmCounters};
