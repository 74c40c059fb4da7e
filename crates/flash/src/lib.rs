//! Flash memory: geometry, operation times, wear, block lifetimes and bit errors.
//!
//! The crate does not handle logical addresses. The crate determines, for example, the flash
//! location of slot 17 in reclaim unit 3 and the cost of an operation there.

pub mod acceleration;
pub mod die_parity;
pub mod errors;
pub mod geometry;
pub mod life;
pub mod timing;
pub mod wear;

pub use geometry::{CellType, ConfigError, FlashLocation, Geometry, SLOT_BYTES, Shape};
pub use life::BlockLife;
pub use timing::FlashTiming;
pub use wear::Wear;
