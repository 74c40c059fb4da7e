//! Free space of the drive: extents of free blocks, given out next-fit.
//!
//! A file that grows gets the blocks behind its last one while they are free. A new extent begins
//! at the next multiple of [`ROOM`] that has that much space behind it, so that files that grow at
//! the same time do not cut each other into single blocks (what file systems reach by delayed and
//! speculative allocation). All choices depend on the free space and the cursor alone.

use std::collections::BTreeMap;

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
    /// Start and length of every free extent; no two touch.
    free: BTreeMap<u32, u32>,
    free_blocks: u64,
    cursor: u32,
}

impl Space {
    pub(super) fn new(blocks: u32) -> Self {
        let mut free = BTreeMap::new();
        if blocks > 0 {
            free.insert(0, blocks);
        }
        Self { free, free_blocks: u64::from(blocks), cursor: 0 }
    }

    #[cfg(test)]
    pub(super) fn free_blocks(&self) -> u64 {
        self.free_blocks
    }

    /// Up to `want` consecutive blocks, at `goal` if that is free; `None` if nothing is.
    pub(super) fn allocate(&mut self, want: u32, goal: Option<u32>) -> Option<Run> {
        if let Some(run) = goal.and_then(|goal| self.take_at(goal, want)) {
            return Some(run);
        }
        let start = self.place(want)?;
        let run = self.take_at(start, want)?;
        self.cursor = (run.start + run.count).checked_next_multiple_of(ROOM).unwrap_or(0);
        Some(run)
    }

    /// Where the next extent begins.
    fn place(&self, want: u32) -> Option<u32> {
        let around = self.free.range(..self.cursor).next_back();
        let around = around.map(|(&start, &count)| (self.cursor, start + count));
        let around = around.filter(|(start, end)| start < end);
        let extents = |(&start, &count): (&u32, &u32)| (start, start + count);
        let ahead = self.free.range(self.cursor..).map(extents);
        let behind = self.free.range(..self.cursor).map(extents);
        let mut nearest = None;
        for (start, end) in around.into_iter().chain(ahead).chain(behind).take(SEARCH_MAX) {
            nearest = nearest.or(Some(start));
            let aligned = start.checked_next_multiple_of(ROOM).unwrap_or(u32::MAX);
            if aligned < end && end - aligned >= want.min(ROOM) {
                return Some(aligned);
            }
        }
        nearest
    }

    fn take_at(&mut self, at: u32, want: u32) -> Option<Run> {
        let (&start, &length) = self.free.range(..=at).next_back()?;
        let end = start + length;
        if end <= at {
            return None;
        }
        let count = want.min(end - at);
        if start == at {
            self.free.remove(&start);
        } else {
            self.free.insert(start, at - start);
        }
        if at + count < end {
            self.free.insert(at + count, end - at - count);
        }
        self.free_blocks -= u64::from(count);
        Some(Run { start: at, count })
    }

    /// Take blocks back that were given out.
    pub(super) fn release(&mut self, run: Run) {
        if run.count == 0 {
            return;
        }
        let (mut start, mut end) = (run.start, run.start + run.count);
        if let Some((&before, &length)) = self.free.range(..=start).next_back() {
            debug_assert!(before + length <= start, "blocks freed twice");
            if before + length == start {
                start = before;
            }
        }
        if let Some(length) = self.free.remove(&end) {
            end += length;
        }
        self.free.insert(start, end - start);
        self.free_blocks += u64::from(run.count);
    }
}
