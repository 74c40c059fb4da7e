//! Host-side model of a log with garbage collection. The model tracks only which segment holds each
//! block, so that a scheme can estimate lifespans without observing the drive's garbage collection.
//!
//! The policy is the policy of SepBIT's authors. Garbage collection starts when more than 15 % of
//! all blocks in the log are invalid. Garbage collection selects the sealed segment with the
//! highest cost-benefit score g × age / (1 − g), where g is the segment's fraction of invalid
//! blocks and age the time since the segment was sealed. Segments are 512 MiB, or 1/256 of the
//! capacity for drives below 128 GiB; the authors' volumes have 10 GiB to 1 TiB.

pub(super) const CLASSES: usize = 6;
const INVALID_SHARE: f64 = 0.15;
/// Segment size: 512 MiB.
const SEGMENT_BLOCKS: u32 = 131_072;
const SEGMENTS_LEAST: u32 = 256;
/// Lower bound of the valid fraction in the score: of invalid segments, the oldest comes first.
const NEARLY_NONE: f64 = 1e-9;
const NONE: u32 = u32::MAX;

#[derive(Clone, Debug, Default)]
pub(super) struct Segment {
    number: u32,
    pub class: usize,
    /// Clock value at the segment's first write.
    pub opened: u32,
    sealed: u32,
    valid: u32,
    /// Blocks in write order, including invalid blocks.
    pub blocks: Vec<u32>,
}

pub(super) struct Shadow {
    size: usize,
    /// Segment that holds each block's valid data, or `NONE`.
    segment_of: Vec<u32>,
    /// Segments by number; free segments have no blocks.
    segments: Vec<Segment>,
    free: Vec<u32>,
    open: [u32; CLASSES],
    valid: u64,
    stored: u64,
}

impl Shadow {
    pub(super) fn new(blocks: u32) -> Self {
        let size = (blocks / SEGMENTS_LEAST).clamp(1, SEGMENT_BLOCKS) as usize;
        Self {
            size,
            segment_of: vec![NONE; blocks as usize],
            segments: Vec::new(),
            free: Vec::new(),
            open: [NONE; CLASSES],
            valid: 0,
            stored: 0,
        }
    }

    /// Appends a block to the open segment of a class and invalidates the block's old data, if any.
    pub(super) fn write(&mut self, block: u32, class: usize, clock: u32) {
        self.invalidate(block);
        if self.open[class] == NONE {
            let number = self.free.pop().unwrap_or(self.segments.len() as u32);
            if number as usize == self.segments.len() {
                self.segments.push(Segment::default());
            }
            let segment = &mut self.segments[number as usize];
            (segment.number, segment.class, segment.opened) = (number, class, clock);
            (segment.sealed, segment.valid) = (NONE, 0);
            self.open[class] = number;
        }
        let number = self.open[class];
        let segment = &mut self.segments[number as usize];
        debug_assert!(segment.blocks.len() < self.size, "a sealed segment is open");
        segment.blocks.push(block);
        segment.valid += 1;
        self.segment_of[block as usize] = number;
        self.valid += 1;
        self.stored += 1;
        debug_assert!(self.valid <= self.stored && segment.valid as usize <= segment.blocks.len());
        if segment.blocks.len() == self.size {
            segment.sealed = clock;
            self.open[class] = NONE;
        }
    }

    pub(super) fn invalidate(&mut self, block: u32) {
        let number = std::mem::replace(&mut self.segment_of[block as usize], NONE);
        if number != NONE {
            debug_assert!(self.segments[number as usize].valid > 0 && self.valid > 0);
            self.segments[number as usize].valid -= 1;
            self.valid -= 1;
        }
    }

    /// Returns `true` if `victim`, the segment being collected, holds valid data of the block.
    pub(super) fn holds(&self, block: u32, victim: &Segment) -> bool {
        self.segment_of[block as usize] == victim.number
    }

    /// Removes and returns the segment to be garbage-collected now, if any. The caller rewrites the
    /// segment's valid blocks and then calls `erase`.
    pub(super) fn victim(&mut self, clock: u32) -> Option<Segment> {
        let invalid = (self.stored - self.valid) as f64;
        if invalid <= INVALID_SHARE * self.stored as f64 {
            return None;
        }
        let sealed = self.segments.iter().filter(|s| s.sealed != NONE && !s.blocks.is_empty());
        let benefit = |segment: &Segment| {
            let valid = f64::from(segment.valid) / self.size as f64;
            (1.0 - valid) * f64::from(clock - segment.sealed) / valid.max(NEARLY_NONE)
        };
        let best =
            sealed.filter(|s| (s.valid as usize) < self.size).map(|s| (benefit(s), s.number));
        // Ties are resolved in favour of the lowest segment number.
        let (_, number) = best.reduce(|a, b| if b.0 > a.0 { b } else { a })?;
        let whole = &mut self.segments[number as usize];
        let blocks = std::mem::take(&mut whole.blocks);
        Some(Segment { blocks, ..whole.clone() })
    }

    /// Frees a victim whose valid blocks have been rewritten.
    pub(super) fn erase(&mut self, mut victim: Segment) {
        debug_assert_eq!(self.segments[victim.number as usize].valid, 0, "valid blocks were left");
        self.stored -= victim.blocks.len() as u64;
        victim.blocks.clear();
        self.free.push(victim.number);
        // Retain the allocation because the segment will be used again.
        self.segments[victim.number as usize].blocks = victim.blocks;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a log with segments of 4 blocks.
    fn log() -> Shadow {
        Shadow::new(1024)
    }

    #[test]
    fn gc_begins_above_15_percent_invalid_and_picks_the_best_cost_benefit() {
        let mut log = log();
        (0..16).for_each(|block| log.write(block, 1, block));
        assert!(log.victim(16).is_none());
        // At first, 2 of 18 blocks are invalid (11.1 %); later, 3 of 19 (15.8 %).
        log.write(4, 0, 16);
        log.write(5, 0, 17);
        assert!(log.victim(18).is_none());
        log.write(0, 0, 18);
        let victim = log.victim(19).unwrap();
        assert_eq!(
            (victim.class, victim.opened, victim.blocks.as_slice()),
            (1, 4, &[4, 5, 6, 7][..])
        );
        let valid: Vec<u32> =
            victim.blocks.iter().copied().filter(|&b| log.holds(b, &victim)).collect();
        assert_eq!(valid, [6, 7]);
        for block in valid {
            log.write(block, 3, 19);
        }
        log.erase(victim);
        assert!(log.victim(19).is_none());
    }

    #[test]
    fn trimmed_blocks_leave_their_segment() {
        let mut log = log();
        (0..8).for_each(|block| log.write(block, 0, block));
        (0..4).for_each(|block| log.invalidate(block));
        let victim = log.victim(9).unwrap();
        assert_eq!(victim.blocks, [0, 1, 2, 3]);
        assert!(!victim.blocks.iter().any(|&block| log.holds(block, &victim)));
        log.erase(victim);
        assert_eq!((log.stored, log.valid), (4, 4));
    }
}
