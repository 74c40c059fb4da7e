//! The scheme `none`: every write goes to the default stream, as from a host without streams.

use super::{Assigner, Piece};
use crate::BlockRequest;

/// Assigns stream 0 to every write.
pub struct NoStreams;

impl Assigner for NoStreams {
    fn write(&mut self, request: &BlockRequest, _: u32, pieces: &mut Vec<Piece>) {
        pieces.push(Piece { count: request.count, stream: 0 });
    }
}
