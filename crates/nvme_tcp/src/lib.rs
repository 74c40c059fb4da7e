//! NVMe over TCP as a protocol (NVM Express TCP Transport Specification 1.1): the bytes that a host
//! sends become commands, and completions become bytes for the host. It uses no sockets and no
//! threads, so that its owner decides how to wait, and a test can be the host.
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
//! One connection is one queue. Its owner passes received bytes to [`Receiver::receive`], sends the
//! bytes of [`Received::Send`], executes commands, and encodes completions with [`Sender`]. The
//! first command is Connect; [`Receiver::connected`] and [`Sender::connected`] then set the queue
//! of both halves.
//!
//! [`Limits`] bound the memory that a peer can make a connection hold: requested data, and a
//! capsule for each entry of its queue.

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
