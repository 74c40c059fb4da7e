//! AutoStream SFR: sequentiality, frequency, recency (Yang, Pandurangan, Choi, Balakrishnan:
//! "AutoStream: automatic stream management for multi-streamed SSDs", SYSTOR 2017).
//!
//! A table keeps a write count for each chunk. When a chunk is written, its count is first divided
//! by 2^n, where n is the number of whole decay periods since its last write, and then incremented.
//! The stream is the logarithm of the count, rounded down. A write that begins where the previous
//! one ended takes the previous write's stream; any other takes the stream from the table as it was
//! before the write was counted.
//!
//! We had no access to the text of the paper. The implementation follows the claims of its authors'
//! patent (US 10656838: sequential writes keep the stream, the recency weight depends on the time
//! since the last access and the decay period, the table is updated after the stream was chosen)
//! and open reimplementations: the simulator by SepBIT's authors (github.com/fallfish/sepbit,
//! trace_replay: 2 MiB, 64 MiB written, ln) and two in other systems (both 2 MiB; 30 s with log10,
//! and 10 s). Chunk size, decay period and logarithm base come from the first one because it also
//! counts time in blocks written. The sources disagree on the period, the base, and whether the
//! division comes before the increment; which variant the paper uses could not be verified.

use super::chunks::{chunks, split};
use super::{Assigner, Piece};
use crate::BlockRequest;

/// 2 MiB.
const CHUNK_BLOCKS: u32 = 512;
/// 64 MiB written.
const DECAY_BLOCKS: u32 = 16_384;

/// AutoStream's SFR scheme.
pub struct Sfr {
    streams: u16,
    chunks: Vec<Chunk>,
    /// First block after the previous write.
    next: u32,
    /// Stream of the previous write.
    last: u16,
}

#[derive(Clone, Copy, Default)]
struct Chunk {
    count: u32,
    clock: u32,
}

impl Sfr {
    pub fn new(blocks: u32, streams: u16) -> Self {
        let chunks = vec![Chunk::default(); chunks(blocks, CHUNK_BLOCKS)];
        Self { streams, chunks, next: u32::MAX, last: 0 }
    }
}

impl Chunk {
    fn stream(self, streams: u16) -> u16 {
        (f64::from(self.count.max(1)).ln() as u16).min(streams - 1)
    }

    fn count(&mut self, clock: u32) {
        let periods = (clock - self.clock) / DECAY_BLOCKS;
        self.count = self.count.checked_shr(periods).unwrap_or(0).saturating_add(1);
        self.clock = clock;
    }
}

impl Assigner for Sfr {
    fn write(&mut self, request: &BlockRequest, clock: u32, pieces: &mut Vec<Piece>) {
        for (number, first, count) in split(request.block, request.count, CHUNK_BLOCKS) {
            let chunk = &mut self.chunks[number];
            if first != self.next {
                self.last = chunk.stream(self.streams);
            }
            chunk.count(clock);
            self.next = first + count;
            pieces.push(Piece { count, stream: self.last });
        }
    }
}
