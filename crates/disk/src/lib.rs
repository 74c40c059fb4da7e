//! A simulated hard disk in virtual time.
//!
//! ```text
//! host ──submit──▶ queues ─▶ firmware ─▶ link ─▶ caches ─▶ access scheduler ─▶ media
//!      ◀─step───── completions ◀──────── link ◀──────────────────────────────┘
//! ```
//!
//! The only random decision is which accesses need retries. Virtual time sets the rotation.

mod config;
pub mod device_file;
mod dirty;
mod disk;
mod flash_cache;
mod layout;
mod mechanics;
mod reads;
mod seek;

pub use config::DiskConfig;
pub use disk::{Disk, DiskCounters};
