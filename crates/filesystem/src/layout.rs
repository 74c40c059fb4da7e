//! Maps file objects to drive blocks and converts file operations into block requests.
//!
//! A write to a block that the file already has overwrites the block in place; other writes
//! allocate blocks. Blocks freed by truncate, unlink or punch are trimmed immediately. If TRIM is
//! off, the drive retains the old data as valid until the blocks are written again. A partial write
//! of a block writes the whole block. With a page cache, blocks are allocated when they are
//! written, and reach the drive when they are written back, unless they are freed before.

use std::ops::Range;

use super::dirty::{Dirty, PageCache};
use super::events::{FileOp, TraceEvent};
use super::space::{Allocator, Run, Space};
use writecliff_base::{SLOT_BYTES, words};

words! {
    /// Write-back policy: when writes reach the drive.
    #[derive(Default)]
    pub enum WriteBack {
        /// Writes reach the drive at fsync, when they are old, or when many dirty pages have
        /// accumulated, as with Linux's page cache.
        PageCache = "page-cache",
        /// Writes reach the drive immediately, as with direct or synchronous I/O; each small append
        /// rewrites the last block of its file.
        #[default]
        Immediate = "immediate",
    }
}

/// Behaviour of the file system between files and drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// Placement of new extents.
    pub allocator: Allocator,
    /// `true` if freed blocks are trimmed (`mount -o discard`).
    pub trim: bool,
    /// Write-back policy: when writes reach the drive.
    pub write_back: WriteBack,
}

impl Default for FileSystem {
    fn default() -> Self {
        Self { allocator: Allocator::default(), trim: true, write_back: WriteBack::default() }
    }
}

/// Operation of a block request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockOp {
    /// Writes the blocks.
    Write,
    /// Deallocates the blocks.
    Trim,
}

/// Range of consecutive blocks that are written or trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRequest {
    /// First block, in units of 4 KiB.
    pub block: u32,
    /// Number of blocks.
    pub count: u32,
    /// Operation of the request.
    pub op: BlockOp,
    /// Stream that the host assigns to the write.
    pub stream: u16,
    /// Label of the writer.
    pub origin: u16,
}

/// Error: the drive has no free block left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// Extent: consecutive blocks of a file that are stored in consecutive drive blocks.
#[derive(Clone, Copy, Debug)]
struct Extent {
    first: u32,
    at: Run,
}

impl Extent {
    fn end(&self) -> u32 {
        self.first + self.at.count
    }
}

/// Labels of a write that its blocks inherit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Source {
    stream: u16,
    origin: u16,
    folder: u16,
}

impl Source {
    fn of(event: &TraceEvent) -> Self {
        Self { stream: event.stream, origin: event.origin, folder: event.folder }
    }
}

#[derive(Clone, Debug, Default)]
struct File {
    /// Extents, sorted by file block; gaps are holes.
    extents: Vec<Extent>,
    dirty: Dirty,
}

/// Files on a drive, and the drive's free space.
#[derive(Clone, Debug)]
pub struct FileLayout {
    space: Space,
    files: Vec<File>,
    /// Dirty files; `None` if writes reach the drive immediately.
    cache: Option<PageCache>,
    trim: bool,
    /// By block: `true` for each drive block that has been written since it was last trimmed. This
    /// list is empty if blocks are only counted.
    written: Vec<bool>,
    /// Blocks that files occupy now, and their maximum so far.
    pub(super) live_blocks: u64,
    pub(super) peak_blocks: u64,
}

impl FileLayout {
    pub(crate) fn new(blocks: u32, files: u32, system: FileSystem) -> Self {
        let files = vec![File::default(); files as usize];
        let FileSystem { allocator, trim, write_back } = system;
        let cache = (write_back == WriteBack::PageCache).then(PageCache::default);
        let space = Space::new(blocks, allocator);
        let written = vec![false; if trim { blocks as usize } else { 0 }];
        Self { space, files, cache, trim, written, live_blocks: 0, peak_blocks: 0 }
    }

    /// Returns a layout that counts blocks: requests have correct lengths, meaningless offsets.
    pub(crate) fn counted(blocks: u32, files: u32, system: FileSystem) -> Self {
        Self { space: Space::counted(blocks), ..Self::new(0, files, system) }
    }

