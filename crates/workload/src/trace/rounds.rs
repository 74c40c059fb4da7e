//! A trace again and again, and several copies of it beside each other.
//!
//! In each round, a file that the trace creates is a new object. Those of the round before stay
//! until the new ones need their room, and then go one by one, the oldest first, as when a node of
//! a database is built up again: a copy holds no more than its first round did at its peak, and is
//! never emptied at once. Files that were there before the trace began go on.
//!
//! Copies are programs of the same kind on one drive. They write at one pace and are spread evenly
//! over a round, so that their peaks do not fall together.

use std::collections::VecDeque;

use super::BLOCK_BYTES;
use super::events::{Events, FileOp, TraceEvent};
use super::layout::{BlockOp, BlockRequest, Full, Layout};

/// One copy of the traced program.
#[derive(Default)]
struct Program {
    /// The next event.
    next: usize,
    /// Rounds begun.
    round: u32,
    /// Blocks written, from where the copy stands against the others.
    written: u64,
    /// Blocks that its files hold, and the most there have been.
    live: u64,
    most: u64,
    /// The most that they may hold: what they did in the first round.
    limit: u64,
    /// Objects of earlier rounds, in the order in which they are to go.
    old: VecDeque<u32>,
}

/// All copies of a trace.
pub(super) struct Copies<'a> {
    events: &'a [TraceEvent],
    files: u32,
    folders: u32,
    programs: Vec<Program>,
    /// Round in which an object was created, 0: it was there before. By copy and file.
    created: Vec<u32>,
    /// Blocks written by all of them.
    pub written: u64,
    /// Sum over those blocks of what files held just then.
    pub held: u128,
}

impl<'a> Copies<'a> {
    /// `round_blocks`: what one round writes; it spreads the copies.
    pub(super) fn new(events: &'a Events, copies: u32, round_blocks: u64) -> Self {
        let begin = |copy: u32| Program {
            written: round_blocks * u64::from(copy) / u64::from(copies),
            limit: u64::MAX,
            ..Program::default()
        };
        Self {
            events: events.as_slice(),
            files: events.files(),
            folders: events.folders(),
            programs: (0..copies).map(begin).collect(),
            created: vec![0; events.files() as usize * copies as usize],
            written: 0,
            held: 0,
        }
    }

    /// Rounds that every copy has finished.
    pub(super) fn rounds(&self) -> u32 {
        let done = |copy: &Program| if copy.next == 0 { copy.round } else { copy.round - 1 };
        self.programs.iter().map(done).min().unwrap_or(0)
    }

    /// Go on until one of the copies has finished a round.
    pub(super) fn round(
        &mut self,
        layout: &mut Layout,
        out: &mut Vec<BlockRequest>,
    ) -> Result<(), Full> {
        loop {
            let order = |&index: &usize| self.programs[index].written;
            let first = (0..self.programs.len()).min_by_key(order).unwrap_or(0);
            let others = (0..self.programs.len()).filter(|&index| index != first);
            let until = others.map(|index| self.programs[index].written).min().unwrap_or(u64::MAX);
            if self.advance(first, until, layout, out)? {
                return Ok(());
            }
        }
    }

    /// Let a copy go on until it has written more than `until`; true if that ended its round.
    fn advance(
        &mut self,
        index: usize,
        until: u64,
        layout: &mut Layout,
        out: &mut Vec<BlockRequest>,
    ) -> Result<bool, Full> {
        let files = index as u32 * self.files..(index as u32 + 1) * self.files;
        let folders = index as u32 * self.folders;
        let mut copy = std::mem::take(&mut self.programs[index]);
        if copy.next == 0 {
            copy.round += 1;
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
            match event.op {
                FileOp::Create => self.created[event.file as usize] = copy.round,
                FileOp::Write => self.make_room(&mut copy, &event, layout, out),
                _ => {}
            }
            let (before, begin) = (layout.live_blocks(), out.len());
            layout.apply(&event, out)?;
            self.book(&mut copy, before, layout, &out[begin..]);
        }
        let ended = copy.next == self.events.len();
        if ended {
            let (before, begin) = (layout.live_blocks(), out.len());
            layout.flush_all(files, out)?;
            self.book(&mut copy, before, layout, &out[begin..]);
            copy.next = 0;
            if copy.round == 1 {
                copy.limit = copy.most;
            }
        }
        self.programs[index] = copy;
        Ok(ended)
    }

    fn make_room(
        &self,
        copy: &mut Program,
        write: &TraceEvent,
        layout: &mut Layout,
        out: &mut Vec<BlockRequest>,
    ) {
        let needed = write.length.div_ceil(BLOCK_BYTES) + 1;
        while copy.live + needed > copy.limit
            && let Some(file) = copy.old.pop_front()
        {
            // A number that the round has created anew is no longer the old object.
            if self.created[file as usize] < copy.round {
                let before = layout.live_blocks();
                layout.unlink(file, out);
                copy.live -= before - layout.live_blocks();
            }
        }
    }

    fn book(
        &mut self,
        copy: &mut Program,
        before: u64,
        layout: &Layout,
        requests: &[BlockRequest],
    ) {
        let blocks = written(requests);
        copy.live = copy.live + layout.live_blocks() - before;
        copy.most = copy.most.max(copy.live);
        copy.written += blocks;
        self.written += blocks;
        self.held += u128::from(blocks) * u128::from(layout.live_blocks());
    }
}

fn written(requests: &[BlockRequest]) -> u64 {
    requests.iter().filter(|r| r.op == BlockOp::Write).map(|r| u64::from(r.count)).sum()
}
