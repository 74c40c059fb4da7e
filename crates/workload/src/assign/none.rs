//! One stream for all: the drive of a host that says nothing.

use super::{Assigner, Piece};
use crate::trace::BlockRequest;

pub struct NoStreams;

impl Assigner for NoStreams {
    fn write(&mut self, request: &BlockRequest, _: u32, pieces: &mut Vec<Piece>) {
        pieces.push(Piece { count: request.count, stream: 0 });
    }
}
