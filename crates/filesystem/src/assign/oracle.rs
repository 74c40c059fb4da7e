//! Oracle scheme: assigns streams by the invalidation times that a first pass determines.
//!
//! Invalidation (death) times can be mapped to streams in several ways. The best mapping depends on
//! the trace, so a replay evaluates all mappings in fast-forward and uses the best:
//!
//! * **epochs**: divides time into epochs. Data that die in the same epoch share a stream. Streams
//!   are assigned to epochs round-robin, and the last stream takes data that die further in the
//!   future. This is the future-knowledge scheme that SepBIT is compared with, but with epochs
//!   instead of open segments;
//! * **lifetimes**: divides data by quantiles of their lifetime, so that each stream receives the
//!   same number of writes;
//! * **powers**: divides data at lifetime bounds that grow by a factor of four;
//! * **least spare**: chooses the lifetime bounds that need the least spare space if reclaim units
//!   are erased only when all their data are dead. Dead data in a stream wait for the longest-lived
//!   data in their reclaim unit. By Little's law, dead data occupy their write rate times that
//!   waiting time. Dynamic programming over lifetime quantiles finds the bounds with the smallest
//!   total over all streams;
//! * **given**: uses the streams in the trace, if rules assigned them.
//!
//! The oracle is therefore never worse than the rules, and it represents the best result of
//! lifetime-based assignment with these methods. The oracle is not a proven optimum: the optimal
//! data placement for a given garbage-collection policy is unknown.

use super::{Assigner, Piece, push_block};
use crate::{BlockRequest, NEVER};

/// Mapping of death times to streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bucketing {
    /// Epoch length in blocks written.
    Epochs(u32),
    /// Lifetime quantiles: each stream receives the same number of blocks.
    Lifetimes,
    /// The first lifetime bound, in blocks written.
    Powers(u32),
    /// Lifetime bounds that need the least spare space.
    LeastSpare,
    /// Ignores death times and uses the streams in the trace.
    Given,
}

/// Factor between successive lifetime bounds of `Powers`.
const GROWTH: u32 = 4;
/// Number of quantiles of each kind that are candidate bounds of `LeastSpare`.
const STEPS: usize = 256;

/// A scheme that knows when each block's data will be invalidated.
pub struct Oracle<'a> {
    deaths: &'a [u32],
    streams: u16,
    /// Epoch length, in blocks written; `None` if bounds determine the stream.
    epoch: Option<u32>,
    /// Ascending lifetime bounds: lifetimes below the first bound go to stream 0, lifetimes below
    /// the second bound to stream 1, and so on.
    bounds: Vec<u32>,
}

impl<'a> Oracle<'a> {
    /// Creates the oracle from the trace's death times, as returned by [`crate::deaths`].
    pub fn new(deaths: &'a [u32], streams: u16, bucketing: Bucketing) -> Self {
        let mut epoch = None;
        let bounds = match bucketing {
            Bucketing::Epochs(length) => {
                epoch = Some(length);
                Vec::new()
            }
            Bucketing::Given => unreachable!("`Scheme::assigner` handles given streams"),
            Bucketing::Lifetimes => quantiles(deaths, usize::from(streams)),
            Bucketing::LeastSpare => least_spare(deaths, usize::from(streams)),
            Bucketing::Powers(first) => {
                let next = |bound: &u32| Some(bound.saturating_mul(GROWTH));
                std::iter::successors(Some(first), next).take(usize::from(streams) - 1).collect()
            }
        };
        assert!(bounds.len() < usize::from(streams), "a stream beyond the last bound");
        debug_assert!(bounds.is_sorted());
        Self { deaths, streams, epoch, bounds }
    }

    #[inline]
    fn stream(&self, clock: u32) -> u16 {
        let death = self.deaths[clock as usize];
        debug_assert!(death == NEVER || death > clock, "data die before they are written");
        let far = self.streams - 1;
        let Some(length) = self.epoch else {
            let life = if death == NEVER { NEVER } else { death - clock };
            return self.bounds.partition_point(|&bound| bound <= life) as u16;
        };
        if death == NEVER || death / length - clock / length >= u32::from(far) {
            return far;
        }
        (death / length % u32::from(far)) as u16
    }
}

