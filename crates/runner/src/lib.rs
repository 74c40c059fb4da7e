//! Running a workload on a simulated drive, and measuring it.
//!
//! [`drive::run`] is the timed clock: a host with threads and queues in virtual time.
//! [`fast_forward::run`] applies the same requests without timing. [`validation`] compares the
//! drive with theory. [`replay`] replays traces of file I/O, with streams.
//!
//! [`Histogram`] holds all latencies of a step, [`Quantile`] computes quantiles with confidence
//! intervals, and [`IntervalSeries`] holds the rows of the time series. They do not depend on the
//! source of the latencies: real drives measured through fio use the same types.

mod any_drive;
pub mod batches;
pub mod bench;
pub mod described;
pub mod device;
pub mod drive;
pub mod fast_forward;
mod flow;
pub mod histogram;
pub mod host;
mod interval_counters;
pub mod latency_causes;
pub mod moments;
pub mod outcome;
pub mod overflow;
pub mod power_loss;
pub mod quantile;
pub mod replay;
pub mod schedule;
pub mod series;
pub mod validation;
mod watch;

pub use any_drive::{AnyDrive, MovedByStream};
pub use batches::{BatchColumns, Batches};
pub use described::{DeriveError, Device};
pub use device::{AnyConfig, Counters, DriveModel};
pub use histogram::{Histogram, HistogramError};
pub use latency_causes::{BucketCauses, LatencyCauses};
pub use moments::Moments;
pub use outcome::{Live, StepOutcome};
pub use quantile::Quantile;
pub use schedule::{Adherence, ScheduleFit};
pub use series::IntervalSeries;
pub use watch::EndedBy;
