//! A simulated SSD in virtual time.
//!
//! ```text
//! host ──submit──▶ queues ─▶ firmware ─▶ link ─▶ write buffer ─▶ FTL ─▶ dies ◀─▶ channels
//!      ◀─step───── completions ◀──────── link ◀──────────────────────── reads
//! ```
//!
//! | file | owns |
//! |---|---|
//! | `config.rs` | a checked device description |
//! | `device_file.rs` | the TOML form of it |
//! | `event.rs` | the event queue: what happens next |
//! | `die.rs` | one die: its queues, what it is doing, suspension |
//! | `backend.rs` | dies and channels: flash operations in time |
//! | `fill.rs` | program units on their way to flash |
//! | `ecc.rs` | reads that have to be repeated, by wear and age |
//! | `housekeeping.rs` | what firmware does besides: media work, journal, checkpoints, hiccups |
//! | `data_placement/` | streams and FDP: what a host's stream number means |
//! | `ssd.rs` | the drive: its clocks, its counters, what happens next |
//! | `ssd/io.rs` | commands in the drive: buffer, reads, writes |
//! | `power.rs` | energy, from the times that dies, channels, link and controller work |
//! | `slc_cache.rs` | flash with one bit a cell that takes host writes first |
//! | `ssd/slc.rs` | commands on a drive that has it |
//! | `ssd/pending.rs` | what is under way, to a saved state and back |
//! | `ssd/admin.rs` | administrative commands of the data placement interfaces |
//! | `endurance.rs` | writes slowed down so that the flash lasts |
//! | `thermal.rs` | temperature, and throttling by it |
//! | `snapshot.rs` | save and restore |
//!
//! The drive knows no wall clock and no thread: `step` runs it up to a virtual time.

pub mod backend;
pub mod command;
pub mod config;
pub mod data_placement;
pub mod device_file;
pub mod die;
pub mod ecc;
pub mod endurance;
pub mod event;
pub mod fill;
pub mod housekeeping;
pub mod power;
pub mod reduction;
pub mod slc_cache;
pub mod snapshot;
pub mod ssd;
pub mod thermal;

pub use config::DeviceConfig;
pub use ssd::Ssd;
pub use ssd::counters::DriveCounters;
pub use writecliff_host_interface::{Command, Completion, Duplex, LinkConfig, Operation};
