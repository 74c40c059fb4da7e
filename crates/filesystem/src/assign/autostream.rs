//! AutoStream's two schemes: sequentiality, frequency and recency ([`Sfr`]), and [`MultiQueue`].
//! Both schemes store statistics of fixed-size chunks of the address space.

use std::collections::BTreeMap;

use super::{Assigner, Piece};
use crate::BlockRequest;

/// Returns the number of chunks of `size` blocks that cover a drive of `blocks` blocks.
fn chunks(blocks: u32, size: u32) -> usize {
    blocks.div_ceil(size) as usize
}

/// Splits a request at chunk boundaries into chunk, first block and block count.
fn split(block: u32, count: u32, size: u32) -> impl Iterator<Item = (usize, u32, u32)> {
    let end = block + count;
    let mut next = block;
    std::iter::from_fn(move || {
        (next < end).then(|| {
            let first = next;
            let stop = (first - first % size).saturating_add(size).min(end);
            next = stop;
            ((first / size) as usize, first, stop - first)
        })
    })
}

/// SFR chunk size: 2 MiB.
const SFR_CHUNK_BLOCKS: u32 = 512;
/// Decay period: 64 MiB written.
const DECAY_BLOCKS: u32 = 16_384;

/// AutoStream SFR: sequentiality, frequency, recency (Yang, Pandurangan, Choi, Balakrishnan:
/// "AutoStream: automatic stream management for multi-streamed SSDs", SYSTOR 2017).
///
/// A table stores a write count for each chunk. When a chunk is written, its count is first divided
/// by 2^n and then incremented, where n is the number of whole decay periods since the chunk's last
/// write. The stream number is the logarithm of the count, rounded down. A write that starts where
/// the previous write ended takes the stream of the previous write. Any other write takes the
/// stream from the table before the write is counted.
///
/// The text of the paper was not available to us. The implementation follows the claims of the
/// authors' patent (US 10656838): sequential writes retain the stream, the recency weight depends
/// on the time since the last access and the decay period, and the table is updated after the
/// stream is chosen. The implementation also follows open reimplementations: the simulator by
/// SepBIT's authors (github.com/fallfish/sepbit, `trace_replay`: 2 MiB, 64 MiB written, ln) and two
/// in other systems (both 2 MiB; 30 s with log10, and 10 s). Chunk size, decay period and logarithm
/// base are those of the first reimplementation, which also measures time in blocks written. The
/// sources disagree on the period, the logarithm base and whether the division precedes the
/// increment. The variant used in the paper could not be verified.
pub struct Sfr {
    streams: u16,
    chunks: Vec<CountedChunk>,
    next: u32,
    last: u16,
}

#[derive(Clone, Copy, Default)]
struct CountedChunk {
    count: u32,
    clock: u32,
}

impl Sfr {
    pub(crate) fn new(blocks: u32, streams: u16) -> Self {
        let chunks = vec![CountedChunk::default(); chunks(blocks, SFR_CHUNK_BLOCKS)];
        Self { streams, chunks, next: u32::MAX, last: 0 }
    }
}

impl CountedChunk {
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
        for (number, first, count) in split(request.block, request.count, SFR_CHUNK_BLOCKS) {
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

/// Chunk size of the multi-queue scheme: 1 MiB.
const CHUNK_BLOCKS: u32 = 256;
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Default)]
struct Chunk {
    writes: u32,
    queue: u16,
    /// Position in the queue; 0 for a chunk that was never written.
    position: u64,
    last: u32,
    expires: u32,
}

