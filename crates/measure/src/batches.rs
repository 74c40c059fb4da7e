//! Batches of a step: consecutive intervals of equal length, whose differences determine the
//! uncertainty of the step's figures.
//!
//! Latencies of neighbouring I/Os are dependent because garbage collection slows many I/Os at a
//! time. Formulas for independent samples therefore give intervals that are too narrow. Sums over
//! consecutive batches preserve the dependence. A report uses the sums to estimate how much a
//! figure would vary if the step were repeated (`python/writecliff/report/dependence.py`).
//!
//! A step has at most [`MOST`] batches. When there are more, neighbours are merged and all later
//! batches are twice as long, so memory use does not grow with the step length. For percentiles, a
//! batch counts the I/Os that are slower than fixed quantiles *of the whole step* ([`SHARES`]),
//! which are known only at the end of the step. Until then, the totals at the end of each batch are
//! stored, with a copy of their histogram. Copies of totals cost less than differences, and merging
//! two batches only requires discarding the totals between them.

use crate::histogram::{BUCKETS, Histogram, bucket_of};
use crate::moments::Moments;

/// Maximum number of batches in a step; a power of two.
pub const MOST: usize = 128;
const _: () = assert!(MOST.is_power_of_two(), "batches are joined in pairs");

/// Initial batch length, used until the step exceeds [`MOST`] batches.
const FIRST_WIDTH_NS: u64 = 10_000_000;
/// Number of operations of all jobs above which a step has half as many batches, because each batch
/// needs memory for every operation.
const MANY_CELLS: usize = 1000;
/// Quantiles of a step; each batch counts the I/Os slower than these quantiles.
pub const SHARES: [f64; 7] = [0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999];

/// Columns of equal length, one row per (batch, job, operation, latency type).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchColumns {
    /// End of the batch, since the step's start.
    pub end_ns: Vec<u64>,
    /// Duration of the batch.
    pub width_ns: Vec<u64>,
    /// Job index in the step.
    pub job: Vec<u32>,
    /// 0 for read, 1 for write, 2 for trim, 3 for flush.
    pub operation: Vec<u8>,
    /// `true` if latencies are measured from the intended arrival instead of from issue.
    pub is_response: Vec<bool>,
    /// I/Os that completed during the batch.
    pub ios: Vec<u64>,
    /// Bytes transferred by these I/Os.
    pub bytes: Vec<u64>,
    /// Sum of the latencies; the mean is this sum divided by `ios`.
    pub latency_sum_ns: Vec<f64>,
    /// Counts for each quantile in [`SHARES`]: I/Os slower than the step's quantile.
    pub slower: [Vec<u64>; SHARES.len()],
    /// Bytes written to the drive during the batch; NaN if unknown.
    pub host_write_bytes: Vec<f64>,
    /// Bytes written to flash during the batch; NaN if unknown.
    pub nand_write_bytes: Vec<f64>,
}

/// Totals of one operation of one job since the step's start.
#[derive(Clone, Copy, Debug)]
pub struct Totals<'a> {
    /// Job index in the step.
    pub job: u32,
    /// 0 for read, 1 for write, 2 for trim, 3 for flush.
    pub operation: u8,
    /// Bytes of completed I/Os.
    pub bytes: u64,
    /// Completed I/Os.
    pub ios: u64,
    /// Moments of the service times.
    pub moments: Moments,
    /// Service times; only the buckets are read because the moments may not include the open
    /// interval.
    pub service: &'a Histogram,
    /// Response times; `None` for jobs without a rate.
    pub response: Option<&'a Histogram>,
}

/// Bytes written to the drive and to its flash since the drive was new; NaN if unknown.
#[derive(Clone, Copy, Debug)]
pub struct BytesWritten {
    /// Bytes written to the drive.
    pub host: f64,
    /// Bytes written to flash.
    pub nand: f64,
}

/// Latencies since the step's start: their sum, and the counts of consecutive buckets that contain
/// all latencies. Counts wrap, so a batch must have fewer than 2^32 I/Os.
#[derive(Clone, Debug, Default)]
struct Latencies {
    first_bucket: usize,
    counts: Vec<u32>,
    sum_ns: u128,
}

/// Totals of a job's operation at the end of a batch.
#[derive(Clone, Debug, Default)]
struct Cell {
    ios: u64,
    bytes: u64,
    service: Latencies,
    response: Option<Latencies>,
}

