//! A simulated SSD in virtual time.
//!
//! ```text
//! host ──submit──▶ queues ─▶ firmware ─▶ link ─▶ write buffer ─▶ FTL ─▶ dies ◀─▶ channels
//!      ◀─step───── completions ◀──────── link ◀──────────────────────── reads
//! ```
//!
//! | file | content |
//! |---|---|
//! | `attribution.rs` | what the time of commands is spent on |
//! | `config.rs` | the checked configuration |
//! | `device_file.rs` | device files in TOML |
//! | `event.rs` | the event queue |
//! | `die.rs` | one die: queues, state, suspension |
//! | `backend.rs`, `backend/` | timing of dies and channels, a limit on active dies |
//! | `backend/planes.rs` | planes of a die that read independently |
//! | `fill.rs` | program units in progress |
//! | `ecc.rs` | read errors by wear and age, read retries |
//! | `housekeeping.rs` | firmware background work: media work, journal, checkpoints, hiccups |
//! | `data_placement/` | streams and FDP: mapping of host stream numbers |
//! | `ssd.rs` | the drive: clocks, counters, event handling |
//! | `ssd/io.rs` | commands in the drive: buffer, reads, writes |
//! | `power.rs` | energy, from the busy times of dies, channels, link and controller |
//! | `power_loss.rs` | what is not on flash yet, what a cut of the power leaves |
//! | `ssd/power_cut.rs` | cutting the power, powering up |
//! | `recovery.rs` | the time in which a drive finds its mapping |
//! | `indirection.rs` | indirection units above 4 KiB |
//! | `slc_cache.rs` | SLC cache: flash with one bit per cell that takes host writes first |
//! | `ssd/slc.rs` | commands on a drive with an SLC cache |
//! | `mapping_cache/`, `ssd/mapping_cache.rs`, `backend/mapping.rs` | a mapping table on flash |
//! | `ssd/pending.rs` | saving and restoring work in progress |
//! | `ssd/admin.rs` | administrative commands of the data placement interfaces |
//! | `endurance.rs` | endurance throttling |
//! | `die_parity.rs`, `backend/die_parity.rs`, `ssd/die_failure.rs` | parity, lost dies |
//! | `bad_blocks.rs` | the section; the mechanism is in the FTL |
//! | `cell_care.rs`, `ssd/refresh.rs` | temperature of data, read disturb, refresh |
//! | `integrity.rs` | faults on the way of the data, end-to-end protection |
//! | `thermal.rs` | temperature and thermal throttling |
//! | `snapshot.rs` | save and restore |
//!
//! The drive uses neither wall clock nor threads: `step` advances it to a virtual time.

pub mod attribution;
pub mod backend;
pub mod bad_blocks;
pub mod cell_care;
pub mod command;
pub mod config;
pub mod data_placement;
pub mod device_file;
pub mod die;
pub mod die_parity;
pub mod ecc;
pub mod endurance;
pub mod event;
pub mod fill;
pub mod housekeeping;
pub mod indirection;
pub mod integrity;
pub mod mapping_cache;
pub mod power;
pub mod power_loss;
pub mod recovery;
pub mod reduction;
pub mod slc_cache;
pub mod snapshot;
pub mod ssd;
pub mod thermal;

pub use attribution::Attribution;
pub use config::DeviceConfig;
pub use power_loss::{Durable, OnTheWay, PowerCut, Rebuild, Volatile};
pub use ssd::Ssd;
pub use ssd::counters::DriveCounters;
pub use writecliff_ftl::power_up::Unwritten;
pub use writecliff_host_interface::{Command, Completion, Duplex, LinkConfig, Operation, Status};