    /// Applies a file operation and appends the resulting requests to `out`.
    pub fn apply(&mut self, event: &TraceEvent, out: &mut Vec<BlockRequest>) -> Result<(), Full> {
        let end = event.offset + event.length;
        let first_whole = event.offset.div_ceil(SLOT_BYTES) as u32;
        match event.op {
            FileOp::Write if event.length > 0 => {
                let first = (event.offset / SLOT_BYTES) as u32;
                return self.write(event, first, end.div_ceil(SLOT_BYTES) as u32, out);
            }
            FileOp::Write => {}
            FileOp::Truncate => self.free(event.file, first_whole, u32::MAX, out),
            FileOp::Punch => self.free(event.file, first_whole, (end / SLOT_BYTES) as u32, out),
            // If the object already exists when it is due to be created, an earlier round left it.
            FileOp::Unlink | FileOp::Create => self.unlink(event.file, out),
            FileOp::Sync => return self.write_back(event.file, out),
        }
        Ok(())
    }

    /// Writes back the files of a trace copy that have been dirty for too long at time `now_ms`.
    pub fn write_back_old(
        &mut self,
        files: &Range<u32>,
        now_ms: u32,
        out: &mut Vec<BlockRequest>,
    ) -> Result<(), Full> {
        let Some(cache) = &mut self.cache else { return Ok(()) };
        let table = &self.files;
        let old = cache.old(files, now_ms, |file| &table[file as usize].dirty);
        old.into_iter().try_for_each(|file| self.write_back(file, out))
    }

    /// Returns `true` if a file has any blocks.
    pub fn holds(&self, file: u32) -> bool {
        !self.files[file as usize].extents.is_empty()
    }

    /// Frees all blocks of a file.
    pub fn unlink(&mut self, file: u32, out: &mut Vec<BlockRequest>) {
        self.free(file, 0, u32::MAX, out);
    }

    /// Writes back all runs in `files`.
    pub fn write_back_all(
        &mut self,
        mut files: Range<u32>,
        out: &mut Vec<BlockRequest>,
    ) -> Result<(), Full> {
        files.try_for_each(|file| self.write_back(file, out))
    }

    fn write_back(&mut self, file: u32, out: &mut Vec<BlockRequest>) -> Result<(), Full> {
        let Some(cache) = &mut self.cache else { return Ok(()) };
        for run in self.files[file as usize].dirty.take(cache) {
            self.put(file, run.first, run.end, run.source, Some(&mut *out))?;
        }
        Ok(())
    }

    fn write(
        &mut self,
        event: &TraceEvent,
        first: u32,
        end: u32,
        out: &mut Vec<BlockRequest>,
    ) -> Result<(), Full> {
        let (file, source) = (event.file, Source::of(event));
        if self.cache.is_none() {
            return self.put(file, first, end, source, Some(out));
        }
        self.put(file, first, end, source, None)?;
        let Some(cache) = &mut self.cache else { return Ok(()) };
        let now = (file, event.time_ms);
        self.files[file as usize].dirty.mark(first..end, source, now, cache);
        let table = &self.files;
        let over = cache.over_limit(|file| &table[file as usize].dirty);
        over.into_iter().try_for_each(|file| self.write_back(file, out))
    }

    /// Writes the blocks `next..end` of a file to `out` and allocates missing blocks; without
    /// `out`, it only allocates blocks.
    fn put(
        &mut self,
        file: u32,
        mut next: u32,
        end: u32,
        Source { stream, origin, folder }: Source,
        mut out: Option<&mut Vec<BlockRequest>>,
    ) -> Result<(), Full> {
        let begin = out.as_ref().map_or(0, |out| out.len());
        while next < end {
            let extents = &self.files[file as usize].extents;
            let after = following(extents, next);
            let run = match after.checked_sub(1).map(|before| extents[before]) {
                Some(e) if next < e.end() => {
                    Run { start: e.at.start + (next - e.first), count: end.min(e.end()) - next }
                }
                before => {
                    let limit = extents.get(after).map_or(end, |e| e.first.min(end));
                    let goal = before.filter(|e| e.end() == next).map(|e| e.at.start + e.at.count);
                    let run =
                        self.space.allocate(limit - next, goal, u32::from(folder)).ok_or(Full)?;
                    self.insert(file, after, Extent { first: next, at: run });
                    run
                }
            };
            debug_assert!(run.count > 0 && run.count <= end - next, "{} blocks", run.count);
            next += run.count;
            let Some(out) = &mut out else { continue };
            if !self.written.is_empty() {
                self.written[run.start as usize..(run.start + run.count) as usize].fill(true);
            }
            match out[begin..].last_mut() {
                Some(last) if last.block + last.count == run.start => last.count += run.count,
                _ => out.push(BlockRequest {
                    block: run.start,
                    count: run.count,
                    op: BlockOp::Write,
                    stream,
                    origin,
                }),
            }
        }
        Ok(())
    }

