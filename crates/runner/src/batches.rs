//! Batches of a step: consecutive stretches of equal time, from whose differences the uncertainty
//! of its figures follows.
//!
//! Latencies of neighbouring I/Os depend on each other, because garbage collection slows many at a
//! time. Formulas for independent samples then give intervals that are too narrow. Sums over
//! consecutive batches keep the dependence: a report estimates from them how much a figure would
//! vary if the step were repeated (`python/writecliff/report/dependence.py`).
//!
//! A step has at most [`MOST`] batches. When there are more, neighbours are joined and all later
//! batches are twice as long, so memory does not grow with the length of a step. For percentiles a
//! batch counts the I/Os that are slower than fixed quantiles *of the whole step* ([`SHARES`]),
//! which are known only at its end. Until then it keeps the non-empty buckets of its histogram.

use crate::histogram::{BUCKETS, Histogram, bucket_of};

/// Most batches of a step; a power of two.
pub const MOST: usize = 256;
/// Length of a batch until the step exceeds [`MOST`] of them.
const FIRST_WIDTH_NS: u64 = 1_000_000;
/// Quantiles of a step whose slower I/Os are counted in each batch.
pub const SHARES: [f64; 7] = [0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999];

/// Columns of equal length: one row per (batch, job, operation, kind of latency).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchColumns {
    /// End of the batch, since the step's start.
    pub end_ns: Vec<u64>,
    pub width_ns: Vec<u64>,
    pub job: Vec<u32>,
    /// 0 read, 1 write, 2 trim.
    pub operation: Vec<u8>,
    /// Latencies from the intended arrival, and not from issue.
    pub is_response: Vec<bool>,
    pub ios: Vec<u64>,
    pub bytes: Vec<u64>,
    pub latency_sum_ns: Vec<f64>,
    /// For each of [`SHARES`]: I/Os slower than this quantile of the step.
    pub slower: [Vec<u64>; SHARES.len()],
    /// Bytes written to the drive during the batch; NaN if unknown.
    pub host_write_bytes: Vec<f64>,
    /// Bytes written to flash during the batch; NaN if unknown.
    pub nand_write_bytes: Vec<f64>,
}

/// Totals of one operation of one job since the step's start.
#[derive(Clone, Copy, Debug)]
pub struct Totals<'a> {
    pub bytes: u64,
    pub ios: u64,
    /// Sum of the service times.
    pub service_ns: u128,
    /// Only its buckets are read.
    pub service: &'a Histogram,
    pub response: Option<&'a Histogram>,
}

/// Bytes written to the drive and to its flash since it was new; NaN if unknown.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    pub host: f64,
    pub nand: f64,
}

/// Latencies of a batch: non-empty buckets with their counts, and the sum.
#[derive(Clone, Debug, Default)]
struct Latencies {
    buckets: Vec<(u16, u32)>,
    sum_ns: u128,
}

#[derive(Clone, Debug, Default)]
struct Cell {
    ios: u64,
    bytes: u64,
    service: Latencies,
    response: Option<Latencies>,
}

#[derive(Clone, Debug)]
struct Batch {
    begin_ns: u64,
    end_ns: u64,
    host: f64,
    nand: f64,
    cells: Vec<Cell>,
}

/// Totals at the end of the last batch.
#[derive(Clone, Debug, Default)]
struct Before {
    ios: u64,
    bytes: u64,
    service_ns: u128,
    response_ns: u128,
    service: Option<Box<[u64]>>,
    response: Option<Box<[u64]>>,
}

/// Collects the batches of a step.
#[derive(Clone, Debug)]
pub struct Batches {
    start_ns: u64,
    begin_ns: u64,
    end_ns: u64,
    width_ns: u64,
    written: Written,
    before: Vec<Before>,
    closed: Vec<Batch>,
}

