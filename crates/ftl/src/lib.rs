//! The flash translation layer (FTL): maps logical writes to flash operations.
//!
//! The FTL has no notion of time. The FTL updates its state immediately and reports the resulting
//! flash operations to a [`FlashSink`]. A timed device models the duration of the operations; a
//! fast-forward device ignores it. Both therefore go through the same sequence of states by
//! construction.
//!
//! | file | content |
//! |---|---|
//! | `ftl.rs` | host operations: write, TRIM, purge |
//! | `groups.rs` | reclaim groups, each with its own dies, free units and garbage collection |
//! | `parts.rs` | state that the groups share |
//! | `map.rs` | the map between logical and physical pages |
//! | `table.rs` | reclaim units: their state, valid counts, owners |
//! | `frontier.rs` | the open reclaim units that writes go to |
//! | `opening.rs` | writing to open units, programming, opening |
//! | `garbage_collection.rs` | emptying victims: pacing, relocating, freeing |
//! | `gc/` | victim selection: one policy per file |
//! | `spare/` | division of spare space between streams: one policy per file |
//! | `gc_destination.rs` | destination of relocated data |
//! | `bad_blocks/` | bad blocks, their replacement, dropped units, the end of spare space |
//! | `reduce/` | data reduction: compression and deduplication |
//! | `wear_leveling/` | which free unit to open, relocation of cold data |
//! | `check.rs` | invariant checks, of restored states and for tests |
//! | `state.rs` | save, restore and digest |
//! | `lost_die.rs` | parity across dies, and a lost die |
//! | `power_up.rs` | the state after a power loss |
//! | `gc_log.rs` | log of garbage collection on host units, for data placement events |
//! | `limit.rs` | the least work of a page-mapped FTL, for benchmarks |
//! | `theory.rs` | closed forms for write amplification, for validation |

pub mod bad_blocks;
mod check;
pub mod config;
pub mod counters;
pub mod frontier;
mod ftl;
mod garbage_collection;
pub mod gc;
pub mod gc_destination;
pub mod gc_log;
mod groups;
pub mod limit;
mod lost_die;
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
pub use config::{ConfigError, FtlConfig, GcPacing};
pub use counters::{Allocated, Counters};
pub use frontier::FrontierId;
pub use ftl::Ftl;
use parts::Parts;
pub use power_up::Unwritten;
pub use reduce::{ReductionConfig, ReductionCounters};
pub use sink::{FastForward, FlashSink, ProgramUnit};
pub use table::UnitTable;
