//! A simulated hard disk in virtual time.
//!
//! ```text
//! host ──submit──▶ queues ─▶ firmware ─▶ link ─▶ caches ─▶ access scheduler ─▶ media
//!      ◀─step───── completions ◀──────── link ◀──────────────────────────────┘
//! ```
//!
//! | file | content |
//! |---|---|
//! | `config.rs`, `device_file.rs` | the configuration, and device files in TOML |
//! | `layout.rs` | zones and tracks: when each sector passes under its head |
//! | `seek.rs` | seek times |
//! | `mechanics.rs` | positioning (seek and rotation), retries, recalibration |
//! | `reads.rs`, `dirty.rs` | read cache with read-ahead, write cache |
//! | `flash_cache.rs` | the flash cache of a hybrid disk |
//! | `disk.rs`, `disk/schedule.rs` | the drive: commands in flight, scheduling of media accesses |
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
