//! Issues I/Os to a block device or file at the times at which they are due, and measures them.
//!
//! An open loop: the time of issue depends on the due time alone, not on the I/Os before. One
//! thread waits for the next time, submits through io_uring, and takes completions meanwhile; the
//! kernel may take as long as it likes, up to a cap of I/Os in flight. I/Os that wait for the cap
//! are issued late and counted. Three times of each I/O are known: when it was due, when it was
//! issued, when it was complete. The time from the first to the second is its *lateness*.
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

/// The longest read or write that is issued.
pub const LENGTH_MAX_BYTES: u64 = 32 << 20;
