//! The streams that the trace carries: a user's rules, or the hints of the program.
//!
//! A stream that the drive does not have is the default one, as NVMe has it for streams that could
//! not be opened (NVMe Base Specification, Streams Directive).

use super::{Assigner, Piece};
use crate::trace::BlockRequest;

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
