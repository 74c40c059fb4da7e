//! Sequential I/Os: runs that start at an address and are continued alternately.

use writecliff_base::Prng;
use writecliff_base::cursors::{Cursors, RUNS};

use crate::IoModel;
use crate::places::Starts;

/// A run: the address where it continues, and the number of bytes until its end.
#[derive(Clone, Copy, Debug)]
struct Run {
    end: u64,
    left: u64,
}

/// Runs of one operation.
struct OfOperation {
    /// Runs that have not reached their end, with the most recently used last.
    active: Vec<Run>,
    /// Ends of runs, as detected by the trace metrics.
    cursors: Cursors,
    last_end: Option<u64>,
    /// Weights of the ranks, and the weights that have not been drawn yet.
    ranks: Vec<u64>,
    left: Vec<u64>,
}

impl OfOperation {
    fn new(ranks: &[u64]) -> Self {
        let ranks = ranks.to_vec();
        Self {
            active: Vec::new(),
            cursors: Cursors::default(),
            last_end: None,
            left: ranks.clone(),
            ranks,
        }
    }

    fn rank(&mut self, random: &mut Prng) -> usize {
        if self.left.iter().all(|count| *count == 0) {
            self.left.clone_from(&self.ranks);
        }
        let total: u64 = self.left.iter().sum();
        if total == 0 {
            return 0;
        }
        let mut at = random.below(total);
        for (rank, count) in self.left.iter_mut().enumerate() {
            if at < *count {
                *count -= 1;
                return rank;
            }
            at -= *count;
        }
        0
    }

    /// Stores a run after an I/O that starts at `begin`, unless the run has reached its end.
    fn used(&mut self, begin: u64, run: Run) {
        debug_assert!(begin < run.end && self.active.len() <= RUNS, "an I/O without data");
        self.cursors.take(begin, run.end);
        self.last_end = Some(run.end);
        if run.left > 0 {
            self.active.push(run);
            if self.active.len() > RUNS {
                self.active.remove(0);
            }
        }
    }
}

pub(super) struct Runs {
    random: Prng,
    range: u64,
    of: [OfOperation; 3],
    /// Number of I/Os by stream that started a run instead of continuing one.
    owed: Vec<u64>,
}

impl Runs {
    pub(super) fn new(model: &IoModel, random: Prng) -> Self {
        let of = [&model.read_ranks[..], &model.write_ranks[..], &[]].map(OfOperation::new);
        let owed = vec![0; model.streams.lengths.len()];
        Self { random, range: model.range_bytes, of, owed }
    }

    /// Returns the address of the next I/O.
    pub(super) fn next(
        &mut self,
        operation: u8,
        length: u32,
        continues: Option<u32>,
        stream: usize,
        starts: &mut Starts,
    ) -> u64 {
        let length = u64::from(length);
        let number = match operation {
            b'r' => 0,
            b'w' => 1,
            _ => 2,
        };
        let (of, range) = (&mut self.of[number], self.range);
        // Runs that the trace metrics no longer track would not count as sequential.
        let cursors = &of.cursors;
        of.active.retain(|run| cursors.has(run.end));
        let owed = &mut self.owed[stream];
        let back = u64::from(continues.unwrap_or(0)).min(length);
        let continues = match (continues.is_some(), of.active.is_empty()) {
            // All runs have ended, so the stream can start its next run. Start this run now, and
            // let a later I/O that would have started a run continue a run instead.
            (true, true) if starts.begins_run(stream, length) => {
                *owed += 1;
                false
            }
            (false, false) if *owed > 0 => {
                *owed -= 1;
                true
            }
            (as_drawn, _) => as_drawn,
        };
        if continues && let Some(at) = continued(of, (length, back), range, &mut self.random) {
            return at;
        }
        let start = starts.next(stream, |at| of.cursors.has(at));
        let left = start.run_bytes.min(range - start.offset).saturating_sub(length);
        debug_assert!(start.offset + length <= range, "a place ends beyond the range");
        of.used(start.offset, Run { end: start.offset + length, left });
        start.offset
    }
}

/// Continues a run `back` bytes before its end; without a run, continues the last I/O.
fn continued(
    of: &mut OfOperation,
    (length, back): (u64, u64),
    range: u64,
    random: &mut Prng,
) -> Option<u64> {
    let more = length - back;
    let rank = of.rank(random);
    let run = match of.active.len() {
        0 => Run { end: of.last_end?, left: 0 },
        active => {
            let drawn = active - 1 - rank.min(active - 1);
            let waiting = active > of.ranks.len();
            let fits = !waiting && of.active[drawn].left >= more;
            of.active.remove(if fits { drawn } else { best(&of.active, more) })
        }
    };
    let begin = run.end.checked_sub(back)?;
    let end = begin.checked_add(length).filter(|end| *end <= range)?;
    of.used(begin, Run { end, left: run.left.saturating_sub(more) });
    Some(begin)
}

/// Returns the run that an I/O completes exactly. If there is none, returns the least recently used
/// run that is longer, otherwise the run with the most bytes left.
fn best(active: &[Run], length: u64) -> usize {
    let at = active.iter().position(|run| run.left == length);
    let at = at.or_else(|| active.iter().position(|run| run.left > length));
    let most = || (0..active.len()).max_by_key(|n| active[*n].left).unwrap_or(0);
    at.unwrap_or_else(most)
}