impl Batches {
    /// Batches of `cells` operations of jobs, of a step that starts at `start_ns` of the caller's
    /// clock.
    pub fn new(start_ns: u64, cells: usize, written: Written) -> Self {
        Self {
            start_ns,
            begin_ns: start_ns,
            end_ns: start_ns.saturating_add(FIRST_WIDTH_NS),
            width_ns: FIRST_WIDTH_NS,
            written,
            before: vec![Before::default(); cells],
            closed: Vec::new(),
        }
    }

    /// End of the open batch, on the caller's clock. It belongs to the batch.
    pub fn end_ns(&self) -> u64 {
        self.end_ns
    }

    /// Drops all batches and starts again at `now_ns`, with totals that start from zero.
    pub fn restart(&mut self, now_ns: u64, written: Written) {
        let start_ns = self.start_ns;
        *self = Self { start_ns, ..Self::new(now_ns, self.before.len(), written) };
    }

    /// Closes every batch that ends before `now_ns`. All I/Os in `totals` are complete by the end
    /// of the first of them; `totals` has the operations of all jobs in their order.
    pub fn close<'a>(
        &mut self,
        now_ns: u64,
        totals: impl Iterator<Item = Totals<'a>>,
        written: Written,
    ) {
        if now_ns <= self.end_ns {
            return;
        }
        self.push(self.end_ns, totals, written);
        while now_ns > self.end_ns {
            let cells = vec![Cell::default(); self.before.len()];
            self.append(self.end_ns, (0.0, 0.0), cells);
        }
    }

    /// Closes the last batch at `end_ns` and returns the rows, without operations of no I/Os.
    pub fn finish<'a>(
        &mut self,
        end_ns: u64,
        totals: impl Iterator<Item = Totals<'a>> + Clone,
        written: Written,
    ) -> BatchColumns {
        self.close(end_ns, totals.clone(), written);
        if end_ns > self.begin_ns {
            self.push(end_ns, totals.clone(), written);
        }
        let mut columns = BatchColumns::default();
        for (cell, total) in totals.enumerate() {
            if total.ios > 0 {
                self.rows(&mut columns, cell, false, total.service);
                if let Some(response) = total.response {
                    self.rows(&mut columns, cell, true, response);
                }
            }
        }
        columns
    }

    fn push<'a>(
        &mut self,
        end_ns: u64,
        totals: impl Iterator<Item = Totals<'a>>,
        written: Written,
    ) {
        let cells = self.before.iter_mut().zip(totals).map(|(b, t)| b.until(&t)).collect();
        let added = (written.host - self.written.host, written.nand - self.written.nand);
        self.written = written;
        self.append(end_ns, added, cells);
    }

    fn append(&mut self, end_ns: u64, (host, nand): (f64, f64), cells: Vec<Cell>) {
        self.closed.push(Batch { begin_ns: self.begin_ns, end_ns, host, nand, cells });
        if self.closed.len() == MOST {
            let mut joined = Vec::with_capacity(MOST);
            let mut batches = std::mem::take(&mut self.closed).into_iter();
            while let (Some(mut first), Some(second)) = (batches.next(), batches.next()) {
                first.join(second);
                joined.push(first);
            }
            self.closed = joined;
            self.width_ns = self.width_ns.saturating_mul(2);
        }
        self.begin_ns = end_ns;
        self.end_ns = end_ns.saturating_add(self.width_ns);
    }

    fn rows(&self, to: &mut BatchColumns, cell: usize, is_response: bool, whole: &Histogram) {
        let operations = crate::outcome::OPERATIONS;
        let total = whole.bucket_counts().iter().sum::<u64>();
        let limits = SHARES.map(|share| whole.bucket_of_share(share, total));
        for batch in &self.closed {
            let mine = &batch.cells[cell];
            let none = Latencies::default();
            let latencies =
                if is_response { mine.response.as_ref().unwrap_or(&none) } else { &mine.service };
            to.end_ns.push(batch.end_ns - self.start_ns);
            to.width_ns.push(batch.end_ns - batch.begin_ns);
            to.job.push((cell / operations) as u32);
            to.operation.push((cell % operations) as u8);
            to.is_response.push(is_response);
            to.ios.push(mine.ios);
            to.bytes.push(mine.bytes);
            to.latency_sum_ns.push(latencies.sum_ns as f64);
            for (slower, limit) in to.slower.iter_mut().zip(limits) {
                slower.push(latencies.beyond(limit));
            }
            to.host_write_bytes.push(batch.host);
            to.nand_write_bytes.push(batch.nand);
        }
    }
}

