//! Serves a simulated drive in real time: programs use a block device with the behaviour and
//! latencies of the simulated drive.
//!
//! The drive's virtual time follows the wall clock ([`clock`]). Connections submit requests
//! ([`Session`]) and receive the completions when the simulated drive completes them. A thread that
//! submits a request also does the drive's pending work. When no requests are submitted, the
//! drive's own thread does this work. If timing is disabled ([`Timing::Fast`]), requests complete
//! when they are submitted.
//!
//! # When data change
//!
//! NVMe does not order commands that are outstanding at the same time. A read must return written
//! data only if the read is submitted after the write has completed (NVM Command Set 1.0, 2.1.4: no
//! ordering beyond atomicity). Data are therefore stored when a write is submitted, and read when a
//! read completes. The command is outstanding at both times, and no data need to be buffered while
//! the simulated drive works. The previous data of changes that are not yet durable are retained
//! (`writecliff_contents`), so that a power cut can undo the changes.
//!
//! | file | content |
//! |---|---|
//! | `clock.rs` | wall time, the drive's time, precise waiting |
//! | `request.rs` | requests and their results, the trait of those who wait for them |
//! | `served.rs` | the interface to transports: sessions and batches |
//! | `core.rs`, `core/` | the drive, its outstanding requests, and their durability |
//! | `power.rs`, `served/power_cuts.rs` | power cuts: plans and effects |
//! | `volatile.rs` | durable data, and losses of contents and mapping |
//! | `statistics.rs` | latency, lateness, counters: the live view |
//! | `socket.rs`, `input.rs`, `outbox.rs` | bytes to and from clients, without waiting for any |
//! | `listener.rs` | addresses, accepting connections, ending them |
//! | `trace.rs` | trace of requests |
//! | `state.rs` | saving and restoring drive and contents |
//! | `journal.rs` | the requests of a session, for the case that the server is killed |
//! | `life.rs` | SMART counters that the drive does not count |
//! | `nbd/` | the NBD protocol |
//! | `nvme/` | the drive behind an NVMe controller, NVMe/TCP |

pub mod clock;
mod core;
pub mod input;
mod journal;
pub mod life;
pub mod listener;
pub mod nbd;
pub mod nvme;
pub mod outbox;
mod power;
pub mod request;
pub mod served;
pub mod socket;
pub mod state;
pub mod statistics;
pub mod trace;
mod volatile;

pub use listener::{Address, Listener};
pub use outbox::Outbox;
pub use power::{CutPlan, CutWhen, PowerCut, Recovery};
pub use request::{Done, Failure, Refusal, Replies, Request, Tag};
pub use served::{
    LOGICAL_BLOCKS, PowerHistory, Served, ServedParts, Session, SessionBatch, Timing,
};
pub use socket::Socket;
pub use statistics::{Recent, Snapshot, StreamWrites};
pub use trace::{Trace, Traced};
