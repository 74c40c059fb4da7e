//! Steady state by fio's criteria: over the last window, either no value deviates from the mean by
//! more than the limit, or the slope of the least-squares line per value is below the limit.

use std::collections::VecDeque;

use writecliff_workload::{Metric, SteadyEnd};

use super::Activity;

pub(super) struct Steadiness {
    spec: SteadyEnd,
    /// Last values, at most one window.
    values: VecDeque<f64>,
    /// Activity since the last value.
    done: Activity,
    since_ns: u64,
}

impl Steadiness {
    pub(super) fn new(spec: SteadyEnd) -> Self {
        Self { spec, values: VecDeque::new(), done: Activity::default(), since_ns: 0 }
    }

    /// Adds an interval that ends `now_ns` after the job's start.
    pub(super) fn is_attained(
        &mut self,
        now_ns: u64,
        interval_ns: u64,
        activity: &Activity,
    ) -> bool {
        if now_ns - interval_ns < self.spec.ramp_ns {
            self.since_ns = now_ns;
            return false;
        }
        self.done.ios += activity.ios;
        self.done.bytes += activity.bytes;
        self.done.latency_sum_ns += activity.latency_sum_ns;
        let passed_ns = now_ns - self.since_ns;
        if passed_ns < self.spec.check_ns {
            return false;
        }
        self.since_ns = now_ns;
        let value = value_of(self.spec.metric, &std::mem::take(&mut self.done), passed_ns);
        self.values.push_back(value);
        if self.values.len() > self.spec.values() {
            self.values.pop_front();
        }
        self.values.len() == self.spec.values() && self.criterion() < self.spec.limit
    }

    fn criterion(&self) -> f64 {
        let values = || self.values.iter().copied();
        assert!(self.values.len() >= 2, "a slope needs two values");
        let count = self.values.len() as f64;
        let mean = values().sum::<f64>() / count;
        let criterion = if self.spec.slope {
            let middle = (count - 1.0) / 2.0;
            let times = || (0..self.values.len()).map(|i| i as f64 - middle);
            let rise: f64 = times().zip(values()).map(|(time, value)| time * (value - mean)).sum();
            (rise / times().map(|time| time * time).sum::<f64>()).abs()
        } else {
            values().map(|value| (value - mean).abs()).fold(0.0, f64::max)
        };
        if !self.spec.relative {
            return criterion;
        }
        if mean > 0.0 { 100.0 * criterion / mean } else { f64::INFINITY }
    }
}

fn value_of(metric: Metric, done: &Activity, passed_ns: u64) -> f64 {
    let seconds = passed_ns as f64 / 1e9;
    match metric {
        Metric::Iops => done.ios as f64 / seconds,
        Metric::Bandwidth => done.bytes as f64 / seconds,
        Metric::Latency => done.latency_sum_ns / done.ios.max(1) as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(slope: bool, limit: f64) -> SteadyEnd {
        SteadyEnd {
            metric: Metric::Iops,
            slope,
            limit,
            relative: true,
            window_ns: 4_000_000_000,
            check_ns: 1_000_000_000,
            ramp_ns: 2_000_000_000,
        }
    }

    /// Returns the time in seconds after which the job is steady.
    fn attained(spec: SteadyEnd, ios: &[u64]) -> Option<usize> {
        let mut steady = Steadiness::new(spec);
        let second = |i: usize| (i as u64 + 1) * 1_000_000_000;
        (0..ios.len()).find_map(|i| {
            let activity = Activity { ios: ios[i], bytes: 0, latency_sum_ns: 0.0 };
            steady.is_attained(second(i), 1_000_000_000, &activity).then_some(i + 1)
        })
    }

    #[test]
    fn a_window_within_the_limit_after_the_ramp_is_steady() {
        assert_eq!(attained(spec(false, 5.0), &[100; 10]), Some(6));
        // A value with a larger deviation prevents steady state until the value has left the
        // window.
        assert_eq!(attained(spec(false, 5.0), &[1, 1, 100, 200, 100, 101, 99, 100, 9]), Some(8));
        assert_eq!(attained(spec(false, 5.0), &[0; 10]), None);
    }

    #[test]
    fn the_slope_is_per_value() {
        // A slope of 10 per interval at a mean of 115 is 8.7 %.
        let rising = [1, 1, 100, 110, 120, 130];
        assert_eq!(attained(spec(true, 8.6), &rising), None);
        assert_eq!(attained(spec(true, 8.8), &rising), Some(6));
        // Symmetric deviations have no slope.
        assert_eq!(attained(spec(true, 0.1), &[1, 1, 50, 150, 150, 50]), Some(6));
    }
}
