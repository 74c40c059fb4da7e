//! The NBD protocol, server side first: fixed newstyle handshake, structured replies.
//!
//! Source: the protocol description of the NBD project (`doc/proto.md`). One drive, exported once
//! for each of its streams, because NBD has no field for streams. TLS is not offered. A client
//! cannot make the server hold more than a buffer of input, a buffer of output and a few words for
//! each of [`REQUESTS_MAX`] requests.
//!
//! | file | content |
//! |---|---|
//! | `protocol.rs` | numbers and layouts |
//! | `handshake.rs` | options, until the transmission begins |
//! | `transmission.rs` | requests and replies |

mod handshake;
pub mod protocol;
mod transmission;

use std::sync::Arc;

use crate::input::Input;
use crate::outbox::Outbox;
use crate::served::Served;

pub use transmission::REQUESTS_MAX;

/// Serves one client; a [`crate::listener::Connection`].
// Its thread ends with it, so it takes what it needs.
#[expect(clippy::needless_pass_by_value)]
pub fn connection(outbox: Arc<Outbox>, served: Served) {
    let mut input = Input::default();
    // An error is the end of the connection, and the client knows why.
    if let Ok(Some(agreed)) = handshake::handshake(&outbox, &mut input, &served) {
        let _ = transmission::transmit(&outbox, input, &served, agreed);
    }
}
