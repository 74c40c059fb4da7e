//! A simulated hard disk in virtual time.
//!
//! ```text
//! host ──submit──▶ queues ─▶ firmware ─▶ link ─▶ caches ─▶ access scheduler ─▶ media
//!      ◀─step───── completions ◀──────── link ◀──────────────────────────────┘
//! ```
//!
//! The only random decision is which accesses need retries. The virtual time determines the
//! rotational position.

pub mod config;
pub mod device_file;
pub mod dirty;
pub mod disk;
pub mod flash_cache;
pub mod layout;
pub mod mechanics;
pub mod reads;
pub mod seek;

pub use config::DiskConfig;
pub use disk::{Disk, DiskCounters};
