//! Fits the I/Os of a trace to a drive: times, sectors and size.

use writecliff_traces::{Operation as Traced, Record};
use writecliff_workload::Operation;

use crate::LENGTH_MAX_BYTES;
use crate::io::Io;

/// Treatment of I/Os beyond the drive capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    /// Skip the I/O.
    Skip,
    /// Wrap the address around at the end of the drive.
    Wrap,
}

/// Target drive of a trace, and the fitting options.
#[derive(Clone, Copy, Debug)]
pub struct Fit {
    /// Drive capacity in bytes.
    pub capacity_bytes: u64,
    /// Logical block size of the drive in bytes.
    pub sector_bytes: u64,
    /// Treatment of I/Os beyond the drive capacity.
    pub outside: Outside,
    /// Volume whose I/Os are issued; `None` for all volumes.
    pub volume: Option<u32>,
    /// Speed relative to the recording; for example, 2 is twice as fast.
    pub speed: f64,
}

/// I/Os of a trace, and the changes made to fit the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fitted {
    /// Number of issued I/Os by operation: read, write, trim, flush.
    pub ios: [u64; 4],
    /// Bytes of the issued I/Os by operation.
    pub bytes: [u64; 4],
    /// Due time of the last I/O.
    pub due_ns: u64,
    /// Highest end address in the trace.
    pub end_bytes: u64,
    /// Number of skipped I/Os of other volumes.
    pub other_volumes: u64,
    /// Number of I/Os beyond the end of the drive.
    pub outside: u64,
    /// Offset and length of the first I/O beyond the end of the drive.
    pub first_outside: Option<(u64, u64)>,
    /// Number of I/Os extended to whole sectors.
    pub widened: u64,
    /// Number of skipped I/Os that are longer than [`LENGTH_MAX_BYTES`].
    pub too_long: u64,
    /// Number of I/Os due before an earlier I/O of the trace and issued together with it.
    pub moved: u64,
}

/// Fits the I/Os of a trace, batch by batch.
#[derive(Clone, Debug)]
pub struct Fitting {
    fit: Fit,
    first_ns: Option<i64>,
    /// Totals of the I/Os so far.
    pub fitted: Fitted,
}

impl Fitting {
    /// Starts a trace, whose first I/O becomes time 0.
    pub fn new(fit: Fit) -> Self {
        Self { fit, first_ns: None, fitted: Fitted::default() }
    }

    /// Passes the I/Os of a batch to `each`; stops and returns `false` if `each` does.
    pub fn take(&mut self, batch: &[Record], mut each: impl FnMut(Io) -> bool) -> bool {
        for io in batch {
            if self.fit.volume.is_some_and(|volume| volume != io.volume) {
                self.fitted.other_volumes += 1;
                continue;
            }
            let operation = match io.operation {
                Traced::Read => Operation::Read,
                Traced::Write => Operation::Write,
                Traced::Discard => Operation::Trim,
                Traced::Flush => Operation::Flush,
            };
            let placed = self.place(operation, io.offset_bytes, io.length_bytes);
            let Some((offset, length)) = placed else { continue };
            let due_ns = self.due(io.time_ns);
            self.fitted.ios[operation as usize] += 1;
            self.fitted.bytes[operation as usize] += length;
            if !each(Io { due_ns, operation, lane: 0, offset, length, repeats: false }) {
                return false;
            }
        }
        true
    }

    fn due(&mut self, time_ns: i64) -> u64 {
        let first = *self.first_ns.get_or_insert(time_ns);
        let since = u64::try_from(time_ns.saturating_sub(first)).unwrap_or(0);
        let due_ns = (since as f64 / self.fit.speed).round() as u64;
        self.fitted.moved += u64::from(due_ns < self.fitted.due_ns || time_ns < first);
        self.fitted.due_ns = self.fitted.due_ns.max(due_ns);
        self.fitted.due_ns
    }

    /// Returns the address of an I/O on the drive; `None` if the I/O is skipped.
    fn place(&mut self, operation: Operation, offset: u64, length: u64) -> Option<(u64, u64)> {
        let Fit { capacity_bytes, sector_bytes, outside, .. } = self.fit;
        let fitted = &mut self.fitted;
        if operation == Operation::Flush {
            return Some((0, 0));
        }
        let end = offset.saturating_add(length);
        fitted.end_bytes = fitted.end_bytes.max(end);
        let begin = offset / sector_bytes * sector_bytes;
        let wide = end.checked_next_multiple_of(sector_bytes)?.checked_sub(begin)?;
        if wide == 0 {
            return None;
        }
        if operation != Operation::Trim && wide > LENGTH_MAX_BYTES {
            fitted.too_long += 1;
            return None;
        }
        fitted.widened += u64::from(wide != length);
        if begin.saturating_add(wide) <= capacity_bytes {
            return Some((begin, wide));
        }
        fitted.outside += 1;
        fitted.first_outside.get_or_insert((offset, length));
        if outside == Outside::Skip || wide > capacity_bytes {
            return None;
        }
        let places = (capacity_bytes - wide) / sector_bytes + 1;
        let begin = begin / sector_bytes % places * sector_bytes;
        debug_assert!(begin + wide <= capacity_bytes, "{wide} B at {begin} are outside");
        Some((begin, wide))
    }
}
