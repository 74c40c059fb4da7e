//! Serves a simulated drive in real time: programs use a block device with the behaviour and
//! latencies of the simulated drive.
//!
//! The drive's virtual time follows the wall clock ([`clock`]). Connections submit requests
//! ([`Session`]) and receive the completions when the simulated drive completes them. A thread that
//! submits a request also does the drive's pending work; without requests, the drive's own thread
//! does it. If timing is disabled ([`Timing::Fast`]), requests complete when they are submitted.
//!
//! # When data change
//!
//! NVMe does not order commands that are outstanding at the same time. A read must return written
//! data only if the read is submitted after the write has completed (NVM Command Set 1.0, 2.1.4: no
//! ordering beyond atomicity). Data are therefore stored when a write is submitted, and read when a
//! read completes. The command is outstanding at both times, and no data need to be buffered while
//! the simulated drive works. The previous data of changes that are not yet durable are retained
//! (`writecliff_contents`), so that a power cut can undo the changes.

pub mod clock;
mod core;
pub mod input;
mod journal;
pub mod listener;
pub mod nbd;
pub mod nvme;
pub mod outbox;
pub mod request;
pub mod served;
pub mod socket;
pub mod state;
pub mod statistics;
pub mod trace;

pub use listener::{Address, Listener};
pub use outbox::Outbox;
pub use request::{Done, Failure, Refusal, Replies, Request, Tag};
pub use served::power::{CutPlan, CutWhen, PowerCut, Recovery};
pub use served::{
    LOGICAL_BLOCKS, PowerHistory, Served, ServedParts, Session, SessionBatch, Timing,
};
pub use socket::Socket;
pub use statistics::{Life, Recent, Snapshot, StreamWrites};
pub use trace::{Trace, Traced};
