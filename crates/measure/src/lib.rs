//! Measurements of a step: latencies and activity over time.
//!
//! [`Histogram`] stores all latencies of a step, and [`Quantile`] computes quantiles with
//! confidence intervals. [`IntervalSeries`] stores the rows of the time series, and [`Batches`] the
//! batches that determine the uncertainty of figures. These types do not depend on the source of
//! the latencies: simulated drives, real drives and server tests share them.

pub mod batches;
pub mod histogram;
pub mod latency_causes;
pub mod moments;
pub mod operation;
pub mod quantile;
pub mod schedule;
pub mod series;

pub use batches::{BatchColumns, Batches};
pub use histogram::{Histogram, HistogramError};
pub use latency_causes::{BucketCauses, LatencyCauses};
pub use moments::Moments;
pub use operation::{OPERATIONS, OperationOutcome};
pub use quantile::Quantile;
pub use schedule::{Adherence, ScheduleFit};
pub use series::IntervalSeries;
