//! Redraws the order in which data are overwritten for every round of a trace after the first.
//!
//! An unchanged repetition of a trace would repeat the order of its writes. All data of a reclaim
//! unit would then die together in the next round, and write amplification would be 1 regardless of
//! the program. A trace shows how often an address is written and which blocks are written
//! together, but not that the next overwrites happen in the same order. Each subsequent round
//! therefore exchanges the addresses of *cells*: ranges of a file that are always written as a
//! whole. Only cells of the same file with equal length and a similar number of writes are
//! exchanged, so hot data stay hot. All other properties of a round are as recorded: times, sizes,
//! sequential runs, and the order of overwrites within the round.
//!
//! Data retain their addresses
//!
//! * in files that the trace creates, truncates or deletes, because each round creates these files
//!   anew;
//! * in ranges that are trimmed, and in cells without an equivalent, for example a file written in
//!   one run;
//! * if the trace itself overwrites data in the order in which it wrote them.
//!
//! The order in which the program overwrites scattered data that retain their addresses and outlive
//! a round is unknown. Subsequent rounds repeat the trace's order and count these blocks.

use super::events::{FileOp, TraceEvent};
use writecliff_base::{Prng, SLOT_BYTES};

/// Label of the random generator that determines the order in a round.
const SEED_LABEL: u64 = 0x5245_4452;
/// Number of recent runs that a write can continue, one per sequential writer.
const RECENT_RUNS: usize = 8;
/// A write continues a run if it starts within this many write lengths of the run's end.
const REACH: u64 = 4;
/// Length of a run that counts as sequential regardless of its neighbours: 1 MiB.
const SEQUENTIAL: u64 = (1 << 20) / SLOT_BYTES;
/// Minimum number of overwrites for deciding whether their order repeats.
const PAIRS_MIN: u64 = 100;

/// Run: consecutive blocks of a file that are written together.
#[derive(Clone, Copy)]
struct Run {
    file: u32,
    first: u64,
    end: u64,
    /// Block after the last write.
    at: u64,
    /// `true` if other runs can replace the run: it has no gaps, and all rounds have its file.
    is_movable: bool,
}

/// Cells of a trace, and the classes of cells that are exchanged.
#[derive(Clone, Debug, Default)]
pub(super) struct Redraw {
    /// First cell of each file; the list has one more element than there are files.
    of_file: Vec<u32>,
    /// First block of each cell; `ends` contains the end of a file's last cell.
    firsts: Vec<u64>,
    ends: Vec<u64>,
    classes: Vec<Vec<u32>>,
    /// `true` if the cells of a class may be written more or less often than in the trace.
    independent: bool,
    /// Blocks that a round writes to the cells of classes.
    pub blocks: u64,
    /// Blocks that are at scattered addresses, live at the end of a round, and retain their
    /// addresses although the trace does not show the order in which they are overwritten.
    pub undrawn_blocks: u64,
}

/// Returns the blocks that an operation covers fully or partially.
fn blocks(event: &TraceEvent) -> (u64, u64) {
    (event.offset / SLOT_BYTES, (event.offset + event.length).div_ceil(SLOT_BYTES))
}

impl Redraw {
    pub(super) fn new(events: &[TraceEvent], files: u32) -> Self {
        let mut is_fixed = vec![true; files as usize];
        let mut is_deleted = vec![false; files as usize];
        let mut is_created = vec![false; files as usize];
        for event in events {
            let file = event.file as usize;
            is_fixed[file] &= matches!(event.op, FileOp::Write | FileOp::Punch | FileOp::Sync);
            is_created[file] |= event.op == FileOp::Create;
            is_deleted[file] = event.op == FileOp::Unlink;
        }
        let writes = || events.iter().filter(|event| event.op == FileOp::Write && event.length > 0);
        let mut all = runs(writes().filter(|event| is_fixed[event.file as usize]));
        let mut rest = runs(writes().filter(|event| !is_fixed[event.file as usize]));
        if repeats_its_order(&all) {
            all.clear();
        }
        if repeats_its_order(&rest) {
            rest.clear();
        }
        // A file created in one step is always replaced as a whole, never overwritten in place.
        let mut runs_of = vec![0_u32; files as usize];
        for run in &rest {
            runs_of[run.file as usize] += 1;
        }
        rest.retain(|run| {
            let file = run.file as usize;
            !is_deleted[file] && (runs_of[file] > 1 || !is_created[file])
        });
        all.extend(rest.into_iter().map(|run| Run { is_movable: false, ..run }));
        let punched = events.iter().filter(|e| e.op == FileOp::Punch && e.length > 0);
        let punched: Vec<_> = punched.map(|event| (event.file, blocks(event))).collect();
        Self::of_cells(&all, &punched, files)
    }

