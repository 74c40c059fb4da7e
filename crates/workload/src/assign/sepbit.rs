//! SepBIT: separation by the inferred block invalidation time (Wang, Li, Lu, Lee, Wang, Liu:
//! "Separating data via block invalidation time inference for write amplification reduction in
//! log-structured storage", FAST 2022).
//!
//! A write that invalidates data younger than the bound is taken to be short-lived itself (class
//! 1); any other, new writes included, is long-lived (class 2). The bound is the mean lifespan of
//! the last 16 collected segments of class 1, infinite at first.
//!
//! What cannot be done here: classes 3 to 6 are rewrites by collection, separated by where they
//! came from and by age. In a multi-stream drive collection belongs to the drive, which knows
//! streams but no ages; so user writes take two streams however many there are, and what is
//! collected goes where the drive's placement policy puts it. The host does not see collection
//! either: segments of class 1 are kept here as a shadow of the drive's, of 1/256 of it, and count
//! as collected once nine tenths of their blocks are invalid (with greedy selection, what a log of
//! short-lived data collects).

use std::collections::VecDeque;

use super::{Assigner, Piece, push_block};
use crate::trace::BlockRequest;

/// Segments that the bound is the mean of (the paper's n_c).
const SEGMENTS_IN_MEAN: usize = 16;
/// Segments in a drive.
const SEGMENTS_IN_DRIVE: u32 = 256;
const INVALID_WHEN_COLLECTED: f64 = 0.9;
const SHORT: u16 = 1;
const LONG: u16 = 0;
const NEVER: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Segment {
    opened: u32,
    invalid: u32,
}

pub struct SepBit {
    streams: u16,
    /// Clock of the last write of each block.
    written: Vec<u32>,
    /// Segment of class 1 that holds it, if any.
    segment: Vec<u32>,
    segments: Vec<Segment>,
    filled: u32,
    segment_blocks: u32,
    lifespans: VecDeque<u32>,
    bound: f64,
}

impl SepBit {
    pub fn new(blocks: u32, streams: u16) -> Self {
        Self {
            streams,
            written: vec![NEVER; blocks as usize],
            segment: vec![NEVER; blocks as usize],
            segments: Vec::new(),
            filled: 0,
            segment_blocks: (blocks / SEGMENTS_IN_DRIVE).max(1),
            lifespans: VecDeque::new(),
            bound: f64::INFINITY,
        }
    }

    fn invalidate(&mut self, block: usize, clock: u32) {
        let number = std::mem::replace(&mut self.segment[block], NEVER);
        if number == NEVER {
            return;
        }
        let segment = &mut self.segments[number as usize];
        segment.invalid += 1;
        let enough = (f64::from(self.segment_blocks) * INVALID_WHEN_COLLECTED).ceil() as u32;
        if segment.invalid == enough {
            if self.lifespans.len() == SEGMENTS_IN_MEAN {
                self.lifespans.pop_front();
            }
            self.lifespans.push_back(clock - segment.opened);
            if self.lifespans.len() == SEGMENTS_IN_MEAN {
                let sum: f64 = self.lifespans.iter().map(|&span| f64::from(span)).sum();
                self.bound = sum / SEGMENTS_IN_MEAN as f64;
            }
        }
    }

    fn class(&mut self, block: usize, clock: u32) -> u16 {
        let before = std::mem::replace(&mut self.written[block], clock);
        let short = before != NEVER && f64::from(clock - before) < self.bound;
        self.invalidate(block, clock);
        if !short {
            return LONG;
        }
        if self.segments.is_empty() || self.filled == self.segment_blocks {
            self.segments.push(Segment { opened: clock, invalid: 0 });
            self.filled = 0;
        }
        self.filled += 1;
        self.segment[block] = self.segments.len() as u32 - 1;
        SHORT
    }
}

impl Assigner for SepBit {
    fn write(&mut self, request: &BlockRequest, clock: u32, pieces: &mut Vec<Piece>) {
        let begin = pieces.len();
        for i in 0..request.count {
            let stream = self.class((request.block + i) as usize, clock + i);
            push_block(pieces, begin, stream.min(self.streams - 1));
        }
    }

    // The paper knows no TRIM. A trimmed block is invalid; when it is written again, the time since
    // its last write is what its lifetime is inferred from, as for any other block.
    fn trim(&mut self, request: &BlockRequest, clock: u32) {
        for block in request.block..request.block + request.count {
            self.invalidate(block as usize, clock);
        }
    }
}
