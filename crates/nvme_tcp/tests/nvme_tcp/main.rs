//! Tests of the transport with a test host that writes and parses PDUs.

mod handshake;
mod host;
mod hostile;
mod transfer;
