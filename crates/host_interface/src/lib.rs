//! Interface between host and drive, common to all types of drives.
//!
//! | file | content |
//! |---|---|
//! | `drive.rs` | the interface of a drive to its host |
//! | `cause.rs` | causes of latency |
//! | `command.rs` | commands, completions, the table of commands in flight |
//! | `content.rs` | content of writes: compressibility, duplicates |
//! | `link.rs`, `identity.rs` | parts that device files of all kinds share |
//! | `frontend.rs` | timing of submission queues, firmware and link |
//! | `placement.rs` | streams and FDP: parameters, status and commands |
//! | `event_loop.rs` | clock, events and commands in flight of simple drives |
//! | `barrier.rs` | service in order with a barrier between reads and writes |

pub mod barrier;
pub mod cause;
pub mod command;
pub mod content;
pub mod drive;
pub mod event_loop;
pub mod frontend;
pub mod identity;
pub mod link;
pub mod placement;

pub use barrier::Barrier;
pub use cause::{CAUSES, Cause, TimeByCause};
pub use command::{Arrival, Command, CommandTable, Completion, Operation, Status};
pub use content::Content;
pub use drive::{Drive, Meters};
pub use event_loop::EventLoop;
pub use frontend::Frontend;
pub use identity::Identity;
pub use link::{Duplex, LinkConfig};
