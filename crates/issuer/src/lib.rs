//! Issues I/Os to a block device or file at their due times, and measures them.
//!
//! The issue is an open loop: the time of issue depends only on the due time, not on earlier I/Os.
//! One thread waits for the next due time, submits through io_uring, and reaps completions
//! meanwhile. Up to a limit, any number of I/Os may be in flight; I/Os that wait for the limit are
//! issued late and counted. Each I/O has three times: due, issued and complete. The time from the
//! first to the second is its *lateness*.
//!
//! A [`Feeder`] gives I/Os to [`issue()`]: those of a trace ([`traced`]) or those that a workload
//! generates ([`generated`]), which are the same that the simulator would issue.

mod arena;
mod clock;
mod data;
mod deallocator;
mod feed;
pub mod generated;
mod io;
mod issue;
mod measured;
mod ring;
mod shared;
pub mod traced;

pub use feed::{Feed, Feeder, feed};
pub use io::{Io, IoFailure, Lane, Operation};
pub use issue::{Issue, Target, issue};
pub use measured::{JobMeasured, JobTime, Lateness, Measured};
pub use shared::{Done, IssueProgress, Shared};

/// Maximum length of a read or write.
pub const LENGTH_MAX_BYTES: u64 = 32 << 20;
