//! Interface between host and drive, common to all types of drives.

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
