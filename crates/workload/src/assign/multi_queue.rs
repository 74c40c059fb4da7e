//! AutoStream multi-queue (Yang et al., SYSTOR 2017, algorithm 1; the queues are those of Zhou,
//! Philbin, Li: "The multi-queue replacement algorithm", USENIX ATC 2001).
//!
//! A chunk that has been written 2^k times is in queue k, and its writes go to stream k. A chunk
//! that has not been written for the lifetime is demoted by one queue; the lifetime is the time
//! between the last two writes to the hottest chunk. Queues are in order of expiry, and with every
//! write the head of each is looked at.

use super::chunks::{chunks, split};
use super::{Assigner, Piece};
use crate::trace::BlockRequest;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Chunk {
    writes: u32,
    queue: u16,
    queued: bool,
    last: u32,
    expires: u32,
    before: u32,
    after: u32,
}

#[derive(Clone, Copy)]
struct Queue {
    head: u32,
    tail: u32,
}

pub struct MultiQueue {
    chunks: Vec<Chunk>,
    queues: Vec<Queue>,
    hottest: u32,
    /// Blocks written.
    lifetime: u32,
}

impl MultiQueue {
    pub fn new(blocks: u32, streams: u16) -> Self {
        let chunk = Chunk {
            writes: 0,
            queue: 0,
            queued: false,
            last: 0,
            expires: 0,
            before: NONE,
            after: NONE,
        };
        Self {
            chunks: vec![chunk; chunks(blocks)],
            queues: vec![Queue { head: NONE, tail: NONE }; usize::from(streams)],
            hottest: 0,
            lifetime: blocks,
        }
    }

    fn unlink(&mut self, number: u32) {
        let Chunk { queue, before, after, .. } = self.chunks[number as usize];
        let queue = &mut self.queues[usize::from(queue)];
        match before {
            NONE => queue.head = after,
            _ => self.chunks[before as usize].after = after,
        }
        match after {
            NONE => queue.tail = before,
            _ => self.chunks[after as usize].before = before,
        }
        self.chunks[number as usize].queued = false;
    }

    fn append(&mut self, number: u32, queue: u16, clock: u32) {
        let list = &mut self.queues[usize::from(queue)];
        let before = std::mem::replace(&mut list.tail, number);
        match before {
            NONE => list.head = number,
            _ => self.chunks[before as usize].after = number,
        }
        let chunk = &mut self.chunks[number as usize];
        (chunk.queue, chunk.queued, chunk.before, chunk.after) = (queue, true, before, NONE);
        chunk.expires = clock.saturating_add(self.lifetime);
    }

    /// Demote the heads of queues that have expired.
    fn demote(&mut self, clock: u32) {
        for queue in 1..self.queues.len() as u16 {
            let head = self.queues[usize::from(queue)].head;
            if head == NONE || self.chunks[head as usize].expires >= clock {
                continue;
            }
            self.unlink(head);
            self.chunks[head as usize].writes = 1 << (queue - 1).min(30);
            self.append(head, queue - 1, clock);
        }
    }

    fn touch(&mut self, number: u32, clock: u32) -> u16 {
        if self.chunks[number as usize].queued {
            self.unlink(number);
        }
        let most = self.queues.len() as u16 - 1;
        let hottest = self.chunks[self.hottest as usize].writes;
        let chunk = &mut self.chunks[number as usize];
        chunk.writes = chunk.writes.saturating_add(1);
        let queue = (chunk.writes.ilog2() as u16).min(most);
        if chunk.writes >= hottest {
            if chunk.writes > 1 && clock > chunk.last {
                self.lifetime = clock - chunk.last;
            }
            self.hottest = number;
        }
        chunk.last = clock;
        self.append(number, queue, clock);
        queue
    }
}

impl Assigner for MultiQueue {
    fn write(&mut self, request: &BlockRequest, clock: u32, pieces: &mut Vec<Piece>) {
        for (number, _, count) in split(request.block, request.count) {
            let stream = self.touch(number as u32, clock);
            self.demote(clock);
            pieces.push(Piece { count, stream });
        }
    }
}
