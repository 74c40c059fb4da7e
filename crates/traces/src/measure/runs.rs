//! Sequential runs of a trace.
//!
//! An I/O continues a run if it starts at the end of the run or slightly before, because logs
//! rewrite their last block when data are appended.

use writecliff_base::cursors::RUNS;

use crate::record::Record;

/// Sequential runs in a volume's I/Os.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunsOf {
    /// Run of each I/O, identified by the number of the run's first I/O.
    pub run: Vec<u32>,
    /// Distance in bytes by which a continuing I/O starts before the end of its run.
    pub back: Vec<u32>,
    /// Number of continuations of the most recently used open run, the second most recently used
    /// run, and so on, for reads and writes.
    pub ranks: [Vec<u64>; 2],
}

/// Maximum distance by which an I/O that continues a run may start before the run's end.
const BACK_MAX: u64 = 64 << 10;

/// Ends and numbers of the most recently used runs, with the most recent run last.
#[derive(Clone, Debug, Default)]
struct Ends(Vec<(u64, u32)>);

impl Ends {
    /// Returns the run that an I/O continues, and how many bytes before its end the I/O starts.
    fn take(&mut self, begin: u64, end: u64) -> Option<(u32, u64)> {
        let exact = self.0.iter().rposition(|run| run.0 == begin);
        // A repeated I/O extends a run only if it immediately follows that run. Otherwise, it
        // counts as an access to a hot address.
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

/// Returns the runs of reads and writes. Each flush or discard is a separate run.
pub fn runs_of(records: &[Record]) -> RunsOf {
    let mut ends = [Ends::default(), Ends::default()];
    let (mut run, mut back) = (Vec::new(), Vec::new());
    for (n, record) in (0..).zip(records) {
        let (mut of, mut by) = (n, 0);
        if record.operation.moves() {
            let end = record.offset_bytes + record.length_bytes;
            let ends = &mut ends[record.operation as usize];
            match ends.take(record.offset_bytes, end) {
                Some(pair) => (of, by) = pair,
                None => ends.begin(end, of),
            }
        }
        run.push(of);
        back.push(by as u32);
    }
    let ranks = ranks(records, &run);
    RunsOf { run, back, ranks }
}

/// Returns the number of continuations by rank of recent use, among runs that have not ended.
fn ranks(records: &[Record], run: &[u32]) -> [Vec<u64>; 2] {
    let mut left = vec![0_u32; run.len()];
    for begin in run {
        left[*begin as usize] += 1;
    }
    let mut active: [Vec<u32>; 2] = Default::default();
    let mut ranks = [vec![0; RUNS], vec![0; RUNS]];
    for (n, (record, begin)) in records.iter().zip(run).enumerate() {
        debug_assert!(*begin as usize <= n, "a run begins with its first I/O");
        left[*begin as usize] -= 1;
        let operation = record.operation as usize;
        let Some(of) = active.get_mut(operation) else { continue };
        if let Some(rank) = of.iter().rev().position(|other| other == begin) {
            ranks[operation][rank.min(RUNS - 1)] += 1;
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
    use crate::record::Operation;

    fn runs_at(operation: &[usize], offset: &[u64], length: &[u64]) -> RunsOf {
        let rows = operation.iter().zip(offset).zip(length);
        let record = |((&operation, &offset), &length): ((&usize, &u64), &u64)| {
            Record::new(0, Operation::ALL[operation], offset, length)
        };
        runs_of(&rows.map(record).collect::<Vec<_>>())
    }

    #[test]
    fn runs_that_take_turns_are_told_apart() {
        // The trace has two alternating runs of writes, a read that continues neither run, and a
        // flush.
        let operation = [1, 1, 0, 1, 1, 2, 1];
        let offset = [0, 1 << 20, 4096, 4096, (1 << 20) + 4096, 0, 8192];
        let runs = runs_at(&operation, &offset, &[4096, 4096, 4096, 4096, 4096, 0, 4096]);
        assert_eq!(runs.run, [0, 1, 2, 0, 1, 5, 0]);
        // The first run is the second most recent run when it is continued, and afterwards the
        // other run is. After these I/Os, only one run remains.
        assert_eq!(runs.ranks, [vec![], vec![1, 2]]);
        assert_eq!(runs.back, [0; 7]);
    }

    #[test]
    fn a_log_that_writes_its_last_block_again_is_a_run() {
        let runs =
            runs_at(&[1, 1, 1, 1], &[0, 8192, 8192, 200 << 10], &[12_288, 8192, 12_288, 512]);
        assert_eq!(runs.run, [0, 0, 0, 3]);
        assert_eq!(runs.back, [0, 4096, 8192, 0]);
        // A repeated I/O is a continuation only if it immediately follows the run.
        assert_eq!(runs_at(&[1, 1], &[0, 0], &[4096, 4096]).back, [0, 4096]);
        assert_eq!(runs_at(&[1; 3], &[0, 65_536, 0], &[4096; 3]).run, [0, 1, 2]);
    }
}
