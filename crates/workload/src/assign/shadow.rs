//! A log with collection of its own, which a host-side scheme keeps of what it writes: only which
//! block lies in which segment.
//!
//! As SepBIT's authors have it: collection begins when more than 15 % of all blocks in the log are
//! invalid, and takes the sealed segment with the most benefit for its cost, g × age / (1 − g),
//! where g is its invalid share and age the time since it was sealed. Segments are 512 MiB, but
//! 1/256 of a drive that is smaller than 128 GiB: theirs are volumes of 10 GiB to 1 TiB.

pub(super) const CLASSES: usize = 6;
const INVALID_SHARE: f64 = 0.15;
/// 512 MiB.
const SEGMENT_BLOCKS: u32 = 131_072;
const SEGMENTS_LEAST: u32 = 256;
/// In place of no valid share: the oldest of segments without any goes first.
const NEARLY_NONE: f64 = 1e-9;
const NONE: u32 = u32::MAX;

#[derive(Clone, Debug, Default)]
pub(super) struct Segment {
    number: u32,
    pub class: usize,
    /// Clock of its first write.
    pub opened: u32,
    sealed: u32,
    valid: u32,
    /// In the order in which they were written, invalid ones too.
    pub blocks: Vec<u32>,
}

pub(super) struct Shadow {
    size: usize,
    /// Segment of each block's data.
    segment_of: Vec<u32>,
    /// By number; one that is free has no blocks.
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

    /// Append a block to the open segment of a class; its old data, if any, become invalid.
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
        segment.blocks.push(block);
        segment.valid += 1;
        self.segment_of[block as usize] = number;
        self.valid += 1;
        self.stored += 1;
        if segment.blocks.len() == self.size {
            segment.sealed = clock;
            self.open[class] = NONE;
        }
    }

    pub(super) fn invalidate(&mut self, block: u32) {
        let number = std::mem::replace(&mut self.segment_of[block as usize], NONE);
        if number != NONE {
            self.segments[number as usize].valid -= 1;
            self.valid -= 1;
        }
    }

    /// Whether a block's data are those in a segment that is being collected.
    pub(super) fn holds(&self, block: u32, victim: &Segment) -> bool {
        self.segment_of[block as usize] == victim.number
    }

    /// The segment to collect now, if any. It is taken out: move what is valid in it, then `erase`.
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
        // The lowest number among equals.
        let (_, number) = best.reduce(|a, b| if b.0 > a.0 { b } else { a })?;
        let whole = &mut self.segments[number as usize];
        let blocks = std::mem::take(&mut whole.blocks);
        Some(Segment { blocks, ..whole.clone() })
    }

    pub(super) fn erase(&mut self, mut victim: Segment) {
        debug_assert_eq!(self.segments[victim.number as usize].valid, 0, "valid blocks were left");
        self.stored -= victim.blocks.len() as u64;
        victim.blocks.clear();
        self.free.push(victim.number);
        // Its memory is used again.
        self.segments[victim.number as usize].blocks = victim.blocks;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments of 4 blocks.
    fn log() -> Shadow {
        Shadow::new(1024)
    }

    #[test]
    fn collection_begins_above_15_percent_and_takes_the_best_for_its_cost() {
        let mut log = log();
        (0..16).for_each(|block| log.write(block, 1, block));
        assert!(log.victim(16).is_none());
        // 2 of 18, then 3 of 19 are invalid: 11.1 and 15.8 %.
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
