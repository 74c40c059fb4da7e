//! Repeats a trace in rounds, and runs several copies of it concurrently.
//!
//! In each round, a file that the trace creates is a new object. Objects of the previous round
//! remain until new objects need their space. The old objects are then deleted one at a time,
//! oldest first, as when a database node is rebuilt. A copy therefore never occupies more space
//! than at the peak of its first round, and is never emptied in one step. Files that existed before
//! the trace are retained and overwritten.
//!
//! Overwritten data in existing files change addresses from round to round (`redraw.rs`).
//!
//! Copies model several instances of a program on one drive. All copies write at the same rate and
//! are evenly staggered over a round, so that their peaks do not coincide.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use super::dirty::LOOK_EVERY_MS;
use super::events::{Events, FileOp, TraceEvent};
use super::layout::{BlockOp, BlockRequest, FileLayout, Full};
use super::redraw::Redraw;
use writecliff_base::SLOT_BYTES;

/// Number of events between two progress reports, which take a few milliseconds.
const WATCH_EVERY: u64 = 1 << 16;

pub(super) enum Halt {
    Full,
    Stopped,
}

impl From<Full> for Halt {
    fn from(Full: Full) -> Self {
        Self::Full
    }
}

#[derive(Default)]
struct Program {
    next: usize,
    round: u32,
    /// Time of the last search for old data, in units of [`LOOK_EVERY_MS`] within the round.
    looked: u32,
    /// Blocks written, including the copy's initial stagger.
    written: u64,
    /// Number of blocks that the copy's files occupy.
    live: u64,
    peak: u64,
    /// Limit on the blocks that the copy's files occupy: the peak of the first round.
    limit: u64,
    /// Objects of earlier rounds, in deletion order.
    old: VecDeque<u32>,
    /// Cell addresses in this round; empty in the first round.
    places: Vec<u32>,
}

pub(super) struct Copies<'a> {
    events: &'a [TraceEvent],
    files: u32,
    folders: u32,
    programs: Vec<Program>,
    pub redraw: Redraw,
    /// Round of creation of each object, by copy and file; 0 if it existed before the trace.
    created: Vec<u32>,
    /// Number of events of all copies so far.
    pub applied: u64,
    pub written: u64,
    /// Sum over all written blocks of the blocks that files occupied at the time of the write.
    pub held: u128,
}

impl<'a> Copies<'a> {
    /// Creates `copies` copies. `round_blocks` is the number of blocks written in one round, over
    /// which the copies are staggered.
    pub(super) fn new(events: &'a Events, copies: u32, round_blocks: u64) -> Self {
        let begin = |copy: u32| Program {
            written: round_blocks * u64::from(copy) / u64::from(copies),
            limit: u64::MAX,
            ..Program::default()
        };
        Self {
            events: &events.all,
            files: events.files,
            folders: events.folders(),
            programs: (0..copies).map(begin).collect(),
            redraw: Redraw::new(&events.all, events.files),
            created: vec![0; events.files as usize * copies as usize],
            applied: 0,
            written: 0,
            held: 0,
        }
    }

    /// Returns the number of rounds that all copies have completed.
    pub(super) fn rounds(&self) -> u32 {
        let done = |copy: &Program| if copy.next == 0 { copy.round } else { copy.round - 1 };
        self.programs.iter().map(done).min().unwrap_or(0)
    }

    /// Advances the copies until one of them completes a round, or `watch` stops it.
    pub(super) fn round(
        &mut self,
        layout: &mut FileLayout,
        out: &mut Vec<BlockRequest>,
        watch: &mut dyn FnMut(&Self) -> ControlFlow<()>,
    ) -> Result<(), Halt> {
        loop {
            let order = |&index: &usize| self.programs[index].written;
            let first = (0..self.programs.len()).min_by_key(order).unwrap_or(0);
            let others = (0..self.programs.len()).filter(|&index| index != first);
            let until = others.map(|index| self.programs[index].written).min().unwrap_or(u64::MAX);
            if self.advance(first, until, layout, out, watch)? {
                return Ok(());
            }
        }
    }

