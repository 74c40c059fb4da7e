//! A simulated SSD in virtual time.
//!
//! ```text
//! host ──submit──▶ queues ─▶ firmware ─▶ link ─▶ write buffer ─▶ FTL ─▶ dies ◀─▶ channels
//!      ◀─step───── completions ◀──────── link ◀──────────────────────── reads
//! ```
//!
//! The drive uses neither wall clock nor threads: `step` advances it to a virtual time.

#![allow(clippy::inline_always, reason = "tools/instruction-counts measures the effect")]

pub mod attribution;
mod backend;
mod command;
pub mod config;
pub mod counters;
pub mod data_placement;
pub mod device_file;
mod die;
mod event;
mod fill;
mod front;
mod idle;
pub mod mechanisms;
pub mod snapshot;
pub mod ssd;
mod storage;
mod write_buffer;

pub use attribution::{Attribution, Recorder};
use backend::Backend;
pub use config::DeviceConfig;
pub use counters::DriveCounters;
use die::{FlashOperation, ReadFor};
use event::{Lane, SsdEvent};
use fill::FillId;
pub use mechanisms::power_loss::{Durable, OnTheWay, PowerCut, Rebuild, Volatile};
pub use ssd::Ssd;
pub use storage::Storage;
pub use writecliff_ftl::Unwritten;
pub use writecliff_host_interface::{
    Command, Completion, Drive, Duplex, LinkConfig, Operation, Status,
};
