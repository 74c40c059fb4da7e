//! A whole trace laid on a drive.
//!
//! A trace is short against the life of a drive: it is repeated until the drive is in its steady
//! state (see `rounds.rs`).

use super::events::Events;
use super::layout::{BlockRequest, FileSystem, Full, Layout};
use super::rounds::Copies;
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
    /// Blocks that files hold when the first copy of the trace ends.
    pub end_blocks: u64,
    /// Blocks written in one round of all copies.
    pub written_blocks: u64,
}

/// How a trace is laid on a drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayOut {
    pub capacity_blocks: u32,
    pub file_system: FileSystem,
    pub repeats: Repeats,
    /// Copies of the trace beside each other, 1 or more.
    pub copies: u32,
}

/// The requests that a trace becomes.
#[derive(Clone, Debug)]
pub struct BlockTrace {
    pub requests: Vec<BlockRequest>,
    /// Blocks of the drive that it was laid on.
    pub capacity_blocks: u32,
    pub written_blocks: u64,
    pub peak_blocks: u64,
    /// What files held on average over the blocks written, from the second round on if there is
    /// one.
    pub mean_blocks: u64,
    /// Rounds that all copies have finished.
    pub rounds: u32,
    /// Origins are below this.
    pub origins: u16,
}

/// Rounds after which something is wrong: a trace of a single write on a large drive.
const ROUNDS_MAX: u32 = 1_000_000;
/// Clocks of blocks written are 32 bits.
const WRITTEN_MAX: u64 = u32::MAX as u64 - 1;
/// Files of all copies: their numbers are indices of a table.
const FILES_MAX: u64 = 1 << 28;

impl Events {
    /// What `copies` of the trace need, from two rounds on a drive without bounds.
    pub fn footprint(&self, file_system: &FileSystem, copies: u32) -> Footprint {
        let mut round_blocks = 0;
        if copies > 1 {
            round_blocks = self.footprint(file_system, 1).written_blocks;
        }
        let mut layout = Layout::counted(u32::MAX, self.files() * copies, file_system);
        let mut all = Copies::new(self, copies, round_blocks);
        let mut found = Footprint { peak_blocks: 0, end_blocks: 0, written_blocks: 0 };
        let mut requests = Vec::new();
        while all.rounds() < 2 {
            // Full at 16 TiB: then nothing holds it, and the peak says so.
            if all.round(&mut layout, &mut requests).is_err() {
                break;
            }
            if found.written_blocks == 0 {
                found.end_blocks = layout.live_blocks();
                found.written_blocks = all.written;
            }
            requests.clear();
        }
        if copies > 1 {
            found.written_blocks = round_blocks * u64::from(copies);
        }
        found.peak_blocks = layout.peak_blocks();
        found
    }

    /// Lay the trace on a drive.
    pub fn lay_out(&self, how: &LayOut) -> Result<BlockTrace, TraceError> {
        let files = u64::from(self.files()) * u64::from(how.copies);
        if how.copies == 0 || files > FILES_MAX {
            let message = format!("{} copies of {} files", how.copies, self.files());
            return Err(TraceError::Trace(message));
        }
        let mut requests = Vec::new();
        let round_blocks = match how.copies {
            1 => 0,
            _ => self.footprint(&how.file_system, 1).written_blocks,
        };
        let mut layout = Layout::new(how.capacity_blocks, files as u32, &how.file_system);
        let mut all = Copies::new(self, how.copies, round_blocks);
        let (mut ends, mut settled) = (0, (0, 0));
        loop {
            all.round(&mut layout, &mut requests).map_err(|Full| TraceError::OutOfSpace {
                needed_bytes: self.footprint(&how.file_system, how.copies).peak_blocks
                    * BLOCK_BYTES,
                capacity_bytes: u64::from(how.capacity_blocks) * BLOCK_BYTES,
            })?;
            ends += 1;
            let rounds = all.rounds();
            if all.written == 0 {
                return Err(TraceError::Trace("nothing is written in it".to_owned()));
            }
            let done = match how.repeats {
                Repeats::Times(times) => rounds >= times,
                Repeats::Fills(drives) => {
                    rounds > 0 && all.written as f64 >= drives * f64::from(how.capacity_blocks)
                }
            };
            if done {
                let (written, held) = (all.written - settled.0, all.held - settled.1);
                return Ok(BlockTrace {
                    requests,
                    capacity_blocks: how.capacity_blocks,
                    written_blocks: all.written,
                    peak_blocks: layout.peak_blocks(),
                    mean_blocks: (held / u128::from(written.max(1))) as u64,
                    rounds,
                    origins: self.iter().map(|event| event.origin + 1).max().unwrap_or(1),
                });
            }
            if rounds == 1 && settled.0 == 0 {
                settled = (all.written, all.held);
            }
            let next = all.written / u64::from(ends) + all.written;
            if ends == ROUNDS_MAX || next > WRITTEN_MAX {
                let message = format!("too much to write after {ends} rounds");
                return Err(TraceError::Trace(message));
            }
        }
    }
}
