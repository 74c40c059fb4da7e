//! Detects a growing backlog of an open loop.
//!
//! The age of an I/O is the time from its intended arrival to its completion. While a drive keeps
//! up with the schedule, ages vary around a constant level; under overload, they grow by
//! `requested / served - 1` seconds per second. The slope of the least-squares line of ages over
//! arrivals therefore measures overload without a time series. A burst that has drained does not
//! affect the last ages.
//!
//! Sums are updated by Welford's method in completion order, so results are reproducible.

/// Number of completions whose ages represent the end of the schedule.
const LAST: usize = 64;

/// Arrivals and ages of the completed I/Os of an open loop.
#[derive(Clone, Debug)]
pub struct ScheduleFit {
    ios: u64,
    first_ns: u64,
    last_ns: u64,
    mean_arrival_ns: f64,
    mean_age_ns: f64,
    arrivals: f64,
    products: f64,
    ages: f64,
    /// Ages of the last I/Os, in a ring buffer.
    recent: [u64; LAST],
}

/// Summary of the I/O ages of an open loop.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Adherence {
    /// Number of completed I/Os that had an intended arrival.
    pub ios: u64,
    /// Time between the first and the last arrival of completed I/Os.
    pub span_ns: u64,
    /// Growth of the ages, in seconds per second.
    pub slope: f64,
    /// Standard error of the slope.
    pub slope_error: f64,
    /// Median age of the last I/Os.
    pub last_age_ns: u64,
}

impl Default for ScheduleFit {
    fn default() -> Self {
        Self {
            ios: 0,
            first_ns: u64::MAX,
            last_ns: 0,
            mean_arrival_ns: 0.0,
            mean_age_ns: 0.0,
            arrivals: 0.0,
            products: 0.0,
            ages: 0.0,
            recent: [0; LAST],
        }
    }
}

impl ScheduleFit {
    /// Counts an I/O that was due at `arrival_ns` and completed `age_ns` later.
    #[inline]
    pub fn record(&mut self, arrival_ns: u64, age_ns: u64) {
        self.recent[self.ios as usize % LAST] = age_ns;
        self.ios += 1;
        self.first_ns = self.first_ns.min(arrival_ns);
        self.last_ns = self.last_ns.max(arrival_ns);
        let (x, y) = (arrival_ns as f64, age_ns as f64);
        let (x_before, y_before) = (x - self.mean_arrival_ns, y - self.mean_age_ns);
        self.mean_arrival_ns += x_before / self.ios as f64;
        self.mean_age_ns += y_before / self.ios as f64;
        let y_after = y - self.mean_age_ns;
        self.arrivals += x_before * (x - self.mean_arrival_ns);
        self.products += x_before * y_after;
        self.ages += y_before * y_after;
    }

    /// Returns the fit of the ages; `None` for fewer than three I/Os or equal arrivals.
    pub fn adherence(&self) -> Option<Adherence> {
        if self.ios < 3 || self.arrivals <= 0.0 {
            return None;
        }
        let slope = self.products / self.arrivals;
        assert!(slope.is_finite() && self.first_ns < self.last_ns);
        let residual = (self.ages - slope * self.products).max(0.0);
        let mut recent = self.recent;
        let ages = &mut recent[..LAST.min(self.ios as usize)];
        ages.sort_unstable();
        Some(Adherence {
            ios: self.ios,
            span_ns: self.last_ns - self.first_ns,
            slope,
            slope_error: (residual / (self.ios - 2) as f64 / self.arrivals).sqrt(),
            last_age_ns: ages[ages.len() / 2],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(ages: impl Iterator<Item = (u64, u64)>) -> Adherence {
        let mut fit = ScheduleFit::default();
        ages.for_each(|(arrival, age)| fit.record(arrival, age));
        fit.adherence().unwrap()
    }

    #[test]
    fn ages_of_an_overload_grow_by_what_is_not_served() {
        // I/Os arrive at 10,000/s and are served at 8,000/s. I/O n completes at n / 8,000.
        let overload = fit((0..10_000_u64).map(|n| (n * 100_000, n * 25_000)));
        assert!((overload.slope - 0.25).abs() < 1e-9, "{overload:?}");
        assert_eq!(overload.span_ns, 999_900_000);
        assert!(overload.slope_error < 1e-9);
        assert_eq!(overload.last_age_ns, (10_000 - 32) * 25_000);
    }

    #[test]
    fn ages_of_a_drive_that_keeps_up_have_no_slope() {
        let steady = fit((0..10_000_u64).map(|n| (n * 100_000, 80_000 + n * 7919 % 1000)));
        assert!(steady.slope.abs() < 1e-6, "{steady:?}");
        assert!(steady.last_age_ns < 81_000);
    }

    #[test]
    fn a_burst_that_drains_leaves_nothing_at_the_end() {
        let age = |n: u64| if (6_000..9_000).contains(&n) { (9_000 - n) * 20_000 } else { 80_000 };
        let burst = fit((0..10_000).map(|n| (n * 100_000, age(n))));
        assert_eq!(burst.last_age_ns, 80_000);
    }

    #[test]
    fn too_few_ios_tell_nothing() {
        let mut fit = ScheduleFit::default();
        fit.record(1, 1);
        fit.record(2, 1);
        assert_eq!(fit.adherence(), None);
    }
}
