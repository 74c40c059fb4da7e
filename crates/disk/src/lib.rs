//! A simulated hard disk in virtual time.
//!
//! ```text
//! host ──submit──▶ queues ─▶ firmware ─▶ link ─▶ caches ─▶ queue of the arm ─▶ platters
//!      ◀─step───── completions ◀──────── link ◀───────────────────────────────┘
//! ```
//!
//! | file | owns |
//! |---|---|
//! | `config.rs`, `device_file.rs` | a checked description, and the TOML form of it |
//! | `layout.rs` | zones and tracks: when each sector passes under the heads |
//! | `seek.rs` | how long the arm takes |
//! | `mechanics.rs` | arm and spindle together; retries, recalibration |
//! | `reads.rs`, `dirty.rs` | read cache with reading ahead, write cache |
//! | `flash_cache.rs` | the flash of a hybrid |
//! | `disk.rs`, `disk/schedule.rs` | the drive: commands in it, and what the arm does next |
//! | `snapshot.rs` | save and restore |
//!
//! Nothing is drawn at random but which accesses have to be repeated: the platters turn, and where
//! they are follows from the time.

pub mod config;
pub mod device_file;
pub mod dirty;
pub mod disk;
pub mod flash_cache;
pub mod layout;
pub mod mechanics;
pub mod reads;
pub mod seek;
mod snapshot;

pub use config::DiskConfig;
pub use disk::{Disk, DiskCounters};
