//! SepBIT: separation by the inferred block invalidation time (Wang, Li, Lu, Lee, Wang, Liu:
//! "Separating data via block invalidation time inference for write amplification reduction in
//! log-structured storage", FAST 2022). Rules and parameters are those of the authors' code
//! (github.com/fallfish/sepbit: prototype and trace_replay).
//!
//! A write that invalidates data younger than the bound is short-lived (class 1); any other, new
//! data included, is long-lived (class 2). The bound is the mean lifespan, from their first write
//! to their collection, of 16 collected segments of class 1, one batch of 16 after the other, and
//! infinite at first. Rewrites by collection are class 3 if they come from class 1; else classes 4
//! to 6 by the age of the data, with limits at 4 and 16 times the bound.
//!
//! Time is blocks written by the host, as there. What differs here: the host gives streams to its
//! own writes only, so these are classes 1 and 2, two streams however many there are; what the
//! drive collects goes where its `gc_destination` puts it. The host sees no collection of the drive
//! either: the bound comes from the log in `shadow.rs`, where all six classes are kept. The
//! authors' queue of recent addresses, which saves them memory, also makes long-lived what was
//! written more than the volume's data ago; it is not needed here and left out. The paper knows no
//! TRIM: a trimmed block leaves its segment, and when it is written again, the time since its last
//! write is what its lifetime is inferred from, as for any other block.

use super::shadow::{CLASSES, Shadow};
use super::{Assigner, Piece, push_block};
use crate::trace::BlockRequest;

/// Segments that the bound is the mean of (the paper's n_c).
const SEGMENTS_IN_MEAN: u32 = 16;
/// Limits between the classes of old data, in bounds.
const AGES: [f64; 2] = [4.0, 16.0];
const SHORT: u16 = 1;
const LONG: u16 = 0;
const NEVER: u32 = u32::MAX;

/// Classes 1 to 6 of the paper, from 0.
const CLASS_1: usize = 0;
const CLASS_2: usize = 1;
const FROM_CLASS_1: usize = 2;

pub struct SepBit {
    streams: u16,
    /// Clock of the last write of each block.
    written: Vec<u32>,
    log: Shadow,
    bound: Bound,
}

/// The mean lifespan of segments of class 1.
struct Bound {
    blocks: f64,
    sum: u64,
    collected: u32,
}

impl Bound {
    fn collected(&mut self, lifespan: u32) {
        self.sum += u64::from(lifespan);
        self.collected += 1;
        if self.collected == SEGMENTS_IN_MEAN {
            self.blocks = self.sum as f64 / f64::from(SEGMENTS_IN_MEAN);
            (self.sum, self.collected) = (0, 0);
        }
    }

    /// Class of what is collected from a segment of class `from`.
    fn class(&self, from: usize, age: u32) -> usize {
        if from == CLASS_1 {
            return FROM_CLASS_1;
        }
        let limits = AGES.iter().take_while(|&&limit| f64::from(age) >= limit * self.blocks);
        (FROM_CLASS_1 + 1 + limits.count()).min(CLASSES - 1)
    }
}

impl SepBit {
    pub fn new(blocks: u32, streams: u16) -> Self {
        let bound = Bound { blocks: f64::INFINITY, sum: 0, collected: 0 };
        let written = vec![NEVER; blocks as usize];
        Self { streams, written, log: Shadow::new(blocks), bound }
    }

    fn write_block(&mut self, block: u32, clock: u32) -> u16 {
        let before = std::mem::replace(&mut self.written[block as usize], clock);
        let short = before != NEVER && f64::from(clock - before) < self.bound.blocks;
        let class = if short { CLASS_1 } else { CLASS_2 };
        self.log.write(block, class, clock);
        while let Some(victim) = self.log.victim(clock) {
            if victim.class == CLASS_1 {
                self.bound.collected(clock - victim.opened);
            }
            for &moved in &victim.blocks {
                if self.log.holds(moved, &victim) {
                    let age = clock - self.written[moved as usize];
                    self.log.write(moved, self.bound.class(victim.class, age), clock);
                }
            }
            self.log.erase(victim);
        }
        if short { SHORT } else { LONG }
    }
}

impl Assigner for SepBit {
    fn write(&mut self, request: &BlockRequest, clock: u32, pieces: &mut Vec<Piece>) {
        let begin = pieces.len();
        for i in 0..request.count {
            let stream = self.write_block(request.block + i, clock + i);
            push_block(pieces, begin, stream.min(self.streams - 1));
        }
    }

    fn trim(&mut self, request: &BlockRequest, _clock: u32) {
        for block in request.block..request.block + request.count {
            self.log.invalidate(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_the_mean_of_one_batch_after_the_other() {
        let mut bound = Bound { blocks: f64::INFINITY, sum: 0, collected: 0 };
        (0..15).for_each(|_| bound.collected(100));
        assert!(bound.blocks.is_infinite(), "15 segments say nothing yet");
        bound.collected(260);
        assert_eq!(bound.blocks as u32, 110);
        (0..15).for_each(|_| bound.collected(1000));
        assert_eq!(bound.blocks as u32, 110, "a new batch counts when it is whole");
        bound.collected(1000);
        assert_eq!(bound.blocks as u32, 1000);
    }

    #[test]
    fn collected_data_are_classed_by_where_they_come_from_and_by_age() {
        let bound = Bound { blocks: 100.0, sum: 0, collected: 0 };
        assert_eq!(bound.class(CLASS_1, 5000), 2);
        assert_eq!([0, 399, 400, 1599, 1600].map(|age| bound.class(CLASS_2, age)), [3, 3, 4, 4, 5]);
        assert_eq!(bound.class(5, 0), 3, "old classes too");
    }
}