/// State at the end of a batch, where the next batch starts.
#[derive(Clone, Debug)]
struct Mark {
    end_ns: u64,
    written: BytesWritten,
    /// Cells; `None` if they equal those of the previous mark.
    cells: Vec<Option<Box<Cell>>>,
}

/// Collects the batches of a step.
#[derive(Clone, Debug)]
pub struct Batches {
    start_ns: u64,
    begin_ns: u64,
    width_ns: u64,
    end_ns: u64,
    most: usize,
    /// Bytes written at `begin_ns`.
    written: BytesWritten,
    /// Number of I/Os of each operation of a job at the last mark.
    ios: Vec<u64>,
    /// Totals of each operation at `begin_ns`; missing totals are zero.
    base: Vec<Option<Box<Cell>>>,
    marks: Vec<Mark>,
}

impl Batches {
    /// Creates the batches of a step with `cells` operations; the step starts at `start_ns` of the
    /// caller's clock.
    pub fn new(start_ns: u64, cells: usize, written: BytesWritten) -> Self {
        Self {
            start_ns,
            begin_ns: start_ns,
            width_ns: FIRST_WIDTH_NS,
            end_ns: start_ns.saturating_add(FIRST_WIDTH_NS),
            most: if cells > MANY_CELLS { MOST / 2 } else { MOST },
            written,
            ios: vec![0; cells],
            base: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// Returns the end of the open batch, on the caller's clock. A completion at that time belongs
    /// to the batch.
    #[inline]
    pub fn end_ns(&self) -> u64 {
        self.end_ns
    }

    /// Discards all batches and restarts at `now_ns`, from `totals`.
    pub fn restart<'a>(
        &mut self,
        now_ns: u64,
        totals: impl Iterator<Item = Totals<'a>>,
        written: BytesWritten,
    ) {
        let start_ns = self.start_ns;
        *self = Self { start_ns, ..Self::new(now_ns, self.ios.len(), written) };
        for (ios, total) in self.ios.iter_mut().zip(totals) {
            *ios = total.ios;
            self.base.push((total.ios > 0).then(|| Box::new(Cell::of(&total))));
        }
        assert_eq!(self.base.len(), self.ios.len(), "totals of all operations");
    }

    /// Closes every batch that ends before `now_ns`. All I/Os in `totals` have completed by the end
    /// of the first such batch; `totals` contains the operations of all jobs, in order.
    pub fn close<'a>(
        &mut self,
        now_ns: u64,
        totals: impl Iterator<Item = Totals<'a>>,
        written: BytesWritten,
    ) {
        if now_ns <= self.end_ns {
            return;
        }
        self.mark(self.end_ns, totals, written);
        while now_ns > self.end_ns {
            self.mark(self.end_ns, std::iter::empty(), written);
        }
    }

