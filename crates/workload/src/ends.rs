//! End conditions of a job that depend on its measurements, and the search for the queue depth that
//! a latency target permits.
//!
//! These types are specifications. `writecliff-runner` evaluates the conditions at the ends of the
//! intervals of the measured series, so their times are multiples of `interval_ns`. All three
//! conditions correspond to fio options: steady state (`steadystate`), latency target
//! (`latency_target`), minimum rate (`rate_min`).

use serde::{Deserialize, Serialize};

use crate::check::{Check, reject};

/// Figure that must be steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    Bandwidth,
    /// Mean latency in nanoseconds.
    Latency,
}

/// Ends the job when its last `window_ns` are steady. A value is measured every `check_ns`,
/// starting at `ramp_ns`, and the values in a window must stay within the limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SteadyEnd {
    /// Figure that is measured at each check.
    pub metric: Metric,
    /// `true` if the limit applies to the slope of the least-squares line per check, `false` if it
    /// applies to the largest deviation from the mean.
    pub slope: bool,
    /// Limit, as a percentage of the mean if `relative`, otherwise in IOPS, bytes per second or
    /// nanoseconds.
    pub limit: f64,
    /// `true` if `limit` is a percentage of the mean.
    pub relative: bool,
    /// Length of the window in which the figure must be steady.
    pub window_ns: u64,
    /// Time between two checks.
    pub check_ns: u64,
    /// Time before the first check.
    pub ramp_ns: u64,
}

/// Searches for the largest queue depth, up to the job's depth, at which `percentile` % of the I/Os
/// in a window complete within `latency_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyTarget {
    /// Limit on the latency at `percentile`.
    pub latency_ns: u64,
    /// Percentage of the I/Os in a window that must meet the limit.
    pub percentile: f64,
    /// Time for which each queue depth is measured.
    pub window_ns: u64,
    /// `true` if the search continues until the job ends; `false` if the job ends when the depth is
    /// found.
    pub keeps_running: bool,
}

/// Ends the job when an operation is slower than this rate in a cycle, after the first two seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeastRate {
    /// 0 for read, 1 for write, 2 for trim, as in the series.
    pub operation: u8,
    /// Minimum in I/Os per second; `None` for no such limit.
    pub iops: Option<f64>,
    /// Minimum in bytes per second; `None` for no such limit.
    pub bytes_per_s: Option<f64>,
    /// Length of the cycle over which the rate is measured.
    pub cycle_ns: u64,
}

impl SteadyEnd {
    /// Returns the number of values in a window.
    pub fn values(&self) -> usize {
        usize::try_from(self.window_ns / self.check_ns.max(1)).unwrap_or(usize::MAX)
    }

    pub(crate) fn check(&self, interval_ns: u64) -> Check {
        let (key, limit) = ("until_steady", self.limit);
        reject! {
            key if !limit.is_finite() || limit <= 0.0 => "the limit {limit} is not above 0";
        }
        whole_intervals(key, "check", self.check_ns, interval_ns)?;
        reject! {
            key if !(2..=1 << 20).contains(&self.values()) =>
                "a window must hold 2 values or more, one each check";
        }
        Ok(())
    }
}

impl LatencyTarget {
    pub(crate) fn check(&self, interval_ns: u64) -> Check {
        let (key, percentile) = ("latency_target", self.percentile);
        reject! {
            key if self.latency_ns == 0 => "0 is not above 0";
            key if percentile <= 0.0 || percentile > 100.0 =>
                "the percentile {percentile} is not above 0 and up to 100";
        }
        whole_intervals(key, "window", self.window_ns, interval_ns)
    }
}

impl LeastRate {
    pub(crate) fn check(&self, interval_ns: u64) -> Check {
        let key = "least_rates";
        reject! {
            key if self.operation >= 3 => "{} is not an operation (0 to 2)", self.operation;
            key if self.iops.is_some() == self.bytes_per_s.is_some() =>
                "give either iops or bytes_per_s";
        }
        whole_intervals(key, "cycle", self.cycle_ns, interval_ns)
    }
}

fn whole_intervals(key: &'static str, what: &str, time_ns: u64, interval_ns: u64) -> Check {
    reject! {
        key if time_ns == 0 || !time_ns.is_multiple_of(interval_ns) =>
            "{what} of {time_ns} ns is not a multiple of the interval of {interval_ns} ns";
    }
    Ok(())
}
