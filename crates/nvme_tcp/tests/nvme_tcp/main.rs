//! The transport from outside: a host of our own that makes and reads PDUs.

mod handshake;
mod host;
mod hostile;
mod transfer;
