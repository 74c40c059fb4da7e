//! The flash translation layer: what a write becomes on flash.
//!
//! The FTL has no clock. It changes its state at once and tells a [`FlashSink`] which flash
//! operations that costs; a timed device lets them take time, a fast-forward device forgets them.
//! So both clocks go through the same states by construction.
//!
//! | file | owns |
//! |---|---|
//! | `ftl.rs` | the host's operations: write, TRIM, purge |
//! | `table.rs` | reclaim units: their state, valid counts, owners |
//! | `frontier.rs` | the open reclaim units that writes go to |
//! | `garbage_collection.rs` | emptying victims: pacing, relocating, freeing |
//! | `gc/` | which unit to collect: one policy a file |
//! | `spare/` | which stream gives up spare space: one policy a file |
//! | `gc_destination/` | where relocated data go: one policy per file |
//! | `reduce/` | what a controller stores that compresses or de-duplicates |
//! | `wear_leveling/` | which free unit to open, when to move cold data: one policy a file |
//! | `check.rs` | every invariant, for tests |
//! | `state.rs` | save and restore |
//! | `gc_log.rs` | what garbage collection did to the host's units, for data placement events |
//! | `theory.rs` | closed forms for write amplification, to compare with |

pub mod check;
pub mod config;
pub mod counters;
pub mod frontier;
pub mod ftl;
pub mod garbage_collection;
pub mod gc;
pub mod gc_destination;
pub mod gc_log;
pub mod reduce;
pub mod sink;
pub mod spare;
pub mod state;
pub mod table;
pub mod theory;
pub mod wear_leveling;

pub use config::{ConfigError, FtlConfig, GcPacing};
pub use counters::{Counters, Placed};
pub use ftl::Ftl;
pub use reduce::{ReductionConfig, ReductionCounters};
pub use sink::{FastForward, FlashSink, ProgramUnit};
