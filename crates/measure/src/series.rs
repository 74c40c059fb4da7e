//! Time series: activity of each (job, operation) per interval of virtual time.
//!
//! An I/O belongs to the interval of its completion. Interval k of width w covers the times
//! `(start + k w, start + (k + 1) w]`, so an I/O that completes at the end of a step is in the last
//! row, not in a separate row. Intervals without I/Os get rows with 0 I/Os: a stalled drive must
//! appear as a zero, not as a gap.

use std::ops::Range;

use crate::moments::Moments;

/// Columns of equal length, one row per (interval, cell).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns {
    /// End of the interval, since the start of the series.
    pub end_ns: Vec<u64>,
    /// Job index in the step.
    pub job: Vec<u32>,
    /// 0 for read, 1 for write, 2 for trim.
    pub operation: Vec<u8>,
    /// I/Os that completed during the interval.
    pub ios: Vec<u64>,
    /// Bytes transferred by these I/Os.
    pub bytes: Vec<u64>,
    /// Mean latency; NaN if there are no I/Os.
    pub latency_mean_ns: Vec<f64>,
    /// Maximum latency; 0 if there are no I/Os.
    pub latency_max_ns: Vec<u64>,
    /// Sample standard deviation of the latency; NaN if there are no I/Os.
    pub latency_sd_ns: Vec<f64>,
    /// Mean latency from the intended arrival; NaN if no I/O has an intended arrival.
    pub response_mean_ns: Vec<f64>,
    /// Maximum latency from the intended arrival; 0 if no I/O has an intended arrival.
    pub response_max_ns: Vec<u64>,
    /// Sample standard deviation of latencies from the intended arrival.
    pub response_sd_ns: Vec<f64>,
    /// Write amplification of the whole drive during the interval; NaN if unknown.
    pub waf: Vec<f64>,
    /// Mean electrical power of the whole drive during the interval; NaN if unknown.
    pub watts: Vec<f64>,
    /// Temperature at the end of the interval in degrees Celsius; NaN if unknown.
    pub celsius: Vec<f64>,
}

/// Activity of the whole drive during an interval; NaN if unknown.
#[derive(Clone, Copy, Debug)]
pub struct WholeDrive {
    /// Write amplification.
    pub waf: f64,
    /// Mean electrical power.
    pub watts: f64,
    /// Temperature at the end of the interval in degrees Celsius.
    pub celsius: f64,
}

/// Cell: an operation that a job may issue, with one row per interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Job index in the step.
    pub job: u32,
    /// 0 for read, 1 for write, 2 for trim.
    pub operation: u8,
}

#[derive(Clone, Debug)]
struct Accumulator {
    cell: Cell,
    bytes: u64,
    latency: Moments,
    response: Moments,
}

impl Accumulator {
    fn clear(&mut self) {
        (self.bytes, self.latency, self.response) = (0, Moments::EMPTY, Moments::EMPTY);
    }
}

/// Collects completions and turns each completed interval into rows.
#[derive(Clone, Debug)]
pub struct IntervalSeries {
    start_ns: u64,
    width_ns: u64,
    /// End of the open interval, on the caller's clock.
    end_ns: u64,
    cells: Vec<Accumulator>,
    columns: Columns,
    rows_max: u64,
}

impl IntervalSeries {
    /// Creates a series that starts at `start_ns` of the caller's clock and has at most `rows_max`
    /// rows. `width_ns` must not be 0.
    pub fn new(start_ns: u64, width_ns: u64, cells: &[Cell], rows_max: u64) -> Self {
        assert!(width_ns > 0, "an interval has a width");
        let none = Moments::EMPTY;
        let accumulator = |&cell| Accumulator { cell, bytes: 0, latency: none, response: none };
        Self {
            start_ns,
            width_ns,
            end_ns: start_ns.saturating_add(width_ns),
            cells: cells.iter().map(accumulator).collect(),
            columns: Columns::default(),
            rows_max,
        }
    }

    /// Returns the end of the open interval, on the caller's clock.
    #[inline]
    pub fn end_ns(&self) -> u64 {
        self.end_ns
    }

