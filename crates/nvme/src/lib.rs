//! NVMe controller without a transport: it accepts submission queue entries with their data, and
//! returns completions or work for the drive. The controller uses no sockets, threads or clock.
//!
//! Sources: The controller implements NVM Express Base Specification 2.1, NVM Command Set
//! Specification 1.1, and TP4146 (Flexible Data Placement, part of Base 2.1). Section numbers refer
//! to these specifications.
//!
//! | file | content |
//! |---|---|
//! | `subsystem.rs` | the interface: connect, submit, complete, poll |
//! | `command.rs` | submission queue entries, work for the drive, completions |
//! | `drive.rs` | traits of the drive behind the controller |
//! | `error_log.rs` | the error log, which drives keep |
//! | `controller.rs`, `events.rs` | state of a controller, asynchronous events |
//! | `fabrics.rs` | Connect, properties |
//! | `admin.rs` | admin commands |
//! | `identify/`, `logs/`, `features/` | their commands |
//! | `format.rs`, `sanitize.rs`, `directives.rs` | their commands |
//! | `io.rs`, `io_management.rs` | commands of I/O queues |
//! | `page.rs`, `status.rs` | data structures as bytes, status codes |
//!
//! A transport connects a queue with `Subsystem::connect` and passes each command to
//! `Subsystem::submit`. It does the resulting `Work` (or has it done) and reports the outcome with
//! `Subsystem::complete`. `Subsystem::poll` returns the completions of event requests.

mod admin;
pub mod command;
mod controller;
mod directives;
pub mod drive;
pub mod error_log;
mod events;
pub mod fabrics;
mod features;
mod format;
mod identify;
mod io;
mod io_management;
mod logs;
mod page;
mod sanitize;
pub mod status;
pub mod subsystem;

pub use command::{Entry, Erase, Failure, Outcome, Placement, Reply, Request, Span, Ticket, Work};
pub use drive::{Drive, Health, Identity, PlacementInterface};
pub use error_log::{ErrorEntry, ErrorLog};
pub use fabrics::{Association, DISCOVERY_NQN};
pub use status::Status;
pub use subsystem::{Access, Address, Subsystem};
