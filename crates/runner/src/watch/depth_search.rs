//! Search for the largest queue depth that meets a latency target, as in fio. The depth doubles
//! from 1 while the target is met, and is then bisected between the largest depth that met the
//! target and the smallest depth that did not.
//!
//! A window counts I/Os by latency histogram bucket, so latencies up to 1.6 % above the target may
//! count as within the target. After a change of depth, one interval is skipped while I/Os of the
//! previous depth complete. The final depth is measured again for one more window.

use writecliff_measure::{OPERATIONS, OperationOutcome};
use writecliff_workload::LatencyTarget;

use super::{EndedBy, Verdict};

pub(super) struct DepthSearch {
    target: LatencyTarget,
    pub(super) depth: u32,
    /// Largest depth that met the target, and smallest depth that did not.
    low: u32,
    high: Option<u32>,
    most: u32,
    /// `true` if the depth is determined and is being measured once more.
    is_last: bool,
    /// Duration of the window so far; `None` while I/Os of the previous depth complete.
    window_ns: Option<u64>,
    /// Number of I/Os, and of I/Os within the target, at the start of the window.
    before: (u64, u64),
}

impl DepthSearch {
    pub(super) fn new(target: LatencyTarget, most: u32) -> Self {
        let (depth, low, high) = (1, 1, None);
        let (is_last, window_ns, before) = (false, Some(0), (0, 0));
        Self { target, depth, low, high, most, is_last, window_ns, before }
    }

    /// Adds an interval.
    pub(super) fn judge(
        &mut self,
        interval_ns: u64,
        results: &[OperationOutcome; OPERATIONS],
    ) -> Verdict {
        let now = self.counts(results);
        let Some(passed_ns) = self.window_ns else {
            (self.window_ns, self.before) = (Some(0), now);
            return Verdict::Continue;
        };
        let passed_ns = passed_ns + interval_ns;
        self.window_ns = Some(passed_ns);
        if passed_ns < self.target.window_ns || now.0 == self.before.0 {
            return Verdict::Continue;
        }
        let (ios, within) = (now.0 - self.before.0, now.1 - self.before.1);
        let is_met = 100.0 * within as f64 / ios as f64 >= self.target.percentile;
        (self.window_ns, self.before) = (Some(0), now);
        if is_met { self.met() } else { self.missed() }
    }

    /// Returns the numbers of all I/Os of the job and of I/Os within the target.
    fn counts(&self, results: &[OperationOutcome; OPERATIONS]) -> (u64, u64) {
        let buckets = || results.iter().flat_map(|result| result.service.buckets());
        let within = buckets().filter(|(lower, _, _)| *lower <= self.target.latency_ns);
        (buckets().map(|bucket| bucket.2).sum(), within.map(|bucket| bucket.2).sum())
    }

    fn met(&mut self) -> Verdict {
        if self.is_last {
            return Verdict::End(EndedBy::LatencyTarget);
        }
        self.low = self.depth;
        let next = self.high.map_or(2 * self.depth, |high| self.depth.midpoint(high));
        self.change(next.min(self.most))
    }

    fn missed(&mut self) -> Verdict {
        self.is_last = false;
        if self.depth == 1 {
            return Verdict::Continue;
        }
        self.high = Some(self.depth);
        if self.low == self.depth {
            self.low -= 1;
        }
        self.change(self.depth.midpoint(self.low))
    }

    fn change(&mut self, depth: u32) -> Verdict {
        assert!((1..=self.most).contains(&depth), "queue depth {depth} of {}", self.most);
        assert!(self.low <= depth && self.high.is_none_or(|high| depth < high));
        if depth != self.depth {
            (self.depth, self.window_ns) = (depth, None);
            return Verdict::Depth(depth);
        }
        if self.target.keeps_running {
            return Verdict::Continue;
        }
        (self.is_last, self.before) = (true, (0, 0));
        Verdict::Afresh(depth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: u64 = 1_000_000;

    /// Returns the sequence of verdicts for a drive whose I/O latency is 10 us times the depth.
    fn search(latency_ns: u64, most: u32, keeps_running: bool, intervals: usize) -> Vec<Verdict> {
        let target =
            LatencyTarget { latency_ns, percentile: 99.0, window_ns: 3 * INTERVAL, keeps_running };
        let mut search = DepthSearch::new(target, most);
        let mut results: [OperationOutcome; OPERATIONS] = Default::default();
        let mut verdicts = Vec::new();
        for _ in 0..intervals {
            results[1].service.record_many(10_000 * u64::from(search.depth), 1000);
            let verdict = search.judge(INTERVAL, &results);
            if verdict != Verdict::Continue {
                verdicts.push(verdict);
            }
            match verdict {
                Verdict::Afresh(_) => results = Default::default(),
                Verdict::End(_) => break,
                _ => {}
            }
        }
        verdicts
    }

    #[test]
    fn the_largest_depth_within_the_target_is_found_and_measured_afresh() {
        let verdicts = search(105_000, 64, false, 1000);
        assert_eq!(verdicts[..4], [2, 4, 8, 16].map(Verdict::Depth), "doubled until a miss");
        let last = &verdicts[verdicts.len() - 2..];
        assert_eq!(last, [Verdict::Afresh(10), Verdict::End(EndedBy::LatencyTarget)]);
    }

    #[test]
    fn the_job_s_depth_is_the_largest_and_1_the_smallest() {
        let met = search(1_000_000, 4, false, 1000);
        assert_eq!(met[..3], [Verdict::Depth(2), Verdict::Depth(4), Verdict::Afresh(4)]);
        assert_eq!(search(5_000, 4, false, 1000), []);
    }

    #[test]
    fn a_search_that_keeps_running_ends_by_itself_never() {
        let verdicts = search(105_000, 64, true, 1000);
        assert!(verdicts.iter().all(|verdict| matches!(verdict, Verdict::Depth(_))));
        assert_eq!(verdicts.last(), Some(&Verdict::Depth(10)));
    }
}
