//! Units, ids, random numbers, large arrays, the state codec and TOML files with located errors.
//!
//! This crate owns the vocabulary that all others share. It knows nothing about flash: a change
//! here that names a drive is in the wrong crate.

pub mod codec;
pub mod counters;
pub mod ids;
pub mod located;
pub mod memory;
pub mod random;
pub mod saved_state;
pub mod similarity;
pub mod units;
pub mod words;

pub use ids::{Lpn, Ppa, ReclaimUnitId, StreamId};
pub use random::Prng;
pub use units::{Bytes, BytesPerSecond, Nanos};
