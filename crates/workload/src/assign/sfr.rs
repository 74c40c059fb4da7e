//! AutoStream SFR: sequentiality, frequency, recency (Yang, Pandurangan, Choi, Balakrishnan:
//! "AutoStream: automatic stream management for multi-streamed SSDs", SYSTOR 2017, algorithm 2).
//!
//! For each chunk a count of its writes, halved for every decay period since the last one; the
//! stream is the logarithm of the count. A write that goes on where the last one ended is part of a
//! sequential stream and inherits its stream.
//!
//! Ours, where the paper leaves it to the user: chunks of 1 MiB; the decay period is one drive
//! write (the paper's is in seconds; data age by what is written). The base of the logarithm is 2.

use super::chunks::{chunks, split};
use super::{Assigner, Piece};
use crate::trace::BlockRequest;

pub struct Sfr {
    streams: u16,
    /// Blocks written in which a count is halved.
    decay: f64,
    chunks: Vec<Chunk>,
    /// Where the last write ended, and its stream.
    next: u32,
    last: u16,
}

#[derive(Clone, Copy, Default)]
struct Chunk {
    count: f32,
    clock: u32,
}

impl Sfr {
    pub fn new(blocks: u32, streams: u16) -> Self {
        let chunks = vec![Chunk::default(); chunks(blocks)];
        Self { streams, decay: f64::from(blocks), chunks, next: u32::MAX, last: 0 }
    }
}

impl Assigner for Sfr {
    fn write(&mut self, request: &BlockRequest, clock: u32, pieces: &mut Vec<Piece>) {
        for (number, first, count) in split(request.block, request.count) {
            let chunk = &mut self.chunks[number];
            let since = f64::from(clock - chunk.clock) / self.decay;
            chunk.count = (f64::from(chunk.count) * (-since).exp2()) as f32 + 1.0;
            chunk.clock = clock;
            if first != self.next {
                let class = chunk.count.log2().round().max(0.0) as u16;
                self.last = class.min(self.streams - 1);
            }
            self.next = first + count;
            pieces.push(Piece { count, stream: self.last });
        }
    }
}
