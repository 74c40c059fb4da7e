//! Benefit of data separation: hot and cold data under random overwrites, and sequential writers
//! with different lifetimes, on drives with different stream policies.

use std::cmp::Reverse;

use writecliff_base::{Lpn, Prng, StreamId};
use writecliff_ftl::theory::{self, Class};
use writecliff_ftl::{ConfigError, FastForward, Ftl};

use super::{Policies, WafCase, WafRow, drive, measure};

/// Host workload.
#[derive(Clone, Copy, Debug)]
pub enum PlacementLoad {
    /// The fraction `writes` of the overwrites goes to the first fraction `data` of the capacity,
    /// both at random.
    #[allow(missing_docs, reason = "the variant defines both")]
    HotCold { data: f64, writes: f64 },
    /// Four sequential writers; see `Lifetimes`. Each request has `request` slots.
    #[allow(missing_docs, reason = "the variant defines both")]
    Sequential { reading: Lifetimes, request: u32 },
}

/// Interpretations of "four sequential writers, lifetimes 1x, 10x, 33x, 55x". The lifetime of a
/// range is the time until it has been overwritten once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lifetimes {
    /// Ranges of 1 : 10 : 33 : 55 (in units of 1/99 of the capacity), written at equal rates.
    BySize,
    /// Equal ranges, written at rates of 1 : 1/10 : 1/33 : 1/55.
    ByRate,
}

/// Lifetimes of the sequential writers, as in the multi-stream experiment that Samsung presented at
/// the Flash Memory Summit 2016: each range is overwritten 1, 10, 33 or 55 times as slowly as the
/// first range.
const LIFETIMES: [u64; 4] = [1, 10, 33, 55];
/// Least common multiple of the lifetimes.
const COMMON_LIFETIME: u64 = 330;

/// Measures one case. The theoretical value applies to the best possible policy: the optimal split
/// of spare space for hot and cold data, and no copying for sequential writers. With `streams`,
/// each data class has a separate stream; otherwise, all data go to the default stream.
pub fn data_placement(
    case: &WafCase,
    load: PlacementLoad,
    streams: bool,
    how: Policies,
) -> Result<WafRow, ConfigError> {
    let classes = match load {
        PlacementLoad::HotCold { .. } => 2,
        PlacementLoad::Sequential { .. } => LIFETIMES.len() as u16,
    };
    let mut ftl = drive(case, if streams { classes } else { 1 }, how)?;
    let user = u64::from(ftl.user_slots());
    let alpha = 1.0 / (1.0 + case.overprovision);
    match load {
        PlacementLoad::HotCold { data, writes } => {
            let mut host = HotCold::new(user, data, writes, streams, case.seed);
            host.fill(&mut ftl);
            let waf_measured = measure(&mut ftl, case, |ftl| host.write(ftl));
            let rest = Class { data: 1.0 - data, writes: 1.0 - writes };
            let best = theory::best_split(&[Class { data, writes }, rest], alpha, case.slots);
            Ok(WafRow { waf_measured, waf_theory: best.1 })
        }
        PlacementLoad::Sequential { reading, request } => {
            let mut host = Writers::new(user, reading, request, streams);
            host.fill(&mut ftl);
            let waf_measured = measure(&mut ftl, case, |ftl| host.write(ftl));
            Ok(WafRow { waf_measured, waf_theory: 1.0 })
        }
    }
}

struct HotCold {
    user: u64,
    hot: u64,
    writes: f64,
    streams: bool,
    random: Prng,
}

impl HotCold {
    fn new(user: u64, data: f64, writes: f64, streams: bool, seed: u64) -> Self {
        let hot = (data * user as f64) as u64;
        Self { user, hot, writes, streams, random: Prng::new(seed) }
    }

    fn stream(&self, lpn: u64) -> StreamId {
        StreamId(u16::from(self.streams && lpn >= self.hot))
    }

    fn fill(&self, ftl: &mut Ftl) {
        for lpn in 0..self.user {
            ftl.write(Lpn(lpn as u32), self.stream(lpn), 4096, &mut FastForward);
        }
    }

    fn write(&mut self, ftl: &mut Ftl) -> u64 {
        let lpn = if self.random.unit() < self.writes {
            self.random.below(self.hot)
        } else {
            self.hot + self.random.below(self.user - self.hot)
        };
        ftl.write(Lpn(lpn as u32), self.stream(lpn), 4096, &mut FastForward);
        1
    }
}

/// Writers that cycle through their ranges. A request that reaches the end of its range continues
/// at the start, so requests have different offsets on every pass. Smooth weighted round-robin
/// selects the next writer deterministically: each writer earns credit at its rate, and the writer
/// with the most credit (ties go to the lowest number) pays for the request.
struct Writers {
    ranges: [(u64, u64); 4],
    /// Position, credit and rate of each writer.
    at: [u64; 4],
    credit: [i64; 4],
    rate: [i64; 4],
    request: u64,
    streams: bool,
}

impl Writers {
    fn new(user: u64, reading: Lifetimes, request: u32, streams: bool) -> Self {
        let shares = match reading {
            Lifetimes::BySize => LIFETIMES,
            Lifetimes::ByRate => [1; 4],
        };
        let total: u64 = shares.iter().sum();
        let mut start = 0;
        let ranges = shares.map(|share| {
            let range = (start, user * share / total);
            start += range.1;
            range
        });
        // The rates are proportional to 1/lifetime and are integers.
        let rate = match reading {
            Lifetimes::BySize => [1; 4],
            Lifetimes::ByRate => LIFETIMES.map(|life| (COMMON_LIFETIME / life) as i64),
        };
        Self { ranges, at: [0; 4], credit: [0; 4], rate, request: u64::from(request), streams }
    }

    fn put(&self, ftl: &mut Ftl, writer: usize, slot: u64) {
        let stream = StreamId(if self.streams { writer as u16 } else { 0 });
        let lpn = Lpn((self.ranges[writer].0 + slot) as u32);
        ftl.write(lpn, stream, 4096, &mut FastForward);
    }

    /// Writes every range once, one range after another.
    fn fill(&self, ftl: &mut Ftl) {
        for (writer, &(_, length)) in self.ranges.iter().enumerate() {
            for slot in 0..length {
                self.put(ftl, writer, slot);
            }
        }
    }

    fn write(&mut self, ftl: &mut Ftl) -> u64 {
        let writer = self.next_writer();
        for _ in 0..self.request {
            let slot = self.at[writer];
            self.put(ftl, writer, slot);
            self.at[writer] = (slot + 1) % self.ranges[writer].1;
        }
        self.request
    }

    fn next_writer(&mut self) -> usize {
        for (credit, rate) in self.credit.iter_mut().zip(self.rate) {
            *credit += rate;
        }
        let richest = (0..4).max_by_key(|&w| (self.credit[w], Reverse(w))).unwrap_or(0);
        self.credit[richest] -= self.rate.iter().sum::<i64>();
        richest
    }
}

#[cfg(test)]
mod tests {
    use writecliff_ftl::gc_policy::GcPolicy;

    use crate::{WafCase, streams};

    #[test]
    fn writers_in_their_own_streams_have_no_amplification() {
        for (overprovision, units, slots) in [(0.07, 512, 64), (0.25, 300, 32)] {
            let policy = GcPolicy::Greedy;
            let (seed, warm_up, measured) = (1, 3, 3);
            let case = WafCase { policy, overprovision, units, slots, seed, warm_up, measured };
            let row = streams(&case).unwrap();
            assert_eq!((row.waf_measured, row.waf_theory), (1.0, 1.0), "{case:?}");
        }
    }
}
