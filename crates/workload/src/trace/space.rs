//! Free space of the drive: extents of free blocks, and who gets which.
//!
//! A file that grows gets the blocks behind its last one while they are free. A new extent begins
//! at a multiple of [`ROOM`] that has that much space behind it, so that files that grow at the
//! same time do not cut each other into single blocks (what file systems reach by delayed and
//! speculative allocation). The [`Allocator`] says from where on it is looked for. All choices
//! depend on the free space, the cursor and the folder alone.

use std::collections::BTreeMap;
use std::ops::Bound;

/// Blocks kept together where the free space allows: 1 MiB.
const ROOM: u32 = 256;
/// Free extents looked at for one with room; then the nearest is taken as it is.
const SEARCH_MAX: usize = 64;

/// Parts of the drive that folders take in turn.
const GROUPS: u64 = 4;

/// Where the next extent of a file is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Allocator {
    /// Behind the last one that was given out, whatever its file: the drive is gone through from
    /// one end to the other, as ext4's stream allocation does for large files.
    #[default]
    NextFit,
    /// From the beginning of the drive: freed space is used again at once, before the drive goes
    /// further.
    FirstFit,
    /// From the beginning of the part that the file's folder has: four parts that folders take in
    /// turn, as XFS does with the four allocation groups that it makes on a single drive.
    Folders,
}

impl Allocator {
    pub const ALL: [Self; 3] = [Self::NextFit, Self::FirstFit, Self::Folders];

    pub fn name(self) -> &'static str {
        match self {
            Self::NextFit => "next-fit",
            Self::FirstFit => "first-fit",
            Self::Folders => "folders",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|allocator| allocator.name() == name)
    }
}

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
    blocks: u32,
    allocator: Allocator,
    /// Where the last extent ended; stays 0 where that does not matter.
    cursor: u32,
    /// Blocks are counted only: all that is given out is where it is wanted, or at 0.
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

    /// A drive without addresses, to learn how much space is needed.
    pub(super) fn counted(blocks: u32) -> Self {
        Self { free: BTreeMap::new(), counted: true, ..Self::new(blocks, Allocator::NextFit) }
    }

    #[cfg(test)]
    pub(super) fn free_blocks(&self) -> u64 {
        self.free_blocks
    }

    /// Up to `want` consecutive blocks for a file in `folder`, at `goal` if that is free; `None` if
    /// nothing is.
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

    /// Where the next extent begins: beyond `from`, then from the beginning.
    fn find(&self, want: u32, from: u32) -> Option<u32> {
        let beyond = (Bound::Excluded(from), Bound::Unbounded);
        let extents = |(&end, &count): (&u32, &u32)| (end - count, end);
        let ahead = self.free.range(beyond).map(extents);
        let ahead = ahead.map(|(start, end)| (start.max(from), end));
        // An extent around that place counts as two.
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