/// AutoStream multi-queue (Yang et al., SYSTOR 2017; the queues follow Zhou, Philbin, Li: "The
/// multi-queue replacement algorithm", USENIX ATC 2001).
///
/// Time is measured in chunk accesses. A chunk that has been written 2^k times is in queue k and
/// moves to the tail of the queue after each write; its next write goes to stream k. A chunk
/// expires when it has not been written for one lifetime. The lifetime is the time between the last
/// two writes to the hottest chunk, updated whenever a chunk exceeds the highest write count. Every
/// write also checks the head of each queue. An expired head moves to the tail of the next lower
/// queue and gets a new expiry time. It retains its write count, so its next write promotes it
/// again. If it was the hottest, the next chunk in its queue becomes the hottest.
///
/// The text of the paper was not available to us. The implementation follows three other sources.
/// The first is the article on multi-queue replacement (queue by log2 of the count, expiry, one
/// demotion per queue and access). The second is the claims of the authors' patent (US 10656838:
/// the stream is chosen before the chunk is promoted). The third is two open reimplementations, one
/// of them in the simulator by SepBIT's authors (github.com/fallfish/sepbit, `trace_replay`: 1 MiB
/// chunks, as here; the other uses 2 MiB). The reimplementations use ln and log10 instead of log2;
/// the base used in the paper could not be verified.
pub struct MultiQueue {
    chunks: Vec<Chunk>,
    /// Chunks of each queue, by position.
    queues: Vec<BTreeMap<u64, u32>>,
    appended: u64,
    hottest: u32,
    /// Write count of the hottest chunk.
    most: u32,
    /// Number of chunk writes so far, including repeated writes to the same chunk.
    clock: u32,
    lifetime: u32,
}

impl MultiQueue {
    pub(crate) fn new(blocks: u32, streams: u16) -> Self {
        Self {
            chunks: vec![Chunk::default(); chunks(blocks, CHUNK_BLOCKS)],
            queues: vec![BTreeMap::new(); usize::from(streams)],
            appended: 0,
            hottest: NONE,
            most: 0,
            clock: 0,
            lifetime: 0,
        }
    }

    /// Moves a chunk from its queue, if any, to the tail of `queue`.
    fn append(&mut self, number: u32, queue: u16) {
        let chunk = &mut self.chunks[number as usize];
        let before = self.queues[usize::from(chunk.queue)].remove(&chunk.position);
        debug_assert_eq!(before.unwrap_or(NONE), if chunk.position > 0 { number } else { NONE });
        self.appended += 1;
        (chunk.queue, chunk.position) = (queue, self.appended);
        chunk.expires = self.clock.saturating_add(self.lifetime);
        self.queues[usize::from(queue)].insert(self.appended, number);
    }

    fn demote(&mut self) {
        for queue in (1..self.queues.len() as u16).rev() {
            let mut chunks = self.queues[usize::from(queue)].values().copied();
            let Some(head) = chunks.next() else { continue };
            if self.chunks[head as usize].expires >= self.clock {
                continue;
            }
            if head == self.hottest
                && let Some(behind) = chunks.next()
            {
                (self.hottest, self.most) = (behind, self.chunks[behind as usize].writes);
            }
            self.append(head, queue - 1);
        }
    }

    /// Returns the chunk's current stream, then counts the write and requeues the chunk.
    fn touch(&mut self, number: u32) -> u16 {
        self.clock += 1;
        let last = self.queues.len() as u16 - 1;
        let chunk = &mut self.chunks[number as usize];
        let stream = chunk.queue;
        chunk.writes = chunk.writes.saturating_add(1);
        if chunk.writes > self.most {
            self.lifetime = self.clock - chunk.last;
            (self.hottest, self.most) = (number, chunk.writes);
        }
        chunk.last = self.clock;
        let queue = (chunk.writes.ilog2() as u16).min(last);
        self.append(number, queue);
        stream
    }
}

impl Assigner for MultiQueue {
    fn write(&mut self, request: &BlockRequest, _clock: u32, pieces: &mut Vec<Piece>) {
        for (number, _, count) in split(request.block, request.count, CHUNK_BLOCKS) {
            let stream = self.touch(number as u32);
            self.demote();
            pieces.push(Piece { count, stream });
        }
    }
}
