//! Parser output: I/Os, and lines without an I/O, counted by reason.

use serde::Serialize;

use crate::Names;
use crate::parser::Line;
use crate::record::{Operation, Record};

/// Maximum I/O length; no drive supports longer commands, so records with longer I/Os are damaged.
pub const LENGTH_MAX_BYTES: u64 = 1 << 30;

/// I/Os of a batch, names, start time of the trace, and skipped lines.
#[derive(Clone, Debug, Default)]
pub struct Sink {
    pub batch: Vec<Record>,
    pub volumes: Names,
    pub processes: Names,
    pub skipped: Skipped,
    /// Number of the current line (record in binary formats), starting at 1.
    pub line: u64,
    /// Number of I/Os so far.
    pub records: u64,
    began_ns: Option<u64>,
}

impl Sink {
    pub(crate) fn new() -> Self {
        let mut sink = Self::default();
        sink.processes.number(b"");
        sink
    }

    /// Converts a time in the trace to the time since the trace's first I/O.
    pub(crate) fn since_begin(&mut self, time_ns: u64) -> Result<i64, Reason> {
        let began = *self.began_ns.get_or_insert(time_ns);
        let (later, difference) = (time_ns >= began, time_ns.abs_diff(began));
        let difference = i64::try_from(difference).map_err(|_| "time too large")?;
        Ok(if later { difference } else { -difference })
    }

    /// Starts another trace, whose times have a different origin.
    pub(crate) fn restart_clock(&mut self) {
        self.began_ns = None;
    }

    /// Creates an I/O at a time in the trace. All other properties are unknown.
    #[inline]
    pub(crate) fn record(
        &mut self,
        time_ns: u64,
        operation: Operation,
        offset: u64,
        length: u64,
        volume: &[u8],
    ) -> Result<Record, Reason> {
        let mut record = Record::new(self.since_begin(time_ns)?, operation, offset, length);
        record.volume = self.volumes.number(volume);
        Ok(record)
    }

    /// Stores the I/O of a line.
    #[inline]
    pub(crate) fn used(&mut self, record: &Record) -> Result<Line, Reason> {
        self.push(record).map(|()| Line::Used)
    }

    /// Adds an I/O if it is valid.
    #[inline]
    pub(crate) fn push(&mut self, record: &Record) -> Result<(), Reason> {
        record.check()?;
        debug_assert!((record.volume as usize) < self.volumes.words.len().max(1));
        self.batch.push(*record);
        self.records += 1;
        Ok(())
    }

    /// Counts the current line as skipped; `expected` is `true` if such lines belong to the format.
    #[cold]
    pub(crate) fn skip(&mut self, reason: Reason, expected: bool) {
        self.skipped.add(reason, self.line, expected);
    }
}

/// Reason why a line is not an I/O.
pub type Reason = &'static str;

/// Lines (records in binary formats) that were skipped for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SkippedLines {
    /// Reason why the lines were skipped.
    pub reason: Reason,
    /// Number of lines.
    pub lines: u64,
    /// Number of the first such line in its file, starting at 1.
    pub first_line: u64,
    /// `true` if such lines belong to the format; otherwise, they are damaged or of another format.
    pub expected: bool,
}

/// Skipped lines by reason, in order of first occurrence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped(Vec<SkippedLines>);

impl Skipped {
    pub(crate) fn add(&mut self, reason: Reason, line: u64, expected: bool) {
        match self.0.iter_mut().find(|skipped| skipped.reason == reason) {
            Some(skipped) => skipped.lines += 1,
            None => self.0.push(SkippedLines { reason, lines: 1, first_line: line, expected }),
        }
    }

    /// Returns the skipped lines by reason.
    pub fn reasons(&self) -> &[SkippedLines] {
        &self.0
    }

    /// Returns the total number of skipped lines.
    pub fn lines(&self) -> u64 {
        self.0.iter().map(|skipped| skipped.lines).sum()
    }

    /// Returns the number of skipped lines that do not belong to the format.
    pub fn unexpected(&self) -> u64 {
        self.0.iter().filter(|skipped| !skipped.expected).map(|skipped| skipped.lines).sum()
    }
}
