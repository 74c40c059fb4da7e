//! Free-space allocator, which manages extents of free blocks and selects the blocks of each file.
//!
//! A growing file gets the blocks directly after its last block while these blocks are free. A new
//! extent starts at a multiple of [`ROOM`] with at least that much free space after it. Files that
//! grow concurrently therefore do not fragment each other into single blocks (file systems achieve
//! this by delayed and speculative allocation). The [`Allocator`] determines where the search
//! starts. All choices depend only on the free space, the cursor and the folder.

use std::collections::BTreeMap;
use std::ops::Bound;

use writecliff_base::words;

/// Number of blocks that are allocated contiguously if the free space allows it: 1 MiB.
const ROOM: u32 = 256;
/// Number of free extents searched for a sufficiently large one before the nearest is used.
const SEARCH_MAX: usize = 64;

/// Number of allocation groups, which folders are assigned to in turn.
const GROUPS: u64 = 4;

words! {
    /// Starting position of the search for a new extent.
    #[derive(Default)]
    pub enum Allocator {
        /// The search starts after the last allocated extent of any file: allocation sweeps the
        /// drive from start to end, like ext4's stream allocation for large files.
        #[default]
        NextFit = "next-fit",
        /// The search starts at the beginning of the drive, so freed space is reused first.
        FirstFit = "first-fit",
        /// The search starts at the beginning of the allocation group of the file's folder: folders
        /// take turns in four groups, the number that XFS creates on a single drive.
        Folders = "folders",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub start: u32,
    pub count: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Space {
    /// End and length of each free extent; adjacent extents are merged. The key is the end because
    /// a growing file takes blocks from the front, which does not change the key.
    free: BTreeMap<u32, u32>,
    free_blocks: u64,
    blocks: u32,
    allocator: Allocator,
    /// End of the last allocated extent, for next-fit; 0 for other allocators.
    cursor: u32,
    /// `true` if blocks are only counted: every allocation then succeeds at its goal, or at 0.
    counted: bool,
}

impl Space {
    pub(super) fn new(blocks: u32, allocator: Allocator) -> Self {
        let mut free = BTreeMap::new();
        if blocks > 0 {
            free.insert(blocks, blocks);
        }
        let free_blocks = u64::from(blocks);
        Self { free, free_blocks, blocks, allocator, cursor: 0, counted: false }
    }

    /// Returns the space of a drive that only counts blocks, for measuring the space requirement.
    pub(super) fn counted(blocks: u32) -> Self {
        Self { free: BTreeMap::new(), counted: true, ..Self::new(blocks, Allocator::NextFit) }
    }

    #[cfg(test)]
    pub(super) fn free_blocks(&self) -> u64 {
        self.free_blocks
    }

    /// Allocates up to `want` consecutive blocks for a file in `folder`, at `goal` if that position
    /// is free. Returns `None` if the drive is full.
    pub(super) fn allocate(&mut self, want: u32, goal: Option<u32>, folder: u32) -> Option<Run> {
        if self.counted {
            let count = u64::from(want).min(self.free_blocks) as u32;
            self.free_blocks -= u64::from(count);
            return (count > 0).then_some(Run { start: goal.unwrap_or(0), count });
        }
        if let Some(run) = goal.and_then(|goal| self.take_at(goal, want)) {
            return Some(run);
        }
        let from = match self.allocator {
            Allocator::NextFit => self.cursor,
            Allocator::FirstFit => 0,
            Allocator::Folders => {
                (u64::from(folder) % GROUPS * u64::from(self.blocks) / GROUPS) as u32
            }
        };
        let start = self.find(want, from)?;
        let run = self.take_at(start, want)?;
        if self.allocator == Allocator::NextFit {
            self.cursor = (run.start + run.count).checked_next_multiple_of(ROOM).unwrap_or(0);
        }
        Some(run)
    }

    /// Returns the start of the next extent from `from` to the end, then from the beginning.
    fn find(&self, want: u32, from: u32) -> Option<u32> {
        let beyond = (Bound::Excluded(from), Bound::Unbounded);
        let extents = |(&end, &count): (&u32, &u32)| (end - count, end);
        let ahead = self.free.range(beyond).map(extents);
        let ahead = ahead.map(|(start, end)| (start.max(from), end));
        // This loop considers a free extent that spans `from` twice.
        let behind = self.free.iter().map(extents);
        let behind = behind.take_while(|&(start, _)| start < from);
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

    /// Takes up to `want` free blocks at `at`; `None` if `at` is not free.
    fn take_at(&mut self, at: u32, want: u32) -> Option<Run> {
        let beyond = (Bound::Excluded(at), Bound::Unbounded);
        let (&end, length) = self.free.range_mut(beyond).next()?;
        let start = end - *length;
        if start > at {
            return None;
        }
        debug_assert!(start <= at && at < end && self.free_blocks >= u64::from(end - start));
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

    pub(super) fn release(&mut self, run: Run) {
        if run.count == 0 {
            return;
        }
        self.free_blocks += u64::from(run.count);
        let blocks = u64::from(self.blocks);
        debug_assert!(self.free_blocks <= blocks, "{} of {blocks} free", self.free_blocks);
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