    /// Returns `true` if `now_ns` lies beyond the open interval, in which case [`Self::advance`]
    /// must be called first.
    #[inline]
    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns > self.end_ns
    }

    /// Returns the start of the open interval, on the caller's clock.
    #[inline]
    pub fn opened_ns(&self) -> u64 {
        self.end_ns - self.width_ns
    }

    /// Counts a completion in cell number `cell` (in the order passed to [`Self::new`]).
    #[inline]
    pub fn record(&mut self, cell: usize, bytes: u64, latency_ns: u64) {
        let accumulator = &mut self.cells[cell];
        accumulator.bytes += bytes;
        accumulator.latency.record(latency_ns);
    }

    /// Adds the time from the intended arrival of a completion that has already been counted.
    #[inline]
    pub fn record_response(&mut self, cell: usize, response_ns: u64) {
        let accumulator = &mut self.cells[cell];
        accumulator.response.record(response_ns);
        debug_assert!(accumulator.response.count() <= accumulator.latency.count());
    }

    /// Returns the bytes and latencies of each cell in the open interval, in the order passed to
    /// [`Self::new`].
    pub fn open_cells(&self) -> impl Iterator<Item = (u64, &Moments)> + Clone {
        self.cells.iter().map(|cell| (cell.bytes, &cell.latency))
    }

    /// Discards the counts of these cells so far.
    pub fn clear(&mut self, cells: Range<usize>) {
        let (count, columns) = (self.cells.len(), &mut self.columns);
        assert!(cells.end <= count, "cells {cells:?} of {count}");
        for cell in cells {
            for row in (cell..columns.end_ns.len()).step_by(count) {
                (columns.ios[row], columns.bytes[row]) = (0, 0);
                (columns.latency_max_ns[row], columns.response_max_ns[row]) = (0, 0);
                columns.latency_mean_ns[row] = f64::NAN;
                columns.latency_sd_ns[row] = f64::NAN;
                columns.response_mean_ns[row] = f64::NAN;
                columns.response_sd_ns[row] = f64::NAN;
            }
            self.cells[cell].clear();
        }
    }

    /// Returns `true` if the rows until `now_ns` fit into the series; call before
    /// [`Self::advance`].
    pub fn has_room(&self, now_ns: u64) -> bool {
        let due = now_ns.saturating_sub(self.end_ns).div_ceil(self.width_ns).saturating_add(1);
        let rows = due.saturating_mul(self.cells.len() as u64);
        rows.saturating_add(self.columns.end_ns.len() as u64) <= self.rows_max
    }

    /// Closes every interval that ends before `now_ns`. `drive` is called once per interval, with
    /// the interval's end on the caller's clock, and returns the activity since the previous call.
    pub fn advance(&mut self, now_ns: u64, mut drive: impl FnMut(u64) -> WholeDrive) {
        while self.is_due(now_ns) {
            let whole = drive(self.end_ns);
            self.close(self.end_ns, whole);
            self.end_ns = self.end_ns.saturating_add(self.width_ns);
        }
    }

    /// Closes all intervals up to `now_ns`, where the last interval may be short, and returns the
    /// rows.
    pub fn finish(mut self, now_ns: u64, mut drive: impl FnMut(u64) -> WholeDrive) -> Columns {
        assert!(now_ns >= self.start_ns, "a series ends before it starts");
        self.advance(now_ns, &mut drive);
        let is_empty = self.cells.iter().all(|cell| cell.latency.count() == 0);
        if now_ns > self.opened_ns() || !is_empty {
            let whole = drive(now_ns);
            self.close(now_ns, whole);
        }
        self.columns
    }

    /// Returns the rows so far, for a live display.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    fn close(&mut self, end_ns: u64, whole: WholeDrive) {
        debug_assert!(
            self.columns.end_ns.last().is_none_or(|&last| self.start_ns + last <= end_ns)
        );
        for accumulator in &mut self.cells {
            let Accumulator { cell, bytes, latency, response } = &*accumulator;
            let columns = &mut self.columns;
            columns.end_ns.push(end_ns - self.start_ns);
            columns.job.push(cell.job);
            columns.operation.push(cell.operation);
            columns.ios.push(latency.count());
            columns.bytes.push(*bytes);
            columns.latency_mean_ns.push(latency.mean().unwrap_or(f64::NAN));
            columns.latency_max_ns.push(latency.max().unwrap_or(0));
            columns.latency_sd_ns.push(latency.sd().unwrap_or(f64::NAN));
            columns.response_mean_ns.push(response.mean().unwrap_or(f64::NAN));
            columns.response_max_ns.push(response.max().unwrap_or(0));
            columns.response_sd_ns.push(response.sd().unwrap_or(f64::NAN));
            columns.waf.push(whole.waf);
            columns.watts.push(whole.watts);
            columns.celsius.push(whole.celsius);
            accumulator.clear();
        }
        let columns = &self.columns;
        debug_assert_eq!(columns.celsius.len(), columns.end_ns.len(), "columns of one length");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn waf(waf: f64) -> WholeDrive {
        WholeDrive { waf, watts: 10.0 * waf, celsius: f64::NAN }
    }

    const ROWS_MAX: u64 = 1000;
    const READ: Cell = Cell { job: 0, operation: 0 };
    const WRITE: Cell = Cell { job: 1, operation: 1 };

    #[test]
    fn rows_hold_what_completed_in_their_interval() {
        let mut series = IntervalSeries::new(1000, 100, &[READ, WRITE], ROWS_MAX);
        series.record(0, 4096, 10);
        series.record(0, 4096, 30);
        assert!(!series.is_due(1100), "the end of an interval belongs to it");
        series.record(1, 8192, 7);
        series.record_response(1, 9);
        series.advance(1101, |end| waf(f64::from(end as u32)));
        series.record(1, 512, 5);
        let columns = series.finish(1150, |_| waf(2.5));
        assert_eq!(columns.end_ns, [100, 100, 150, 150]);
        assert_eq!(columns.job, [0, 1, 0, 1]);
        assert_eq!(columns.operation, [0, 1, 0, 1]);
        assert_eq!(columns.ios, [2, 1, 0, 1]);
        assert_eq!(columns.bytes, [8192, 8192, 0, 512]);
        assert_eq!(columns.latency_max_ns, [30, 7, 0, 5]);
        assert_eq!(columns.latency_mean_ns[..2], [20.0, 7.0]);
        assert_eq!(columns.response_max_ns, [0, 9, 0, 0]);
        assert_eq!(columns.response_mean_ns[1..2], [9.0]);
        assert!(columns.response_mean_ns[0].is_nan());
        assert!((columns.latency_sd_ns[0] - 200_f64.sqrt()).abs() < 1e-12);
        assert!(columns.latency_mean_ns[2].is_nan() && columns.latency_sd_ns[2].is_nan());
        assert_eq!(columns.waf, [1100.0, 1100.0, 2.5, 2.5]);
        assert_eq!(columns.watts[1..], [11_000.0, 25.0, 25.0]);
    }

    #[test]
    fn a_series_is_not_longer_than_is_kept() {
        let most = 1_500_000;
        let mut series = IntervalSeries::new(0, 1, &[READ, WRITE], 2 * most);
        assert!(series.has_room(most));
        assert!(!series.has_room(most + 1));
        assert!(!series.has_room(u64::MAX));
        series.advance(1000, |_| waf(1.0));
        assert!(series.has_room(most));
        assert!(!series.has_room(most + 1));
    }

    #[test]
    fn silent_intervals_have_rows_of_zeros() {
        let mut series = IntervalSeries::new(0, 10, &[READ], ROWS_MAX);
        series.record(0, 1, 1);
        series.advance(45, |_| waf(f64::NAN));
        assert_eq!(series.columns().end_ns, [10, 20, 30, 40]);
        assert_eq!(series.columns().ios, [1, 0, 0, 0]);
    }

    #[test]
    fn a_step_that_ends_on_a_tick_has_no_extra_row() {
        let mut series = IntervalSeries::new(0, 10, &[READ], ROWS_MAX);
        series.record(0, 1, 1);
        assert_eq!(series.finish(10, |_| waf(1.0)).end_ns, [10]);
        assert_eq!(
            IntervalSeries::new(0, 10, &[READ], ROWS_MAX).finish(0, |_| waf(1.0)),
            Columns::default()
        );
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_counted_twice(
            steps in proptest::collection::vec((0_u64..500, 0_usize..2, 1_u64..9), 0..200),
        ) {
            let mut series = IntervalSeries::new(7, 100, &[READ, WRITE], ROWS_MAX);
            let (mut now, mut bytes) = (7, 0);
            for &(step, cell, size) in &steps {
                now += step;
                if series.is_due(now) {
                    series.advance(now, |_| waf(1.0));
                }
                series.record(cell, size, step);
                bytes += size;
            }
            let columns = series.finish(now, |_| waf(1.0));
            prop_assert_eq!(columns.ios.iter().sum::<u64>(), steps.len() as u64);
            prop_assert_eq!(columns.bytes.iter().sum::<u64>(), bytes);
            prop_assert!(columns.end_ns.is_sorted());
            prop_assert!(columns.end_ns.iter().all(|&end| end <= (now - 7).next_multiple_of(100)));
        }
    }
}
