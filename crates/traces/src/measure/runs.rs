//! The runs of a trace: which I/O continues which, as its measures see it.

use writecliff_base::cursors::{Cursors, RUNS};

use crate::record::Operation;

/// What belongs together in the I/Os of a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunsOf {
    /// The run of each I/O, by the number of the I/O that began it.
    pub run: Vec<u32>,
    /// How often the run was continued that was the most, second most ... recently used one of
    /// those that go on: of reads, and of writes.
    pub ranks: [Vec<u64>; 2],
}

/// Finds the runs of reads and writes. Flushes and discards are runs of their own.
pub fn runs_of(operation: &[u8], offset: &[u64], length: &[u64]) -> RunsOf {
    let moves = |n: usize| Operation::ALL[usize::from(operation[n])].moves();
    let mut cursors = [Cursors::default(), Cursors::default()];
    let mut begins = [[0_u32; RUNS]; 2];
    let mut run = Vec::with_capacity(offset.len());
    for n in 0..offset.len() {
        let mut of = n as u32;
        if moves(n) {
            let which = usize::from(operation[n]);
            let (slot, continues) = cursors[which].place(offset[n], offset[n] + length[n]);
            let begin = &mut begins[which][slot];
            *begin = if continues { *begin } else { of };
            of = *begin;
        }
        run.push(of);
    }
    let ranks = ranks(operation, &run);
    RunsOf { run, ranks }
}

/// The ranks by recent use of the runs that are continued, among those that are not at their end.
fn ranks(operation: &[u8], run: &[u32]) -> [Vec<u64>; 2] {
    let mut left = vec![0_u32; run.len()];
    for begin in run {
        left[*begin as usize] += 1;
    }
    let mut active: [Vec<u32>; 2] = Default::default();
    let mut ranks = [vec![0; RUNS], vec![0; RUNS]];
    for (n, begin) in run.iter().enumerate() {
        left[*begin as usize] -= 1;
        let Some(of) = active.get_mut(usize::from(operation[n])) else { continue };
        if let Some(rank) = of.iter().rev().position(|one| one == begin) {
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
        let found = runs_of(&operation, &offset, &[4096, 4096, 4096, 4096, 4096, 0, 4096]);
        assert_eq!(found.run, [0, 1, 2, 0, 1, 5, 0]);
        // The first run is second when continued; then the other one is; then it is alone.
        assert_eq!(found.ranks, [vec![], vec![1, 2]]);
    }
}
