//! NVMe over TCP protocol (NVM Express TCP Transport Specification 1.1), which converts bytes from
//! a host into commands and completions into bytes for the host. The crate uses no sockets and no
//! threads, so the connection owner decides how to wait, and a test can act as the host.
//!
//! | file | content |
//! |---|---|
//! | `pdu.rs` | the layout of PDUs, digests |
//! | `fault.rs` | errors that end a connection |
//! | `handshake.rs` | settings negotiated at the start of a connection |
//! | `receiver.rs` | from bytes to commands: capsules, data in them, requested data |
//! | `sgl.rs` | where a command's data are |
//! | `sender.rs` | from completions and data to bytes |
//! | `host.rs` | the host's side, for clients that measure and for tests |
//!
//! One connection carries one queue. The owner passes received bytes to [`Receiver::receive`],
//! sends the bytes of [`Received::Send`], executes commands, and encodes completions with
//! [`Sender`]. The first command is Connect. [`Receiver::connected`] and [`Sender::connected`] then
//! set the queue of both halves.
//!
//! [`Limits`] limits the memory that a peer can make a connection use: requested data, and one
//! capsule per queue entry.

mod fault;
mod handshake;
pub mod host;
mod pdu;
mod receiver;
mod sender;
mod sgl;

pub use fault::{Fatal, Fault};
pub use handshake::Settings;
pub use receiver::{Command, Limits, Received, Receiver};
pub use sender::Sender;