    fn of_cells(runs: &[Run], punched: &[(u32, (u64, u64))], files: u32) -> Self {
        let mut bounds: Vec<(u32, u64)> = Vec::with_capacity(2 * (runs.len() + punched.len()));
        bounds.extend(runs.iter().flat_map(|run| [(run.file, run.first), (run.file, run.end)]));
        bounds.extend(punched.iter().flat_map(|&(file, (a, b))| [(file, a), (file, b)]));
        bounds.sort_unstable();
        bounds.dedup();
        let at = |file, block| bounds.partition_point(|&bound| bound < (file, block));
        // Differences between adjacent cells in the counts of runs, and of runs that cannot move.
        let mut differences = vec![[0_i64; 3]; bounds.len()];
        let mut add = |file, first, end, counted: [bool; 3]| {
            for (n, counted) in counted.into_iter().enumerate() {
                differences[at(file, first)][n] += i64::from(counted);
                differences[at(file, end)][n] -= i64::from(counted);
            }
        };
        for run in runs {
            let is_scattered = run.end - run.first < SEQUENTIAL;
            add(run.file, run.first, run.end, [true, !run.is_movable, is_scattered]);
        }
        for &(file, (first, end)) in punched {
            add(file, first, end, [false, true, false]);
        }
        let mut redraw = Self::default();
        let mut keys = Vec::new();
        let mut undrawn = Vec::with_capacity(bounds.len());
        let mut counts = [0_u64; 4];
        let (mut count, mut is_fixed, mut is_scattered) = (0, 0, 0);
        for (index, &(file, first)) in bounds.iter().enumerate() {
            let [more, more_fixed, more_scattered] = differences[index];
            count += more;
            is_fixed += more_fixed;
            is_scattered += more_scattered;
            let next = bounds.get(index + 1).filter(|next| next.0 == file);
            let end = next.map_or(first, |next| next.1);
            redraw.firsts.push(first);
            redraw.ends.push(end);
            undrawn.push(if is_scattered > 0 { end - first } else { 0 });
            if count > 0 && is_fixed == 0 {
                keys.push((file, end - first, heat(count as u64), index as u32, count as u64));
                counts[count.min(3) as usize] += u64::from(count <= 3);
            }
        }
        keys.sort_unstable();
        for class in keys.chunk_by(|a, b| (a.0, a.1, a.2) == (b.0, b.1, b.2)) {
            if class.len() > 1 {
                redraw.blocks += class.iter().map(|cell| cell.1 * cell.4).sum::<u64>();
                for cell in class {
                    undrawn[cell.3 as usize] = 0;
                }
                redraw.classes.push(class.iter().map(|cell| cell.3).collect());
            }
        }
        assert_eq!((count, is_fixed, is_scattered), (0, 0, 0), "a run has no end");
        redraw.undrawn_blocks = undrawn.iter().sum();
        let first = |file| at(file, 0) as u32;
        redraw.of_file = (0..=files).map(first).collect();
        // The number of independent writes to a cell in a round has a Poisson distribution, unlike
        // those of a program that writes every cell once before it rewrites any cell.
        redraw.independent = counts[2] > 0 && 3 * counts[1] * counts[3] >= counts[2] * counts[2];
        redraw
    }

