//! Flash memory: geometry, operation times, wear, lives of blocks and bit errors.
//!
//! The crate does not deal with logical addresses. It determines where slot 17 of reclaim unit 3 is
//! on the flash and what an operation there costs.

pub mod acceleration;
pub mod die_parity;
pub mod errors;
pub mod geometry;
pub mod life;
pub mod timing;
pub mod wear;

pub use geometry::{CellType, FlashLocation, Geometry, GeometryError, SLOT_BYTES, Shape};
pub use life::BlockLife;
pub use timing::FlashTiming;
pub use wear::Wear;
