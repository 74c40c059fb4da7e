//! Flash memory: what there is (geometry), how long it takes (timing), how it ages (wear),
//! what it forgets (errors).
//!
//! The crate knows nothing of logical addresses. It answers "where on the flash is slot 17 of
//! reclaim unit 3, and what does an operation there cost?"

pub mod errors;
pub mod geometry;
pub mod timing;
pub mod wear;

pub use geometry::{CellType, Geometry, GeometryError, Shape};
pub use timing::FlashTiming;
pub use wear::Wear;