    pub(super) fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// Returns the replacement of each cell in a round of a copy.
    pub(super) fn draw(&self, round: u32, copy: u32) -> Vec<u32> {
        let mut random = Prng::derive(u64::from(copy) << 32 | u64::from(round), SEED_LABEL);
        let mut places: Vec<u32> = (0..self.firsts.len() as u32).collect();
        for class in &self.classes {
            let mut drawn = class.clone();
            for last in (1..drawn.len()).rev() {
                if self.independent {
                    drawn[last] = class[random.below(class.len() as u64) as usize];
                } else {
                    drawn.swap(last, random.below(last as u64 + 1) as usize);
                }
            }
            assert_eq!(drawn.len(), class.len(), "each cell of a class has a place");
            for (&cell, place) in class.iter().zip(drawn) {
                places[cell as usize] = place;
            }
        }
        places
    }

    /// Calls `apply` for each piece of a write, at the piece's address in the round of `places`.
    pub(super) fn each_part<E>(
        &self,
        write: &TraceEvent,
        file: u32,
        places: &[u32],
        mut apply: impl FnMut(&TraceEvent) -> Result<(), E>,
    ) -> Result<(), E> {
        let cells = self.of_file[file as usize] as usize..self.of_file[file as usize + 1] as usize;
        let (end, mut next) = (write.offset + write.length, write.offset);
        while next < end {
            let block = next / SLOT_BYTES;
            let after = self.firsts[cells.clone()].partition_point(|&first| first <= block);
            let cell = (cells.start + after).checked_sub(1).filter(|&cell| cell >= cells.start);
            let Some(cell) = cell.filter(|&cell| block < self.ends[cell]) else {
                return apply(&TraceEvent { offset: next, length: end - next, ..*write });
            };
            let length = end.min(self.ends[cell] * SLOT_BYTES) - next;
            let taken = places[cell] as usize;
            debug_assert!(length > 0, "no part of a write is left");
            debug_assert_eq!(
                self.ends[taken] - self.firsts[taken],
                self.ends[cell] - self.firsts[cell],
                "cells of a class have the same length"
            );
            let place = self.firsts[taken];
            let offset = next - self.firsts[cell] * SLOT_BYTES + place * SLOT_BYTES;
            apply(&TraceEvent { offset, length, ..*write })?;
            next += length;
        }
        Ok(())
    }
}

/// Returns the class of a write count. Classes are four standard deviations wide, so counts in a
/// class do not differ significantly.
fn heat(count: u64) -> u64 {
    count.isqrt() / 2
}

/// Merges writes that continue a recent run.
fn runs<'a>(writes: impl Iterator<Item = &'a TraceEvent>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    // Run indices; the most recently continued run is last.
    let mut recent: Vec<usize> = Vec::with_capacity(RECENT_RUNS + 1);
    for write in writes {
        let (first, end) = blocks(write);
        let reach = REACH * (end - first);
        let continues = |&index: &usize| {
            let run = &runs[index];
            run.file == write.file && run.at.abs_diff(first) <= reach
        };
        if let Some(nth) = recent.iter().rposition(continues) {
            let index = recent.remove(nth);
            let run = &mut runs[index];
            run.is_movable &= first <= run.end && end >= run.first;
            (run.first, run.end, run.at) = (run.first.min(first), run.end.max(end), end);
            recent.push(index);
            continue;
        }
        recent.push(runs.len());
        runs.push(Run { file: write.file, first, end, at: end, is_movable: true });
        if recent.len() > RECENT_RUNS {
            recent.remove(0);
        }
    }
    runs
}

/// Returns `true` if most runs overwrite earlier runs in the same order.
fn repeats_its_order(runs: &[Run]) -> bool {
    let mut by_address: Vec<usize> = (0..runs.len()).collect();
    by_address.sort_unstable_by_key(|&run| (runs[run].file, runs[run].first, run));
    let mut before = vec![usize::MAX; runs.len()];
    for two in by_address.windows(2) {
        let (a, b) = (&runs[two[0]], &runs[two[1]]);
        if (a.file, a.first) == (b.file, b.first) {
            before[two[1]] = two[0];
        }
    }
    let (mut pairs, mut repeated) = (0, 0);
    for two in before.windows(2).filter(|two| two[1] != usize::MAX) {
        pairs += 1;
        repeated += u64::from(two[0] != usize::MAX && two[1] == two[0] + 1);
    }
    pairs >= PAIRS_MIN && 2 * repeated > pairs
}
