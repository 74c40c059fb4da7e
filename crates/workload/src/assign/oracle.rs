//! The oracle: streams by death time, which a first pass over the trace has found.
//!
//! Several ways to make streams of death times; which is best depends on the trace, and a replay
//! tries them all on the fast-forward clock and keeps the best:
//!
//! * **epochs**: time is cut into epochs; data that die in the same one share a stream, the streams
//!   take epochs in turn, and the last stream takes what dies beyond those (the future-knowledge
//!   scheme that SepBIT is measured against, with epochs in place of open segments);
//! * **lifetimes**: streams by the quantiles of how long data live, each with an equal share of the
//!   writes;
//! * **powers**: streams by bounds of the lifetime that grow by a factor of four;
//! * **least spare**: the bounds of the lifetime with which units that die whole need the least
//!   spare space. Data of a stream wait, dead, for the longest-lived of their unit; by Little's law
//!   they take their rate times that time. The bounds with the least sum over all streams are found
//!   exactly, among quantiles of the lifetime, by dynamic programming;
//! * **given**: the streams of the trace, where it has rules.
//!
//! So it is never worse than the rules, and a bound on assignment by lifetime as far as these ways
//! reach. It is no proof of an optimum: the best placement under a given collection policy is not
//! known.

use super::{Assigner, Piece, push_block};
use crate::trace::{BlockRequest, NEVER};

/// How death times become streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bucketing {
    /// Blocks written in an epoch.
    Epochs(u32),
    Lifetimes,
    /// The first bound.
    Powers(u32),
    LeastSpare,
    /// Not by death times, but as the trace has it.
    Given,
}

/// Factor between bounds of `Powers`.
const GROWTH: u32 = 4;
/// Quantiles of each kind that bounds of `LeastSpare` are chosen from.
const STEPS: usize = 256;

pub struct Oracle<'a> {
    deaths: &'a [u32],
    streams: u16,
    bucketing: Bucketing,
    /// Lifetimes below the first go to stream 0, below the second to stream 1, and so on.
    bounds: Vec<u32>,
}

impl<'a> Oracle<'a> {
    /// `deaths` are those of the trace, see [`crate::trace::deaths`].
    pub fn new(deaths: &'a [u32], streams: u16, bucketing: Bucketing) -> Self {
        let bounds = match bucketing {
            Bucketing::Epochs(_) | Bucketing::Given => Vec::new(),
            Bucketing::Lifetimes => quantiles(deaths, usize::from(streams)),
            Bucketing::LeastSpare => least_spare(deaths, usize::from(streams)),
            Bucketing::Powers(first) => (1..streams)
                .scan(first, |bound, _| {
                    let here = *bound;
                    *bound = bound.saturating_mul(GROWTH);
                    Some(here)
                })
                .collect(),
        };
        Self { deaths, streams, bucketing, bounds }
    }

    #[inline]
    fn stream(&self, clock: u32) -> u16 {
        let death = self.deaths[clock as usize];
        let far = self.streams - 1;
        match self.bucketing {
            Bucketing::Lifetimes | Bucketing::Powers(_) | Bucketing::LeastSpare => {
                let life = if death == NEVER { NEVER } else { death - clock };
                self.bounds.partition_point(|&bound| bound <= life) as u16
            }
            Bucketing::Epochs(length) => {
                if death == NEVER {
                    return far;
                }
                let ahead = death / length - clock / length;
                if ahead < u32::from(far) { (death / length % u32::from(far)) as u16 } else { far }
            }
            Bucketing::Given => unreachable!("whole requests have a stream then"),
        }
    }
}

/// Lifetimes of a sample, the same each time, in order.
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

/// Lifetimes that cut the writes into `parts` of equal size, as far as they differ.
fn quantiles(deaths: &[u32], parts: usize) -> Vec<u32> {
    let lives = lifetimes(deaths);
    let mut bounds: Vec<u32> =
        (1..parts).filter_map(|part| lives.get(part * lives.len() / parts).copied()).collect();
    bounds.dedup();
    bounds
}

/// Bounds that leave the least dead data waiting, see the head of this file. What outlives the
/// trace counts as living for all of it.
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
    // Candidates for the first index of a bucket: quantiles of the writes and of their lifetimes'
    // sum, as a few that live long matter as much as many that do not. Equals stay together.
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
    // Dead data of the bucket between two cuts: each waits for the longest-lived.
    let waits = |from: usize, to: usize| {
        let (from, to) = (cuts[from], cuts[to]);
        u64::from(lives[to - 1]) * (to - from) as u64 - (sums[to] - sums[from])
    };
    let last = cuts.len() - 1;
    let parts = parts.min(last);
    // best[end]: the least with the buckets so far up to that cut; begin[part][end]: their last
    // one.
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
        if self.bucketing == Bucketing::Given {
            let stream = if request.stream < self.streams { request.stream } else { 0 };
            pieces.push(Piece { count: request.count, stream });
            return;
        }
        for i in 0..request.count {
            push_block(pieces, begin, self.stream(clock + i));
        }
    }
}
