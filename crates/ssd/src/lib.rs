//! A simulated SSD in virtual time.
//!
//! ```text
//! host ──submit──▶ queues ─▶ firmware ─▶ link ─▶ write buffer ─▶ FTL ─▶ dies ◀─▶ channels
//!      ◀─step───── completions ◀──────── link ◀──────────────────────── reads
//! ```
//!
//! | file | content |
//! |---|---|
//! | `ssd.rs` | the drive: decodes commands, places data, completes commands |
//! | `command.rs` | commands in the drive: queues, firmware, barrier and link |
//! | `write_buffer.rs` | the write buffer, and writes that wait for its free slots |
//! | `storage.rs` | placement and location of data: the FTL, its front and the flash |
//! | `idle.rs` | idle time and background work |
//! | `backend.rs`, `backend/`, `die.rs`, `fill.rs` | timing of dies and channels, open units |
//! | `mechanisms/` | a directory or file each: section, state, counters, effects |
//! | `data_placement/` | streams and FDP: mapping of host stream numbers |
//! | `config.rs`, `device_file.rs`, `device_file/` | device files, and the checked configuration |
//! | `attribution.rs` | causes of latency |
//! | `counters.rs` | counters and energy of the drive as a whole |
//! | `event.rs` | the event queue |
//! | `snapshot.rs` | save and restore |
//!
//! The drive uses neither the wall clock nor threads: `step` advances it to a virtual time.

pub mod attribution;
pub mod backend;
pub mod command;
pub mod config;
pub mod counters;
pub mod data_placement;
pub mod device_file;
pub mod die;
pub mod event;
pub mod fill;
mod front;
mod idle;
pub mod mechanisms;
pub mod snapshot;
pub mod ssd;
mod storage;
mod write_buffer;

pub use attribution::{Attribution, Recorder};
pub use backend::Backend;
pub use config::DeviceConfig;
pub use counters::DriveCounters;
use die::{FlashOperation, ReadFor};
use event::{Lane, SsdEvent};
pub use fill::FillId;
use front::Front;
pub use mechanisms::power_loss::{Durable, OnTheWay, PowerCut, Rebuild, Volatile};
pub use ssd::Ssd;
pub use storage::Storage;
pub use writecliff_ftl::Unwritten;
pub use writecliff_host_interface::{
    Command, Completion, Drive, Duplex, LinkConfig, Operation, Status,
};
