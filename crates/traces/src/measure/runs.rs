//! The runs of a trace: which I/O continues which.
//!
//! An I/O continues a run if it begins where the run ended, as measures see it, or a little before:
//! logs write their last block again when it has got more.

use writecliff_base::cursors::RUNS;

use crate::record::Operation;

/// Sequential runs in the I/Os of a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunsOf {
    /// The run of each I/O, by the number of the I/O that began it.
    pub run: Vec<u32>,
    /// Bytes before the end of its run at which an I/O begins that continues one.
    pub back: Vec<u32>,
    /// Number of continuations of the most, second most ... recently used open run: of reads, and
    /// of writes.
    pub ranks: [Vec<u64>; 2],
}

/// An I/O that goes back by more begins a run.
const BACK_MAX: u64 = 64 << 10;

/// Ends of the runs that were used last, the latest one last, with their numbers.
#[derive(Clone, Debug, Default)]
struct Ends(Vec<(u64, u32)>);

impl Ends {
    /// Returns the run that an I/O continues, and by how much it goes back.
    fn take(&mut self, begin: u64, end: u64) -> Option<(u32, u64)> {
        let exact = self.0.iter().rposition(|run| run.0 == begin);
        // A repeated I/O continues a run only at once: else it is a place that is used often.
        let again = || {
            let last = self.0.last()?;
            (begin < last.0 && last.0 == end && end - begin <= BACK_MAX).then(|| self.0.len() - 1)
        };
        let near = || {
            let is_near = |end_of_run: u64| {
                begin < end_of_run && end_of_run < end && end_of_run - begin <= BACK_MAX
            };
            self.0.iter().rposition(|run| is_near(run.0))
        };
        let exact = exact.or_else(again);
        let (old, run) = self.0.remove(exact.or_else(near)?);
        debug_assert!(begin <= old && old - begin <= BACK_MAX, "{begin} does not continue {old}");
        self.0.push((end, run));
        Some((run, old - begin))
    }

    fn begin(&mut self, end: u64, run: u32) {
        if self.0.len() == RUNS {
            self.0.remove(0);
        }
        self.0.push((end, run));
    }
}

/// Finds the runs of reads and writes. Flushes and discards are runs of their own.
pub fn runs_of(operation: &[u8], offset: &[u64], length: &[u64]) -> RunsOf {
    let moves = |n: usize| Operation::ALL[usize::from(operation[n])].moves();
    let mut ends = [Ends::default(), Ends::default()];
    let (mut run, mut back) = (Vec::with_capacity(offset.len()), Vec::with_capacity(offset.len()));
    for n in 0..offset.len() {
        let (mut of, mut by) = (n as u32, 0);
        if moves(n) {
            let (ends, end) = (&mut ends[usize::from(operation[n])], offset[n] + length[n]);
            match ends.take(offset[n], end) {
                Some(pair) => (of, by) = pair,
                None => ends.begin(end, of),
            }
        }
        run.push(of);
        back.push(by as u32);
    }
    let ranks = ranks(operation, &run);
    RunsOf { run, back, ranks }
}

/// Returns the ranks by recent use of the runs that are continued, among those that are not at
/// their end.
fn ranks(operation: &[u8], run: &[u32]) -> [Vec<u64>; 2] {
    let mut left = vec![0_u32; run.len()];
    for begin in run {
        left[*begin as usize] += 1;
    }
    let mut active: [Vec<u32>; 2] = Default::default();
    let mut ranks = [vec![0; RUNS], vec![0; RUNS]];
    for (n, begin) in run.iter().enumerate() {
        debug_assert!(*begin as usize <= n, "a run begins with its first I/O");
        left[*begin as usize] -= 1;
        let Some(of) = active.get_mut(usize::from(operation[n])) else { continue };
        if let Some(rank) = of.iter().rev().position(|other| other == begin) {
            ranks[usize::from(operation[n])][rank.min(RUNS - 1)] += 1;
            let at = of.len() - 1 - rank;
            of.remove(at);
        }
        if left[*begin as usize] > 0 {
            of.push(*begin);
        }
    }
    for of in &mut ranks {
        while of.last() == Some(&0) {
            of.pop();
        }
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_take_turns_are_told_apart() {
        // Two runs of writes in turns, a read between that continues neither, and a flush.
        let operation = [1, 1, 0, 1, 1, 2, 1];
        let offset = [0, 1 << 20, 4096, 4096, (1 << 20) + 4096, 0, 8192];
        let runs = runs_of(&operation, &offset, &[4096, 4096, 4096, 4096, 4096, 0, 4096]);
        assert_eq!(runs.run, [0, 1, 2, 0, 1, 5, 0]);
        // The first run is second when continued; then the other one is; then it is alone.
        assert_eq!(runs.ranks, [vec![], vec![1, 2]]);
        assert_eq!(runs.back, [0; 7]);
    }

    #[test]
    fn a_log_that_writes_its_last_block_again_is_a_run() {
        let runs =
            runs_of(&[1, 1, 1, 1], &[0, 8192, 8192, 200 << 10], &[12_288, 8192, 12_288, 512]);
        assert_eq!(runs.run, [0, 0, 0, 3]);
        assert_eq!(runs.back, [0, 4096, 8192, 0]);
        // A repeated I/O is a continuation only at once.
        assert_eq!(runs_of(&[1, 1], &[0, 0], &[4096, 4096]).back, [0, 4096]);
        assert_eq!(runs_of(&[1; 3], &[0, 65_536, 0], &[4096; 3]).run, [0, 1, 2]);
    }
}
