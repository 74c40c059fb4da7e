//! NVMe controller without a transport: it accepts submission queue entries with their data, and
//! returns completions or work for the drive. The controller uses no sockets, threads or clock.
//!
//! Section numbers refer to the specifications that the controller implements: NVM Express Base
//! 2.1, NVM Command Set 1.1, and TP4146 (Flexible Data Placement, part of Base 2.1).
//!
//! A transport connects a queue with `Subsystem::connect`, and passes each command to
//! `Subsystem::submit`. The transport has the `Work` that this call returns done and then uses
//! `Ticket::success` or `Subsystem::fail`. `Subsystem::poll` completes event requests.

mod admin;
pub mod command;
mod controller;
mod directives;
pub mod drive;
mod erase;
pub mod error_log;
mod events;
pub mod fabrics;
mod fdp;
mod features;
mod identify;
mod io;
mod logs;
mod page;
pub mod status;
pub mod subsystem;

pub use command::{Entry, Outcome, Placement, Reply, Request, Span, Ticket, Work};
pub use drive::{Drive, Health, Identity, PlacementInterface};
pub use error_log::{ErrorEntry, ErrorLog};
pub use fabrics::{Association, DISCOVERY_NQN};
pub use status::Status;
pub use subsystem::{Access, Address, Subsystem};
