//! The interface between host and drive, common to SSDs and hard disks.
//!
//! | file | content |
//! |---|---|
//! | `command.rs` | commands, completions, the table of those in flight |
//! | `content.rs` | content of writes: compressibility, duplicates |
//! | `link.rs`, `identity.rs` | parts that device files of all kinds share |
//! | `frontend.rs` | timing of submission queues, firmware and link |

pub mod command;
pub mod content;
pub mod frontend;
pub mod identity;
pub mod link;

pub use command::{Command, CommandTable, Completion, Operation};
pub use content::Content;
pub use frontend::Frontend;
pub use identity::Identity;
pub use link::{Duplex, LinkConfig};
