//! Units, ids, random numbers, large arrays, the state codec and TOML files with located errors.
//!
//! This crate holds the basic types that all other crates share. Nothing here depends on flash or
//! on any kind of drive.

pub mod codec;
pub mod counters;
pub mod cursors;
pub mod fields;
pub mod ids;
pub mod keys;
pub mod located;
pub mod log_linear;
pub mod memory;
pub mod permutation;
pub mod random;
pub mod saved_state;
pub mod similarity;
pub mod units;
mod words;

pub use ids::{Lpn, Ppa, ReclaimUnitId, StreamId};
pub use permutation::Permutation;
pub use random::Prng;
pub use units::{Bytes, BytesPerSecond, Nanos, SECTOR_BYTES, SLOT_BYTES};
