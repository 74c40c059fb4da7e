//! Converts a whole trace into block requests to a drive.
//!
//! A trace is short compared with the drive life, so the trace is repeated until the drive reaches
//! steady state (see `rounds.rs`).

use std::ops::ControlFlow;

use super::TraceError;
use super::events::Events;
use super::layout::{BlockOp, BlockRequest, FileLayout, FileSystem};
use super::rounds::{Copies, Halt, written};
use writecliff_base::SLOT_BYTES;

/// Callback that receives the completed fraction (0 to 1) periodically and may stop the conversion.
pub type Watch<'a> = dyn FnMut(f64) -> ControlFlow<()> + 'a;

/// Number of trace repetitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Repeats {
    /// Number of rounds.
    Times(u32),
    /// Whole rounds until this many drive fills have been written.
    Fills(f64),
}

/// Space requirement and write volume of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Maximum number of blocks that files occupy at any time, in any round.
    pub peak_blocks: u64,
    /// Blocks that files occupy when the first copy of the trace ends.
    pub end_blocks: u64,
    /// Blocks written in one round of all copies.
    pub written_blocks: u64,
}

/// Mapping of a trace to a drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayOut {
    /// Drive capacity in blocks of 4 KiB.
    pub capacity_blocks: u32,
    /// File system behaviour.
    pub file_system: FileSystem,
    /// Number of repetitions.
    pub repeats: Repeats,
    /// Number of copies of the trace that run concurrently; at least 1.
    pub copies: u32,
}

/// Block requests generated from a trace.
#[derive(Clone, Debug)]
pub struct BlockTrace {
    /// Requests in the order that the drive receives them.
    pub requests: Vec<BlockRequest>,
    /// Drive capacity in blocks.
    pub capacity_blocks: u32,
    /// Blocks written by the requests.
    pub written_blocks: u64,
    /// Maximum number of blocks that files occupy at any time.
    pub peak_blocks: u64,
    /// Mean number of blocks that files occupy, averaged over the blocks written. The first round
    /// is excluded if there are more rounds.
    pub mean_blocks: u64,
    /// Rounds that all copies have completed.
    pub rounds: u32,
    /// Blocks per round of a copy that are written to addresses redrawn in each round, before the
    /// page cache merges writes.
    pub redrawn_blocks: u64,
    /// Blocks per round of a copy that remain at scattered addresses and are overwritten in the
    /// order of the trace, although the trace does not prove that the program repeats this order.
    pub undrawn_blocks: u64,
    /// Number of origins; all origin numbers are below this number.
    pub origins: u16,
}

impl BlockTrace {
    fn assert_consistent(&self) {
        assert_eq!(written(&self.requests), self.written_blocks, "requests write what is counted");
        let is_inside = |r: &BlockRequest| r.block + r.count <= self.capacity_blocks;
        assert!(self.requests.iter().all(is_inside), "a request beyond the end of the drive");
        assert!(self.mean_blocks <= self.peak_blocks, "the mean is above the peak");
    }
}

/// Limit on rounds, reached only by a trace that writes almost nothing to a large drive.
const ROUNDS_MAX: u32 = 1_000_000;
/// Clocks that count written blocks have 32 bits.
const WRITTEN_MAX: u64 = u32::MAX as u64 - 1;
/// Limit on the number of files of all copies, because file numbers index a table.
const FILES_MAX: u64 = 1 << 28;

impl Events {
    /// Measures the footprint of `copies` of the trace by running two rounds on an unbounded drive.
    pub fn footprint(&self, file_system: &FileSystem, copies: u32) -> Footprint {
        let mut unwatched = |_| ControlFlow::Continue(());
        match self.footprint_watched(file_system, copies, &mut unwatched) {
            ControlFlow::Continue(footprint) => footprint,
            ControlFlow::Break(()) => unreachable!("nothing stops it"),
        }
    }

    /// Returns the footprint, like [`Self::footprint`]; `watch` may stop the measurement.
    pub fn footprint_watched(
        &self,
        file_system: &FileSystem,
        copies: u32,
        watch: &mut Watch<'_>,
    ) -> ControlFlow<(), Footprint> {
        // Measure two rounds with one copy first, then run two rounds with all copies.
        let alone = u64::from(copies > 1);
        let whole = 2.0 * (self.all.len() as u64 * (u64::from(copies) + alone)).max(1) as f64;
        let mut before = 0.0;
        let mut round_blocks = 0;
        if copies > 1 {
            before = 2.0 * self.all.len() as f64 / whole;
            let mut first = |share: f64| watch(share * before);
            round_blocks = self.footprint_watched(file_system, 1, &mut first)?.written_blocks;
        }
        let mut look = |all: &Copies<'_>| watch(before + all.applied as f64 / whole);
        let mut layout = FileLayout::counted(u32::MAX, self.files * copies, *file_system);
        let mut all = Copies::new(self, copies, round_blocks);
        let mut footprint = Footprint { peak_blocks: 0, end_blocks: 0, written_blocks: 0 };
        let mut requests = Vec::new();
        while all.rounds() < 2 {
            // The address space of the unbounded drive ends at 16 TiB. A trace that fills the
            // unbounded drive does not fit on any drive, and the peak size of the trace shows this.
            match all.round(&mut layout, &mut requests, &mut look) {
                Ok(()) => {}
                Err(Halt::Full) => break,
                Err(Halt::Stopped) => return ControlFlow::Break(()),
            }
            if footprint.written_blocks == 0 {
                footprint.end_blocks = layout.live_blocks;
                footprint.written_blocks = all.written;
            }
            requests.clear();
        }
        if copies > 1 {
            footprint.written_blocks = round_blocks * u64::from(copies);
        }
        footprint.peak_blocks = layout.peak_blocks;
        ControlFlow::Continue(footprint)
    }