impl Batch {
    fn join(&mut self, next: Self) {
        self.end_ns = next.end_ns;
        self.host += next.host;
        self.nand += next.nand;
        for (cell, more) in self.cells.iter_mut().zip(next.cells) {
            cell.ios += more.ios;
            cell.bytes += more.bytes;
            cell.service.join(&more.service);
            if let Some(more) = &more.response {
                cell.response.get_or_insert_default().join(more);
            }
        }
    }
}

impl Latencies {
    fn join(&mut self, next: &Self) {
        self.sum_ns += next.sum_ns;
        if next.buckets.is_empty() {
            return;
        }
        let mine = std::mem::take(&mut self.buckets);
        let mut more = next.buckets.iter().copied().peekable();
        self.buckets.reserve(mine.len().max(next.buckets.len()));
        for (bucket, count) in mine {
            while let Some(before) = more.next_if(|&(other, _)| other < bucket) {
                self.buckets.push(before);
            }
            let same = more.next_if(|&(other, _)| other == bucket).map_or(0, |(_, count)| count);
            self.buckets.push((bucket, count.saturating_add(same)));
        }
        self.buckets.extend(more);
    }

    /// I/Os in buckets above `limit`.
    fn beyond(&self, limit: usize) -> u64 {
        let first = self.buckets.partition_point(|&(bucket, _)| usize::from(bucket) <= limit);
        self.buckets[first..].iter().map(|&(_, count)| u64::from(count)).sum()
    }
}

impl Before {
    /// Additions since the last call.
    fn until(&mut self, now: &Totals<'_>) -> Cell {
        if now.ios == self.ios {
            return Cell::default();
        }
        let response = now.response.map(|histogram| {
            let sum_ns = histogram.moments().sum;
            let before_ns = std::mem::replace(&mut self.response_ns, sum_ns);
            Latencies { buckets: added(&mut self.response, histogram), sum_ns: sum_ns - before_ns }
        });
        Cell {
            ios: now.ios - std::mem::replace(&mut self.ios, now.ios),
            bytes: now.bytes - std::mem::replace(&mut self.bytes, now.bytes),
            service: Latencies {
                buckets: added(&mut self.service, now.service),
                sum_ns: now.service_ns - std::mem::replace(&mut self.service_ns, now.service_ns),
            },
            response,
        }
    }
}

/// Buckets compared at a time: most have not grown, and equal stretches cost a few instructions.
const STRETCH: usize = 32;

/// Buckets that grew since `before`, which then is `now`.
fn added(before: &mut Option<Box<[u64]>>, now: &Histogram) -> Vec<(u16, u32)> {
    let before = before.get_or_insert_with(|| vec![0; BUCKETS].into_boxed_slice());
    let mut grown = Vec::new();
    let stretches = before.chunks_mut(STRETCH).zip(now.bucket_counts().chunks(STRETCH));
    for (stretch, (before, now)) in stretches.enumerate() {
        if *before == *now {
            continue;
        }
        for (bucket, (old, &new)) in (stretch * STRETCH..).zip(before.iter_mut().zip(now)) {
            if *old != new {
                grown.push((bucket as u16, u32::try_from(new - *old).unwrap_or(u32::MAX)));
                *old = new;
            }
        }
    }
    grown
}

const _: () = assert!(BUCKETS <= u16::MAX as usize && bucket_of(u64::MAX) < BUCKETS);

#[cfg(test)]
mod tests;
