//! Lines that are no I/Os, counted by reason.

use serde::Serialize;

/// Why a line is no I/O.
pub type Reason = &'static str;

/// Lines (of binary formats: records) that were skipped for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SkippedLines {
    pub reason: Reason,
    pub lines: u64,
    /// Number of the first one in its file, from 1.
    pub first_line: u64,
    /// Whether the format has such lines; others are damage, or another format.
    pub expected: bool,
}

/// All that was skipped, in the order in which the reasons appeared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped(Vec<SkippedLines>);

impl Skipped {
    pub(crate) fn add(&mut self, reason: Reason, line: u64, expected: bool) {
        match self.0.iter_mut().find(|one| one.reason == reason) {
            Some(one) => one.lines += 1,
            None => self.0.push(SkippedLines { reason, lines: 1, first_line: line, expected }),
        }
    }

    pub fn reasons(&self) -> &[SkippedLines] {
        &self.0
    }

    /// All lines that were skipped.
    pub fn lines(&self) -> u64 {
        self.0.iter().map(|one| one.lines).sum()
    }

    /// Those that the format does not have.
    pub fn unexpected(&self) -> u64 {
        self.0.iter().filter(|one| !one.expected).map(|one| one.lines).sum()
    }
}
