//! Server side of the NBD protocol: fixed newstyle handshake, structured replies.
//!
//! The implementation follows the NBD project's protocol description (`doc/proto.md`). The drive
//! has one additional export for each of its streams because NBD has no stream field. TLS is not
//! offered. The memory of a connection is limited: an input buffer, an output buffer and a few
//! words for each of [`REQUESTS_MAX`] requests.

mod handshake;
pub mod protocol;
mod transmission;

use std::sync::Arc;

use crate::input::Input;
use crate::outbox::Outbox;
use crate::served::Served;

pub use transmission::REQUESTS_MAX;

/// Serves one client; see [`crate::listener::Connection`].
// The connection owns its arguments because its thread ends with it.
#[expect(clippy::needless_pass_by_value)]
pub fn connection(outbox: Arc<Outbox>, served: Served) {
    let mut input = Input::default();
    // An error also ends the connection.
    if let Ok(Some(agreed)) = handshake::handshake(&outbox, &mut input, &served) {
        let _ = transmission::transmit(&outbox, input, &served, agreed);
    }
}
