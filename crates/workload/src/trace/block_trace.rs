//! A whole trace laid on a drive, once or again and again.
//!
//! A trace is short against the life of a drive: it is repeated until the drive is in its steady
//! state. In each round, a file that the trace creates is a new object. Those of the round before
//! stay until the new ones need their room, and then go one by one, the oldest first: the drive is
//! as full as the first round had it at its peak, and is never emptied at once. Files that were
//! there before the trace began go on.

use std::collections::VecDeque;

use super::events::{Event, Events, FileOp};
use super::layout::{BlockOp, BlockRequest, Full, Layout, WriteBack};
use super::{BLOCK_BYTES, TraceError};

/// How often a trace is repeated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Repeats {
    Times(u32),
    /// Whole rounds until this many drive fills are written.
    Fills(f64),
}

/// What a trace needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// The most blocks that files hold at a time, repeated or not.
    pub peak_blocks: u64,
    /// Blocks that files hold when the trace ends.
    pub end_blocks: u64,
    /// Blocks written in one round.
    pub written_blocks: u64,
}

/// How a trace is laid on a drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayOut {
    pub capacity_blocks: u32,
    pub write_back: WriteBack,
    pub repeats: Repeats,
}

/// The requests that a trace becomes.
#[derive(Clone, Debug)]
pub struct BlockTrace {
    pub requests: Vec<BlockRequest>,
    /// Blocks of the drive that it was laid on.
    pub capacity_blocks: u32,
    pub written_blocks: u64,
    pub peak_blocks: u64,
    pub rounds: u32,
    /// Origins are below this.
    pub origins: u16,
}

/// Rounds after which something is wrong: a trace of a single write on a large drive.
const ROUNDS_MAX: u32 = 1_000_000;
/// Clocks of blocks written are 32 bits.
const WRITTEN_MAX: u64 = u32::MAX as u64 - 1;

impl Events {
    /// What the trace needs, from two rounds on a drive without bounds.
    pub fn footprint(&self, write_back: WriteBack) -> Footprint {
        let mut layout = Layout::counted(u32::MAX, self.files(), write_back);
        let mut rounds = Rounds::new(self.files());
        let mut found = Footprint { peak_blocks: 0, end_blocks: 0, written_blocks: 0 };
        let mut requests = Vec::new();
        for round in 0..2 {
            // Full at 16 TiB: then nothing holds it, and the peak says so.
            let _ = rounds.round(self, &mut layout, &mut requests);
            if round == 0 {
                found.end_blocks = layout.live_blocks();
                found.written_blocks = written(&requests);
            }
            requests.clear();
        }
        found.peak_blocks = layout.peak_blocks();
        found
    }

    /// Lay the trace on a drive.
    pub fn lay_out(&self, how: &LayOut) -> Result<BlockTrace, TraceError> {
        let mut trace = BlockTrace {
            requests: Vec::new(),
            capacity_blocks: how.capacity_blocks,
            written_blocks: 0,
            peak_blocks: 0,
            rounds: 0,
            origins: self.iter().map(|event| event.origin + 1).max().unwrap_or(1),
        };
        let mut layout = Layout::new(how.capacity_blocks, self.files(), how.write_back);
        let mut rounds = Rounds::new(self.files());
        loop {
            let begin = trace.requests.len();
            rounds.round(self, &mut layout, &mut trace.requests).map_err(|Full| {
                TraceError::OutOfSpace {
                    needed_bytes: self.footprint(how.write_back).peak_blocks * BLOCK_BYTES,
                    capacity_bytes: u64::from(how.capacity_blocks) * BLOCK_BYTES,
                }
            })?;
            trace.rounds += 1;
            trace.written_blocks += written(&trace.requests[begin..]);
            trace.peak_blocks = layout.peak_blocks();
            if trace.written_blocks == 0 {
                return Err(TraceError::Trace("nothing is written in it".to_owned()));
            }
            let done = match how.repeats {
                Repeats::Times(times) => trace.rounds >= times,
                Repeats::Fills(fills) => {
                    trace.written_blocks as f64 >= fills * f64::from(how.capacity_blocks)
                }
            };
            if done {
                return Ok(trace);
            }
            let next = trace.written_blocks / u64::from(trace.rounds) + trace.written_blocks;
            if trace.rounds == ROUNDS_MAX || next > WRITTEN_MAX {
                let message = format!("too much to write after {} rounds", trace.rounds);
                return Err(TraceError::Trace(message));
            }
        }
    }
}

/// Which objects are of an earlier round.
struct Rounds {
    round: u32,
    /// Round in which the object was created, 0: it was there before.
    created: Vec<u32>,
    /// Objects of earlier rounds, in the order in which they are to go.
    old: VecDeque<u32>,
    /// What the files of the first round took at their peak.
    peak: u64,
}

impl Rounds {
    fn new(files: u32) -> Self {
        Self { round: 0, created: vec![0; files as usize], old: VecDeque::new(), peak: u64::MAX }
    }

    fn round(
        &mut self,
        events: &Events,
        layout: &mut Layout,
        out: &mut Vec<BlockRequest>,
    ) -> Result<(), Full> {
        self.round += 1;
        let files = 0..self.created.len() as u32;
        self.old = files.filter(|&f| self.created[f as usize] > 0 && layout.holds(f)).collect();
        for event in events.iter() {
            match event.op {
                FileOp::Create => self.created[event.file as usize] = self.round,
                FileOp::Write => self.make_room(event, layout, out),
                _ => {}
            }
            layout.apply(event, out)?;
        }
        layout.flush_all(out)?;
        if self.round == 1 {
            self.peak = layout.peak_blocks();
        }
        Ok(())
    }

    fn make_room(&mut self, write: &Event, layout: &mut Layout, out: &mut Vec<BlockRequest>) {
        let needed = write.length.div_ceil(BLOCK_BYTES) + 1;
        while layout.live_blocks() + needed > self.peak
            && let Some(file) = self.old.pop_front()
        {
            // A number that the round has created anew is no longer the old object.
            if self.created[file as usize] < self.round {
                layout.unlink(file, out);
            }
        }
    }
}

fn written(requests: &[BlockRequest]) -> u64 {
    requests.iter().filter(|r| r.op == BlockOp::Write).map(|r| u64::from(r.count)).sum()
}
