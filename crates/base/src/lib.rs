//! Units, IDs, random numbers, large arrays, the state codec, and TOML files with located errors.
//!
//! All other crates share these basic types, which depend on no flash or type of drive.

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

/// Returns from a check with a message as the error unless a condition holds.
#[macro_export]
macro_rules! ensure {
    ($holds:expr, $($message:tt)*) => {
        if !$holds {
            return Err(format!($($message)*));
        }
    };
}