    /// Inserts an extent into a file at index `after`, or merges the extent with its predecessor.
    fn insert(&mut self, file: u32, after: usize, new: Extent) {
        self.live_blocks += u64::from(new.at.count);
        self.peak_blocks = self.peak_blocks.max(self.live_blocks);
        let extents = &mut self.files[file as usize].extents;
        debug_assert!(extents.get(after).is_none_or(|next| new.end() <= next.first), "overlap");
        let before = after.checked_sub(1).map(|before| extents[before]);
        debug_assert!(before.is_none_or(|before| before.end() <= new.first), "overlap");
        if let Some(last) = after.checked_sub(1).map(|before| &mut extents[before])
            && last.end() == new.first
            && last.at.start + last.at.count == new.at.start
        {
            last.at.count += new.at.count;
            return;
        }
        extents.insert(after, new);
    }

    /// Frees the blocks `first..end` of a file and trims them if TRIM is on.
    fn free(&mut self, file: u32, first: u32, end: u32, out: &mut Vec<BlockRequest>) {
        if first >= end {
            return;
        }
        let file = &mut self.files[file as usize];
        if let Some(cache) = &mut self.cache {
            file.dirty.forget(first..end, cache);
        }
        let begin = file.extents.partition_point(|e| e.end() <= first);
        let stop = file.extents.partition_point(|e| e.first < end);
        let mut rest = Vec::new();
        for e in &file.extents[begin..stop] {
            let (from, to) = (e.first.max(first), e.end().min(end));
            debug_assert!(from < to, "an extent outside of {first}..{end}");
            if e.first < from {
                rest.push(Extent { first: e.first, at: Run { count: from - e.first, ..e.at } });
            }
            if to < e.end() {
                let at = Run { start: e.at.start + (to - e.first), count: e.end() - to };
                rest.push(Extent { first: to, at });
            }
            let freed = Run { start: e.at.start + (from - e.first), count: to - from };
            self.space.release(freed);
            debug_assert!(self.live_blocks >= u64::from(freed.count), "blocks freed twice");
            self.live_blocks -= u64::from(freed.count);
            if self.trim {
                trim(freed, &mut self.written, out);
            }
        }
        file.extents.splice(begin..stop, rest);
    }

    #[cfg(test)]
    pub(super) fn free_blocks(&self) -> u64 {
        self.space.free_blocks()
    }
}

/// Trims the `freed` blocks that have been written; trims all of them if blocks are only counted.
fn trim(freed: Run, written: &mut [bool], out: &mut Vec<BlockRequest>) {
    let mut push = |start: u32, count: usize| {
        let count = count as u32;
        out.push(BlockRequest { block: start, count, op: BlockOp::Trim, stream: 0, origin: 0 });
    };
    if written.is_empty() {
        return push(freed.start, freed.count as usize);
    }
    let mut at = freed.start;
    let range = freed.start as usize..(freed.start + freed.count) as usize;
    for run in written[range.clone()].chunk_by(|a, b| a == b) {
        if run[0] {
            push(at, run.len());
        }
        at += run.len() as u32;
    }
    written[range].fill(false);
}

fn following(extents: &[Extent], block: u32) -> usize {
    match extents.last() {
        None => 0,
        Some(last) if last.first <= block => extents.len(),
        _ => extents.partition_point(|e| e.first <= block),
    }
}
