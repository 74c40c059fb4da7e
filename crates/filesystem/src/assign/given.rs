//! The scheme `rules`: uses the stream that each request of the trace carries, set by a user's
//! rules or by the write-lifetime hints of the traced program.
//!
//! A stream number that the drive does not support falls back to the default stream 0, as in NVMe
//! for streams that could not be opened (NVMe Base Specification, Streams Directive).

use super::{Assigner, Piece};
use crate::BlockRequest;

/// Passes the trace's own stream numbers through.
pub struct Given {
    streams: u16,
}

impl Given {
    pub fn new(streams: u16) -> Self {
        Self { streams }
    }
}

impl Assigner for Given {
    fn write(&mut self, request: &BlockRequest, _: u32, pieces: &mut Vec<Piece>) {
        let stream = if request.stream < self.streams { request.stream } else { 0 };
        pieces.push(Piece { count: request.count, stream });
    }
}