    /// Closes the last batch at `end_ns` and returns the rows, excluding operations without I/Os.
    pub fn finish<'a>(
        &mut self,
        end_ns: u64,
        totals: impl Iterator<Item = Totals<'a>> + Clone,
        written: BytesWritten,
    ) -> BatchColumns {
        self.close(end_ns, totals.clone(), written);
        if self.marks.last().map_or(self.begin_ns, |mark| mark.end_ns) < end_ns {
            self.mark(end_ns, totals.clone(), written);
        }
        let mut columns = BatchColumns::default();
        for (cell, total) in totals.enumerate() {
            if total.ios > 0 {
                self.rows(&mut columns, cell, &total, false);
                self.rows(&mut columns, cell, &total, true);
            }
        }
        columns
    }

    /// Ends the open batch. Operations missing from `totals` had no I/Os in the batch.
    fn mark<'a>(
        &mut self,
        end_ns: u64,
        totals: impl Iterator<Item = Totals<'a>>,
        written: BytesWritten,
    ) {
        let before_ns = self.marks.last().map_or(self.begin_ns, |mark| mark.end_ns);
        assert!(end_ns > before_ns, "a batch of no length at {end_ns}");
        let grown = |(ios, total): (&mut u64, Totals<'_>)| {
            debug_assert!(total.ios >= *ios, "I/Os were lost since the last batch");
            (std::mem::replace(ios, total.ios) != total.ios).then(|| Box::new(Cell::of(&total)))
        };
        let cells: Vec<_> = self.ios.iter_mut().zip(totals).map(grown).collect();
        assert!(cells.is_empty() || cells.len() == self.ios.len(), "totals of all operations");
        self.marks.push(Mark { end_ns, written, cells });
        if self.marks.len() == self.most {
            self.join();
        }
        self.end_ns = end_ns.saturating_add(self.width_ns);
    }

    /// Merges neighbouring batches by dropping every second mark.
    fn join(&mut self) {
        let mut marks = std::mem::take(&mut self.marks).into_iter();
        while let (Some(first), Some(mut second)) = (marks.next(), marks.next()) {
            second.cells.resize(first.cells.len().max(second.cells.len()), None);
            for (cell, before) in second.cells.iter_mut().zip(first.cells) {
                *cell = cell.take().or(before);
            }
            self.marks.push(second);
        }
        debug_assert_eq!(2 * self.marks.len(), self.most);
        self.width_ns = self.width_ns.saturating_mul(2);
    }

    fn rows(&self, to: &mut BatchColumns, cell: usize, of: &Totals<'_>, is_response: bool) {
        let Some(whole) = (if is_response { of.response } else { Some(of.service) }) else {
            return;
        };
        let total = whole.bucket_counts().iter().sum::<u64>();
        assert_eq!(total, of.ios, "an I/O without a latency");
        let limits = SHARES.map(|share| whole.bucket_of_share(share, total));
        let none = Cell::default();
        let slower_than_limits = |cell: &Cell| {
            limits.map(|limit| cell.latencies(is_response).map_or(0, |l| l.beyond(limit)))
        };
        let mut before = self.base.get(cell).and_then(Option::as_deref).unwrap_or(&none);
        let (mut written, mut begin_ns) = (self.written, self.begin_ns);
        let mut slower_before = slower_than_limits(before);
        for mark in &self.marks {
            let now = mark.cells.get(cell).and_then(Option::as_deref).unwrap_or(before);
            let sum_ns = |cell: &Cell| cell.latencies(is_response).map_or(0, |l| l.sum_ns);
            let slower_now = slower_than_limits(now);
            to.end_ns.push(mark.end_ns - self.start_ns);
            to.width_ns.push(mark.end_ns - begin_ns);
            to.job.push(of.job);
            to.operation.push(of.operation);
            to.is_response.push(is_response);
            to.ios.push(now.ios - before.ios);
            to.bytes.push(now.bytes - before.bytes);
            to.latency_sum_ns.push((sum_ns(now) - sum_ns(before)) as f64);
            for (slower, (now, before)) in
                to.slower.iter_mut().zip(slower_now.into_iter().zip(slower_before))
            {
                slower.push(u64::from(now.wrapping_sub(before)));
            }
            to.host_write_bytes.push(mark.written.host - written.host);
            to.nand_write_bytes.push(mark.written.nand - written.nand);
            (before, written, begin_ns) = (now, mark.written, mark.end_ns);
            slower_before = slower_now;
        }
        assert_eq!(before.ios, of.ios, "an I/O is in no batch");
    }
}

impl Cell {
    fn of(total: &Totals<'_>) -> Self {
        Self {
            ios: total.ios,
            bytes: total.bytes,
            service: Latencies::of(total.service, &total.moments),
            response: total.response.map(|times| Latencies::of(times, times.moments())),
        }
    }

    fn latencies(&self, is_response: bool) -> Option<&Latencies> {
        if is_response { self.response.as_ref() } else { Some(&self.service) }
    }
}

impl Latencies {
    /// Copies the buckets of a histogram, given the moments of its values.
    fn of(histogram: &Histogram, moments: &Moments) -> Self {
        debug_assert!(moments.count > 0, "an operation without I/Os takes no memory");
        let first_bucket = bucket_of(moments.min);
        let counts = &histogram.bucket_counts()[first_bucket..=bucket_of(moments.max)];
        let counts = counts.iter().map(|&count| count as u32).collect();
        Self { first_bucket, counts, sum_ns: moments.sum }
    }

    /// Returns the number of I/Os in buckets above `limit`, modulo 2^32.
    fn beyond(&self, limit: usize) -> u32 {
        let first = (limit + 1).saturating_sub(self.first_bucket).min(self.counts.len());
        self.counts[first..].iter().fold(0, |sum, &count| sum.wrapping_add(count))
    }
}

const _: () = assert!(bucket_of(u64::MAX) < BUCKETS);

#[cfg(test)]
mod tests;
