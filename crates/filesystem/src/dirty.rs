//! Files that wait in the page cache for write-back, with the Linux default settings.
//!
//! A file is written back as a whole in three cases: at fsync, once the file has been dirty for 30
//! s (`dirty_expire_centisecs`, checked every 5 s, `dirty_writeback_centisecs`), or when more than
//! [`DIRTY_MAX_BLOCKS`] wait. In the last case, the file that has waited longest is written back
//! first. The kernel's limit is a tenth of the available memory (`dirty_background_ratio`).

use std::collections::VecDeque;
use std::ops::Range;

use super::layout::Source;
use writecliff_base::SLOT_BYTES;

const EXPIRE_MS: u32 = 30_000;
pub(super) const LOOK_EVERY_MS: u32 = 5_000;
/// Maximum number of dirty blocks: 1 GiB, a tenth of 10 GiB.
const DIRTY_MAX_BLOCKS: u64 = (1 << 30) / SLOT_BYTES;

/// Consecutive dirty blocks of a file with the labels of their last write.
#[derive(Clone, Copy, Debug)]
pub(super) struct DirtyRun {
    pub first: u32,
    pub end: u32,
    pub source: Source,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Dirty {
    /// Dirty runs, sorted and without overlap.
    runs: Vec<DirtyRun>,
    since_ms: u32,
}

#[derive(Clone, Debug, Default)]
pub(super) struct PageCache {
    /// Files with the times when they became dirty, in order; stale if written back since.
    queue: VecDeque<(u32, u32)>,
    blocks: u64,
}

impl Dirty {
    /// Marks blocks of a file as written at time `now` (in ms).
    pub(super) fn mark(
        &mut self,
        blocks: Range<u32>,
        source: Source,
        now: (u32, u32),
        cache: &mut PageCache,
    ) {
        if self.runs.is_empty() {
            self.since_ms = now.1;
            cache.queue.push_back(now);
        }
        debug_assert!(blocks.start < blocks.end, "an empty write");
        let at = self.forget(blocks.clone(), cache);
        debug_assert!(self.runs.get(at).is_none_or(|next| blocks.end <= next.first), "overlap");
        cache.blocks += u64::from(blocks.end - blocks.start);
        match at.checked_sub(1).map(|before| &mut self.runs[before]) {
            Some(last) if last.end == blocks.start && last.source == source => {
                last.end = blocks.end;
            }
            _ => {
                let run = DirtyRun { first: blocks.start, end: blocks.end, source };
                self.runs.insert(at, run);
            }
        }
    }

    /// Removes freed or rewritten blocks; returns the insertion index for a run at these blocks.
    pub(super) fn forget(&mut self, blocks: Range<u32>, cache: &mut PageCache) -> usize {
        let Range { start, end } = blocks;
        if self.runs.last().is_none_or(|last| last.end <= start) {
            return self.runs.len();
        }
        let begin = self.runs.partition_point(|run| run.end <= start);
        let stop = self.runs.partition_point(|run| run.first < end);
        let mut rest = Vec::new();
        let mut at = begin;
        for run in &self.runs[begin..stop] {
            cache.blocks -= u64::from(run.end.min(end) - run.first.max(start));
            if run.first < start {
                rest.push(DirtyRun { end: start, ..*run });
                at += 1;
            }
            if end < run.end {
                rest.push(DirtyRun { first: end, ..*run });
            }
        }
        self.runs.splice(begin..stop, rest);
        at
    }

    pub(super) fn take(&mut self, cache: &mut PageCache) -> Vec<DirtyRun> {
        let runs = std::mem::take(&mut self.runs);
        cache.blocks -= runs.iter().map(|run| u64::from(run.end - run.first)).sum::<u64>();
        runs
    }

    fn waits_since(&self, since_ms: u32) -> bool {
        !self.runs.is_empty() && self.since_ms == since_ms
    }
}

impl PageCache {
    /// Removes the files in `files` that have been dirty for too long from the queue.
    pub(super) fn old<'a>(
        &mut self,
        files: &Range<u32>,
        now_ms: u32,
        dirty: impl Fn(u32) -> &'a Dirty,
    ) -> Vec<u32> {
        let mut old = Vec::new();
        self.queue.retain(|&(file, since_ms)| {
            let waits = dirty(file).waits_since(since_ms);
            let expired = files.contains(&file) && now_ms.saturating_sub(since_ms) >= EXPIRE_MS;
            if waits && expired {
                old.push(file);
            }
            waits && !expired
        });
        old
    }

    /// Removes files from the queue until the total size of the others is within the limit.
    pub(super) fn over_limit<'a>(&mut self, dirty: impl Fn(u32) -> &'a Dirty) -> Vec<u32> {
        let mut blocks = self.blocks;
        let mut over = Vec::new();
        while blocks > DIRTY_MAX_BLOCKS
            && let Some((file, since_ms)) = self.queue.pop_front()
        {
            let runs_of_file = dirty(file);
            if runs_of_file.waits_since(since_ms) && !over.contains(&file) {
                blocks -=
                    runs_of_file.runs.iter().map(|run| u64::from(run.end - run.first)).sum::<u64>();
                over.push(file);
            }
        }
        debug_assert!(blocks <= DIRTY_MAX_BLOCKS, "{blocks} blocks of files that do not wait");
        over
    }
}