/// Returns the sorted lifetimes of a systematic sample of the writes; the sample is deterministic.
fn lifetimes(deaths: &[u32]) -> Vec<u32> {
    let lifetime = |(clock, &death): (usize, &u32)| match death {
        NEVER => NEVER,
        _ => death - clock as u32,
    };
    let step = deaths.len().div_ceil(1 << 20).max(1);
    let mut lives: Vec<u32> = deaths.iter().enumerate().step_by(step).map(lifetime).collect();
    lives.sort_unstable();
    lives
}

/// Returns the lifetime bounds of `parts` groups of writes of equal size, without duplicates.
fn quantiles(deaths: &[u32], parts: usize) -> Vec<u32> {
    let lives = lifetimes(deaths);
    let mut bounds: Vec<u32> =
        (1..parts).filter_map(|part| lives.get(part * lives.len() / parts).copied()).collect();
    bounds.dedup();
    bounds
}

/// Returns the lifetime bounds that minimise the waiting dead data; see the module documentation.
/// Data that outlive the trace count as having a lifetime equal to the trace length.
fn least_spare(deaths: &[u32], parts: usize) -> Vec<u32> {
    let mut lives = lifetimes(deaths);
    let whole = deaths.len() as u32;
    for life in &mut lives {
        *life = (*life).min(whole);
    }
    let sums: Vec<u64> = std::iter::once(0)
        .chain(lives.iter().scan(0, |sum, &life| {
            *sum += u64::from(life);
            Some(*sum)
        }))
        .collect();
    // Candidates for the first index of a bucket are quantiles by write count and by total
    // lifetime, because a few long-lived blocks matter as much as many short-lived blocks. Blocks
    // with equal lifetimes stay in one bucket.
    let total = sums[lives.len()] as u128;
    let by_count = (0..STEPS).map(|step| step * lives.len() / STEPS);
    let by_sum = (0..STEPS).map(|step| {
        let sum = (total * step as u128 / STEPS as u128) as u64;
        sums.partition_point(|&until| until <= sum).saturating_sub(1)
    });
    let mut cuts: Vec<usize> = by_count
        .chain(by_sum)
        .filter_map(|index| lives.get(index))
        .map(|&life| lives.partition_point(|&other| other < life))
        .collect();
    cuts.sort_unstable();
    cuts.dedup();
    cuts.push(lives.len());
    // Dead data of a bucket wait for the longest-lived data of the bucket.
    let waits = |from: usize, to: usize| {
        let (from, to) = (cuts[from], cuts[to]);
        u64::from(lives[to - 1]) * (to - from) as u64 - (sums[to] - sums[from])
    };
    let last = cuts.len() - 1;
    let parts = parts.min(last);
    // `best[end]` is the lowest total cost of the buckets up to the cut `end`; `begin[part][end]`
    // is the cut that starts the last bucket.
    let mut best: Vec<u64> =
        (0..=last).map(|end| if end == 0 { 0 } else { waits(0, end) }).collect();
    let mut begin = Vec::new();
    for part in 1..parts {
        let choose = |end: usize| {
            let options = (part..end).map(|from| (best[from] + waits(from, end), from));
            options.min().unwrap_or((u64::MAX, 0))
        };
        let chosen: Vec<(u64, usize)> = (0..=last).map(choose).collect();
        best = chosen.iter().map(|&(cost, _)| cost).collect();
        begin.push(chosen.into_iter().map(|(_, from)| from).collect::<Vec<_>>());
    }
    let mut end = last;
    let mut bounds: Vec<u32> = begin
        .iter()
        .rev()
        .map(|begin| {
            end = begin[end];
            lives[cuts[end]]
        })
        .collect();
    bounds.reverse();
    bounds
}

impl Assigner for Oracle<'_> {
    fn write(&mut self, request: &BlockRequest, clock: u32, pieces: &mut Vec<Piece>) {
        let begin = pieces.len();
        for i in 0..request.count {
            push_block(pieces, begin, self.stream(clock + i));
        }
    }
}
