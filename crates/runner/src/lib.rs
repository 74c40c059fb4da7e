//! Runs workloads on simulated drives, and measures the results.
//!
//! [`drive::run`] is the timed simulation: a host with threads and queues in virtual time.
//! [`fast_forward::run`] applies the same requests without timing. [`replay`] replays file I/O
//! traces with streams.

mod any_drive;
pub mod described;
pub mod device;
pub mod drive;
pub mod fast_forward;
mod flow;
mod host;
pub mod outcome;
pub mod overflow;
pub mod power_loss;
pub mod replay;
mod watch;

pub use any_drive::{AnyDrive, MovedByStream, Runnable};
pub use described::Device;
pub use device::{AnyConfig, Counters, DriveModel};
pub use outcome::{StepOutcome, StepProgress};
pub use watch::EndedBy;
