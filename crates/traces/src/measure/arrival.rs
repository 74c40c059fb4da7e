//! Metrics over time: intervals, seconds and idle periods.

use super::histogram::WeightedHistogram;
use super::hll::Distinct;
use crate::record::{NO_RESPONSE, Record};

/// Maximum number of intervals; the interval length grows with the trace.
const INTERVALS: usize = 256;
/// Initial interval length. Interval lengths are powers of two, so that no division is needed.
const FIRST_BITS: u32 = 20;
const NS_PER_S: u64 = 1_000_000_000;
/// Maximum number of seconds that are counted individually, which corresponds to 97 days.
const SECONDS_MAX: usize = 1 << 23;
/// Minimum lengths of the idle periods that are counted.
pub(crate) const IDLE_NS: [u64; 5] =
    [1_000_000, 10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000];

/// I/Os in an interval, by operation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interval {
    pub(crate) ios: [u64; 4],
    pub(crate) bytes: [u64; 4],
    pub(crate) blocks: Distinct,
}

/// A whole trace, divided into at most 256 intervals of equal length.
#[derive(Debug)]
pub(crate) struct Timeline {
    /// Base-2 logarithm of the interval length in ns.
    bits: u32,
    pub(crate) intervals: Vec<Interval>,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { bits: FIRST_BITS, intervals: Vec::new() }
    }
}

impl Timeline {
    pub(crate) fn width_ns(&self) -> u64 {
        1 << self.bits
    }

    #[inline]
    pub(crate) fn at(&mut self, time_ns: u64) -> &mut Interval {
        let mut n = time_ns >> self.bits;
        while n >= INTERVALS as u64 {
            self.merge();
            n = time_ns >> self.bits;
        }
        let n = n as usize;
        if n >= self.intervals.len() {
            self.intervals.resize_with(n + 1, Interval::default);
        }
        &mut self.intervals[n]
    }

    /// Merges each pair of intervals.
    #[cold]
    fn merge(&mut self) {
        self.bits += 1;
        let mut merged = Vec::with_capacity(INTERVALS);
        let mut rest = std::mem::take(&mut self.intervals).into_iter();
        while let Some(mut interval) = rest.next() {
            if let Some(next) = rest.next() {
                for operation in 0..4 {
                    interval.ios[operation] += next.ios[operation];
                    interval.bytes[operation] += next.bytes[operation];
                }
                interval.blocks.merge(&next.blocks);
            }
            merged.push(interval);
        }
        self.intervals = merged;
    }
}

/// Arrivals per second, and interarrival times.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    seconds: Vec<u32>,
    /// Number of I/Os after the last counted second.
    pub(crate) uncounted: u64,
    pub(crate) between_ns: WeightedHistogram,
    last_ns: Option<u64>,
    /// Latest completion or arrival time of any I/O so far.
    busy_until_ns: u64,
    /// Number and total duration of the idle periods with at least each length.
    pub(crate) idle: [(u64, u64); IDLE_NS.len()],
    pub(crate) idle_longest_ns: u64,
}

/// Burstiness at a resolution of one second.
pub(crate) struct Bursts {
    pub(crate) seconds: usize,
    pub(crate) mean: f64,
    pub(crate) peak: u32,
    pub(crate) variance: f64,
}

impl Arrivals {
    #[inline]
    pub(crate) fn add(&mut self, record: &Record, time_ns: u64) {
        let second = (time_ns / NS_PER_S) as usize;
        if second < SECONDS_MAX {
            if second >= self.seconds.len() {
                self.seconds.resize(second + 1, 0);
            }
            self.seconds[second] = self.seconds[second].saturating_add(1);
        } else {
            self.uncounted += 1;
        }
        if let Some(last) = self.last_ns.filter(|last| *last <= time_ns) {
            self.between_ns.add(time_ns - last, 1.0);
            self.idle(time_ns.saturating_sub(self.busy_until_ns));
        }
        self.last_ns = Some(time_ns.max(self.last_ns.unwrap_or(0)));
        let response = if record.response_ns == NO_RESPONSE { 0 } else { record.response_ns };
        let done = time_ns.saturating_add(response.unsigned_abs());
        self.busy_until_ns = self.busy_until_ns.max(done);
    }

    #[inline]
    fn idle(&mut self, ns: u64) {
        if ns < IDLE_NS[0] {
            return;
        }
        for (least, (count, time)) in IDLE_NS.iter().zip(&mut self.idle) {
            if ns >= *least {
                *count += 1;
                *time += ns;
            }
        }
        self.idle_longest_ns = self.idle_longest_ns.max(ns);
    }

    pub(crate) fn bursts(&self) -> Bursts {
        let count = self.seconds.len().max(1) as f64;
        let mean = self.seconds.iter().map(|&ios| f64::from(ios)).sum::<f64>() / count;
        let square = |ios: &u32| (f64::from(*ios) - mean).powi(2);
        Bursts {
            seconds: self.seconds.len(),
            mean,
            peak: self.seconds.iter().copied().max().unwrap_or(0),
            variance: self.seconds.iter().map(square).sum::<f64>() / count,
        }
    }
}
