//! SepBIT: separates data by inferred block invalidation time (Wang, Li, Lu, Lee, Wang, Liu:
//! "Separating data via block invalidation time inference for write amplification reduction in
//! log-structured storage", FAST 2022). Rules and parameters follow the authors' code
//! (github.com/fallfish/sepbit: prototype and `trace_replay`).
//!
//! A write that invalidates data younger than the bound is considered short-lived (class 1). All
//! other writes, including new data, are long-lived (class 2). The bound is the mean lifespan of 16
//! garbage-collected class 1 segments, from their first write to their collection. The bound is
//! initially infinite and is recomputed after each batch of 16 segments. Data relocated by garbage
//! collection go to class 3 if they were in class 1. All other relocated data go to classes 4 to 6
//! by age, with limits at 4 and 16 times the bound.
//!
//! Time is measured in blocks written by the host, as in the authors' code. This implementation
//! differs from the authors' code in three ways. First, the host assigns streams only to its own
//! writes, so it uses classes 1 and 2, which are two streams regardless of how many the drive has.
//! The drive's `gc_destination` determines where relocated data go. Second, the host cannot observe
//! the drive's garbage collection, so the bound is computed from the simulated log in `shadow.rs`,
//! which stores all six classes. Third, this implementation omits the authors' queue of recent
//! addresses. The queue saves memory, which is not a concern here. The queue also classifies as
//! long-lived all data written longer ago than one volume's worth of writes. The paper does not
//! cover TRIM. Here, a trimmed block leaves its segment, and the next write to the block infers its
//! lifetime from the time since the block's last write, as for any other block.

use super::shadow::{CLASSES, Shadow};
use super::{Assigner, Piece, push_block};
use crate::BlockRequest;

/// Number of segments averaged for the bound (`n_c` in the paper).
const SEGMENTS_IN_MEAN: u32 = 16;
/// Age limits between the classes of relocated data, in multiples of the bound.
const AGES: [f64; 2] = [4.0, 16.0];
const SHORT: u16 = 1;
const LONG: u16 = 0;
const NEVER: u32 = u32::MAX;

/// The numbers 0 to 5 here are the paper's classes 1 to 6.
const CLASS_1: usize = 0;
const CLASS_2: usize = 1;
const FROM_CLASS_1: usize = 2;

/// SepBIT's classification of host writes.
pub struct SepBit {
    streams: u16,
    /// Clock of the last write of each block.
    written: Vec<u32>,
    log: Shadow,
    bound: Bound,
}

/// Mean lifespan of garbage-collected segments of class 1.
struct Bound {
    blocks: f64,
    sum: u64,
    segments: u32,
}

impl Bound {
    fn add(&mut self, lifespan: u32) {
        self.sum += u64::from(lifespan);
        self.segments += 1;
        if self.segments == SEGMENTS_IN_MEAN {
            self.blocks = self.sum as f64 / f64::from(SEGMENTS_IN_MEAN);
            (self.sum, self.segments) = (0, 0);
        }
    }

    /// Class of data relocated from a segment of class `from` at the given age.
    fn class(&self, from: usize, age: u32) -> usize {
        if from == CLASS_1 {
            return FROM_CLASS_1;
        }
        let limits = AGES.iter().take_while(|&&limit| f64::from(age) >= limit * self.blocks);
        (FROM_CLASS_1 + 1 + limits.count()).min(CLASSES - 1)
    }
}

impl SepBit {
    pub(crate) fn new(blocks: u32, streams: u16) -> Self {
        let bound = Bound { blocks: f64::INFINITY, sum: 0, segments: 0 };
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
                self.bound.add(clock - victim.opened);
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
    fn each_batch_of_16_segments_sets_the_bound_to_its_mean_lifespan() {
        let mut bound = Bound { blocks: f64::INFINITY, sum: 0, segments: 0 };
        (0..15).for_each(|_| bound.add(100));
        assert!(bound.blocks.is_infinite(), "15 segments are not a full batch");
        bound.add(260);
        assert_eq!(bound.blocks as u32, 110);
        (0..15).for_each(|_| bound.add(1000));
        assert_eq!(bound.blocks as u32, 110, "a new batch counts only when it is complete");
        bound.add(1000);
        assert_eq!(bound.blocks as u32, 1000);
    }

    #[test]
    fn relocated_data_are_classified_by_source_class_and_age() {
        let bound = Bound { blocks: 100.0, sum: 0, segments: 0 };
        assert_eq!(bound.class(CLASS_1, 5000), 2);
        assert_eq!([0, 399, 400, 1599, 1600].map(|age| bound.class(CLASS_2, age)), [3, 3, 4, 4, 5]);
        assert_eq!(bound.class(5, 0), 3, "also from the classes of old data");
    }
}