    /// Advances a copy until it has written over `until` blocks; `true` if its round ended.
    fn advance(
        &mut self,
        index: usize,
        until: u64,
        layout: &mut FileLayout,
        out: &mut Vec<BlockRequest>,
        watch: &mut dyn FnMut(&Self) -> ControlFlow<()>,
    ) -> Result<bool, Halt> {
        let files = index as u32 * self.files..(index as u32 + 1) * self.files;
        let folders = index as u32 * self.folders;
        let mut copy = std::mem::take(&mut self.programs[index]);
        if copy.next == 0 {
            copy.round += 1;
            copy.looked = 0;
            if copy.round > 1 && !self.redraw.is_empty() {
                copy.places = self.redraw.draw(copy.round, index as u32);
            }
            let old = |&file: &u32| self.created[file as usize] > 0 && layout.holds(file);
            copy.old = files.clone().filter(old).collect();
        }
        while copy.next < self.events.len() && copy.written <= until {
            let event = self.events[copy.next];
            let event = TraceEvent {
                file: event.file + files.start,
                folder: (u32::from(event.folder) + folders) as u16,
                ..event
            };
            copy.next += 1;
            self.applied += 1;
            if self.applied.is_multiple_of(WATCH_EVERY) && watch(self).is_break() {
                return Err(Halt::Stopped);
            }
            match event.op {
                FileOp::Create => self.created[event.file as usize] = copy.round,
                FileOp::Write => self.make_room(&mut copy, &event, layout, out),
                _ => {}
            }
            let (before, begin) = (layout.live_blocks, out.len());
            let look = event.time_ms / LOOK_EVERY_MS;
            if look != copy.looked {
                copy.looked = look;
                layout.write_back_old(&files, event.time_ms, out)?;
            }
            if event.op == FileOp::Write && !copy.places.is_empty() {
                let file = event.file - files.start;
                let apply = |part: &TraceEvent| layout.apply(part, out);
                self.redraw.each_part(&event, file, &copy.places, apply)?;
            } else {
                layout.apply(&event, out)?;
            }
            self.account(&mut copy, before, layout, &out[begin..]);
        }
        let ended = copy.next == self.events.len();
        if ended {
            let (before, begin) = (layout.live_blocks, out.len());
            layout.write_back_all(files, out)?;
            self.account(&mut copy, before, layout, &out[begin..]);
            copy.next = 0;
            if copy.round == 1 {
                copy.limit = copy.peak;
            }
        }
        self.programs[index] = copy;
        Ok(ended)
    }

    /// Deletes old objects of a copy until a write fits below the copy's limit.
    fn make_room(
        &self,
        copy: &mut Program,
        write: &TraceEvent,
        layout: &mut FileLayout,
        out: &mut Vec<BlockRequest>,
    ) {
        let needed = write.length.div_ceil(SLOT_BYTES) + 1;
        while copy.live + needed > copy.limit
            && let Some(file) = copy.old.pop_front()
        {
            // Skip objects that this round has already re-created.
            if self.created[file as usize] < copy.round {
                let before = layout.live_blocks;
                layout.unlink(file, out);
                copy.live -= before - layout.live_blocks;
            }
        }
    }

    /// Updates the counters after `requests`, before which `before` blocks were live.
    fn account(
        &mut self,
        copy: &mut Program,
        before: u64,
        layout: &FileLayout,
        requests: &[BlockRequest],
    ) {
        let blocks = written(requests);
        copy.live = copy.live + layout.live_blocks - before;
        debug_assert!(copy.live <= layout.live_blocks, "a copy holds more than all");
        copy.peak = copy.peak.max(copy.live);
        copy.written += blocks;
        self.written += blocks;
        self.held += u128::from(blocks) * u128::from(layout.live_blocks);
    }
}

pub(super) fn written(requests: &[BlockRequest]) -> u64 {
    requests.iter().filter(|r| r.op == BlockOp::Write).map(|r| u64::from(r.count)).sum()
}
