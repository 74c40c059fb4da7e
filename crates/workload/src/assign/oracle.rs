//! The oracle: streams by death time, which a first pass over the trace has found.
//!
//! Three ways to make buckets of death times; which is best depends on the trace, and a replay
//! tries them on the fast-forward clock and keeps the best:
//!
//! * **epochs**: time is cut into epochs; data that die in the same one share a stream, the streams
//!   take epochs in turn, and the last stream takes what dies beyond those (the future-knowledge
//!   scheme that SepBIT is measured against, with epochs in place of open segments);
//! * **lifetimes**: streams by the quantiles of how long data live, each with an equal share of the
//!   writes;
//! * **powers**: streams by bounds of the lifetime that grow by a factor of four.
//!
//! It bounds what an assignment by death time alone can win. It is no proof of an optimum: the best
//! placement under a given collection policy is not known.

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
}

/// Factor between bounds of `Powers`.
const GROWTH: u32 = 4;

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
            Bucketing::Epochs(_) => Vec::new(),
            Bucketing::Lifetimes => quantiles(deaths, usize::from(streams)),
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
            Bucketing::Lifetimes | Bucketing::Powers(_) => {
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
        }
    }
}

/// Lifetimes that cut the writes into `parts` of equal size, as far as they differ.
fn quantiles(deaths: &[u32], parts: usize) -> Vec<u32> {
    let lifetime = |(clock, &death): (usize, &u32)| match death {
        NEVER => NEVER,
        _ => death - clock as u32,
    };
    // A sample is enough, and the same each time.
    let step = deaths.len().div_ceil(1 << 20).max(1);
    let mut lives: Vec<u32> = deaths.iter().enumerate().step_by(step).map(lifetime).collect();
    lives.sort_unstable();
    let mut bounds: Vec<u32> =
        (1..parts).filter_map(|part| lives.get(part * lives.len() / parts).copied()).collect();
    bounds.dedup();
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
