//! Queue depth: the number of I/Os in flight when an I/O arrives, including the arriving I/O.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Maximum counted depth; larger depths are counted at this value.
const DEPTH_MAX: usize = 1 << 14;

#[derive(Debug, Default)]
pub(crate) struct Depths {
    /// Completion times of the I/Os in flight.
    open: BinaryHeap<Reverse<i64>>,
    /// Number of arrivals by depth, from 1.
    counts: Vec<u64>,
}

impl Depths {
    /// Adds an I/O and returns the queue depth at its arrival.
    #[inline]
    pub(crate) fn add(&mut self, time_ns: i64, response_ns: i64) -> usize {
        while self.open.peek().is_some_and(|done| done.0 <= time_ns) {
            self.open.pop();
        }
        let depth = (self.open.len() + 1).min(DEPTH_MAX);
        if self.counts.len() < depth {
            self.counts.resize(depth, 0);
        }
        self.counts[depth - 1] += 1;
        if self.open.len() < DEPTH_MAX {
            self.open.push(Reverse(time_ns.saturating_add(response_ns)));
        }
        depth
    }

    /// Iterates over the depths with their numbers of arrivals.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        (1..).zip(self.counts.iter().copied()).filter(|entry| entry.1 > 0)
    }

    pub(crate) fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub(crate) fn quantile(&self, q: f64) -> usize {
        let wanted = q * self.total() as f64;
        let mut below = 0;
        for (depth, count) in self.iter() {
            below += count;
            if below as f64 >= wanted {
                return depth;
            }
        }
        self.counts.len()
    }
}
