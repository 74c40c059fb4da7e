//! Free space of the drive: extents of free blocks, given out next-fit.
//!
//! A file that grows gets the blocks behind its last one while they are free. A new extent begins
//! at the next multiple of [`ROOM`] that has that much space behind it, so that files that grow at
//! the same time do not cut each other into single blocks (what file systems reach by delayed and
//! speculative allocation). All choices depend on the free space and the cursor alone.

use std::collections::BTreeMap;
use std::ops::Bound;

/// Blocks kept together where the free space allows: 1 MiB.
const ROOM: u32 = 256;
/// Free extents looked at for one with room; then the nearest is taken as it is.
const SEARCH_MAX: usize = 64;

/// Consecutive blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub start: u32,
    pub count: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Space {
    /// End and length of every free extent; no two touch. By the end, as a file that grows takes
    /// from the front of its extent, which then stays where it is in the tree.
    free: BTreeMap<u32, u32>,
    free_blocks: u64,
    cursor: u32,
    /// Blocks are counted only: all that is given out is where it is wanted, or at 0.
    counted: bool,
}

impl Space {
    pub(super) fn new(blocks: u32) -> Self {
        let mut free = BTreeMap::new();
        if blocks > 0 {
            free.insert(blocks, blocks);
        }
        Self { free, free_blocks: u64::from(blocks), cursor: 0, counted: false }
    }

    /// A drive without places, to learn how much is needed.
    pub(super) fn counted(blocks: u32) -> Self {
        let free = BTreeMap::new();
        Self { free, free_blocks: u64::from(blocks), cursor: 0, counted: true }
    }

    #[cfg(test)]
    pub(super) fn free_blocks(&self) -> u64 {
        self.free_blocks
    }

    /// Up to `want` consecutive blocks, at `goal` if that is free; `None` if nothing is.
    pub(super) fn allocate(&mut self, want: u32, goal: Option<u32>) -> Option<Run> {
        if self.counted {
            let count = u64::from(want).min(self.free_blocks) as u32;
            self.free_blocks -= u64::from(count);
            return (count > 0).then_some(Run { start: goal.unwrap_or(0), count });
        }
        if let Some(run) = goal.and_then(|goal| self.take_at(goal, want)) {
            return Some(run);
        }
        let start = self.place(want)?;
        let run = self.take_at(start, want)?;
        self.cursor = (run.start + run.count).checked_next_multiple_of(ROOM).unwrap_or(0);
        Some(run)
    }

    /// Where the next extent begins: from the cursor on, then from the beginning.
    fn place(&self, want: u32) -> Option<u32> {
        let beyond = (Bound::Excluded(self.cursor), Bound::Unbounded);
        let extents = |(&end, &count): (&u32, &u32)| (end - count, end);
        let ahead = self.free.range(beyond).map(extents);
        let ahead = ahead.map(|(start, end)| (start.max(self.cursor), end));
        // An extent around the cursor counts as two.
        let behind = self.free.iter().map(extents);
        let behind = behind.take_while(|&(start, _)| start < self.cursor);
        let mut nearest = None;
        for (start, end) in ahead.chain(behind).take(SEARCH_MAX) {
            nearest = nearest.or(Some(start));
            let aligned = start.checked_next_multiple_of(ROOM).unwrap_or(u32::MAX);
            if aligned < end && end - aligned >= want.min(ROOM) {
                return Some(aligned);
            }
        }
        nearest
    }

    fn take_at(&mut self, at: u32, want: u32) -> Option<Run> {
        let beyond = (Bound::Excluded(at), Bound::Unbounded);
        let (&end, length) = self.free.range_mut(beyond).next()?;
        let start = end - *length;
        if start > at {
            return None;
        }
        let count = want.min(end - at);
        if at + count < end {
            *length = end - at - count;
        } else {
            self.free.remove(&end);
        }
        if start < at {
            self.free.insert(at, at - start);
        }
        self.free_blocks -= u64::from(count);
        Some(Run { start: at, count })
    }

    /// Take blocks back that were given out.
    pub(super) fn release(&mut self, run: Run) {
        if run.count == 0 {
            return;
        }
        self.free_blocks += u64::from(run.count);
        if self.counted {
            return;
        }
        let (mut start, end) = (run.start, run.start + run.count);
        if let Some(length) = self.free.remove(&start) {
            start -= length;
        }
        let beyond = (Bound::Excluded(end), Bound::Unbounded);
        match self.free.range_mut(beyond).next() {
            Some((&after, length)) if after - *length <= end => {
                debug_assert!(after - *length == end, "blocks freed twice");
                *length = after - start;
            }
            _ => {
                self.free.insert(end, end - start);
            }
        }
    }
}
