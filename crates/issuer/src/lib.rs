//! Issues I/Os to a block device or file at their due times, and measures the latencies.
//!
//! The issue is an open loop: the issue time depends only on the due time, not on earlier I/Os. One
//! thread waits for the next due time, submits I/Os through io_uring, and reaps completions
//! meanwhile. The number of I/Os in flight is limited; I/Os that wait because of the limit are
//! issued late and counted. Each I/O has three times: due time, issue time and completion time. The
//! time from the due time to the issue time is the *lateness*.
//!
//! A [`Feeder`] passes I/Os to [`issue()`]: the I/Os of a trace ([`traced`]) or of a workload
//! ([`generated`]). The I/Os of a workload are identical to those that the simulator would issue.

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