    /// Converts the trace into block requests.
    ///
    /// Fails with [`TraceError::OutOfSpace`] if the drive is too small for the files, with
    /// [`TraceError::Trace`] if the trace writes nothing or more than 32-bit clocks can count, and
    /// with [`TraceError::Stopped`] if `watch` stops it.
    pub fn lay_out(&self, how: &LayOut, watch: &mut Watch<'_>) -> Result<BlockTrace, TraceError> {
        let files = u64::from(self.files) * u64::from(how.copies);
        if how.copies == 0 || files > FILES_MAX {
            let message = format!(
                "{} copies of {} files are invalid: use at least 1 copy, and at most {FILES_MAX} \
                 files in total",
                how.copies, self.files
            );
            return Err(TraceError::Trace(message));
        }
        let mut requests = Vec::new();
        let round_blocks = match how.copies {
            1 => 0,
            _ => self.footprint(&how.file_system, 1).written_blocks,
        };
        let mut layout = FileLayout::new(how.capacity_blocks, files as u32, how.file_system);
        let mut all = Copies::new(self, how.copies, round_blocks);
        let (mut ended_rounds, mut settled) = (0, (0, 0));
        let mut look = |all: &Copies<'_>| watch(self.share(how, all));
        loop {
            all.round(&mut layout, &mut requests, &mut look).map_err(|halt| match halt {
                Halt::Stopped => TraceError::Stopped,
                Halt::Full => TraceError::OutOfSpace {
                    needed_bytes: self.footprint(&how.file_system, how.copies).peak_blocks
                        * SLOT_BYTES,
                    capacity_bytes: u64::from(how.capacity_blocks) * SLOT_BYTES,
                },
            })?;
            ended_rounds += 1;
            let rounds = all.rounds();
            if all.written == 0 {
                return Err(TraceError::Trace("no operation writes data".to_owned()));
            }
            let done = match how.repeats {
                Repeats::Times(times) => rounds >= times,
                Repeats::Fills(drives) => {
                    rounds > 0 && all.written as f64 >= drives * f64::from(how.capacity_blocks)
                }
            };
            if done {
                let (blocks, held) = (all.written - settled.0, all.held - settled.1);
                let trace = BlockTrace {
                    requests,
                    capacity_blocks: how.capacity_blocks,
                    written_blocks: all.written,
                    peak_blocks: layout.peak_blocks,
                    mean_blocks: (held / u128::from(blocks.max(1))) as u64,
                    rounds,
                    redrawn_blocks: all.redraw.blocks,
                    undrawn_blocks: all.redraw.undrawn_blocks,
                    origins: self.all.iter().map(|event| event.origin + 1).max().unwrap_or(1),
                };
                trace.assert_consistent();
                return Ok(trace);
            }
            if rounds == 1 && settled.0 == 0 {
                settled = (all.written, all.held);
            }
            let next = all.written / u64::from(ended_rounds) + all.written;
            if ended_rounds == ROUNDS_MAX || next > WRITTEN_MAX {
                let message = format!("over 16 TiB or {ROUNDS_MAX} rounds after {ended_rounds}");
                return Err(TraceError::Trace(message));
            }
        }
    }

    /// Returns the completed fraction: of rounds or data, but at most of the first round.
    fn share(&self, how: &LayOut, all: &Copies<'_>) -> f64 {
        let rounds = all.applied as f64 / (self.all.len() as f64 * f64::from(how.copies));
        let share = match how.repeats {
            Repeats::Times(times) => rounds / f64::from(times.max(1)),
            Repeats::Fills(drives) => {
                rounds.min(all.written as f64 / (drives * f64::from(how.capacity_blocks)))
            }
        };
        share.min(1.0)
    }
}

/// Death time of data that outlive the trace.
pub const NEVER: u32 = u32::MAX;

/// Returns, for each written block in write order, the clock value when its data die, or [`NEVER`].
///
/// Data die at the next write or TRIM of the same block. The clock counts blocks written by the
/// host because garbage collection depends on them and not on wall-clock time.
pub fn deaths(trace: &BlockTrace) -> Vec<u32> {
    let mut deaths = vec![NEVER; trace.written_blocks as usize];
    let mut last = vec![NEVER; trace.capacity_blocks as usize];
    let mut clock = 0;
    for request in &trace.requests {
        let blocks = request.block as usize..(request.block + request.count) as usize;
        for slot in &mut last[blocks] {
            if *slot != NEVER {
                deaths[*slot as usize] = clock;
            }
            *slot = NEVER;
            if request.op == BlockOp::Write {
                *slot = clock;
                clock += 1;
            }
        }
    }
    assert_eq!(u64::from(clock), trace.written_blocks, "each block that is written has a death");
    deaths
}
