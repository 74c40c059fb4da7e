//! NVMe over TCP protocol (NVM Express TCP Transport Specification 1.1), as an engine without I/O:
//! it parses commands from the host's byte stream, and encodes completions for the host. It uses no
//! sockets or threads: the connection's owner decides how to wait, and a test can be the host.
//!
//! One connection carries one queue. The owner passes received bytes to [`Receiver::receive`],
//! sends the bytes of [`Received::Send`], executes commands, and encodes completions with
//! [`Sender`]. The first command is Connect. [`Receiver::connected`] and [`Sender::connected`] then
//! set the queue of both halves.
//!
//! [`Limits`] limits the memory of a connection: requested data, and a capsule per queue entry.

mod fault;
pub mod host;
mod pdu;
mod receiver;
mod sender;
mod sgl;

pub use fault::{Fatal, Fault};
pub use pdu::Settings;
pub use receiver::{Command, Limits, Received, Receiver};
pub use sender::Sender;
