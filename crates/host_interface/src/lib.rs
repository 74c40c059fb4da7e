//! Where host and drive meet, whatever is behind: flash or a disk.
//!
//! | file | owns |
//! |---|---|
//! | `command.rs` | commands, completions, the table of those in flight |
//! | `content.rs` | what a write stores: compressibility, duplicates |
//! | `link.rs`, `identity.rs` | what device files of all kinds have in common |
//! | `frontend.rs` | submission queues, firmware, link: commands in time |

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
