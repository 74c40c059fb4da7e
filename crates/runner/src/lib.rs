//! Running a workload on a simulated drive, and measuring it.
//!
//! [`Histogram`] holds every latency of a step, [`Quantile`] reads it with its evidence, and
//! [`Series`] keeps the rows by interval. None of them knows where a latency came from: real
//! drives measured through fio fill the same types.

pub mod histogram;
pub mod moments;
pub mod quantile;
pub mod series;

pub use histogram::{Histogram, HistogramError};
pub use moments::Moments;
pub use quantile::Quantile;
pub use series::{Cell, Columns, Series};
