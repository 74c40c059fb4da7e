//! The flash translation layer (FTL): maps logical writes to flash operations.
//!
//! The FTL has no clock. It changes its state immediately and reports the resulting flash
//! operations to a [`FlashSink`]. A timed device models their duration; a fast-forward device
//! ignores them. Both therefore go through the same states by construction.

#![allow(clippy::inline_always, reason = "tools/instruction-counts measures the effect")]

pub mod bad_blocks;
mod check;
pub mod config;
pub mod counters;
pub mod frontier;
mod ftl;
mod garbage_collection;
pub mod gc_destination;
pub mod gc_log;
pub mod gc_policy;
mod groups;
pub mod limit;
mod map;
mod opening;
mod parts;
pub mod power_up;
pub mod reduce;
pub mod sink;
pub mod spare;
mod state;
pub mod table;
pub mod theory;
pub mod wear_leveling;

pub use bad_blocks::{BadBlockCounters, BadBlocks, BadBlocksConfig};
pub use config::{FtlConfig, GcPacing};
pub use counters::{Allocated, Counters};
pub use frontier::FrontierId;
pub use ftl::Ftl;
use parts::Parts;
pub use power_up::Unwritten;
pub use reduce::{ReductionConfig, ReductionCounters};
pub use sink::{FastForward, FlashSink, ProgramUnit};
pub use table::UnitTable;
pub use writecliff_flash::ConfigError;
