//! Trace formats, and detection of a file's format.

mod biosnoop;
pub(crate) mod blktrace;
mod block_text;
pub mod columns;
mod etw;
mod fio_iolog;
mod lines;
mod msr;
mod vscsi;

use crate::parser::Parser;
use crate::sink::Sink;

/// A trace format.
pub struct Format {
    /// Name for `--format`.
    pub name: &'static str,
    /// Format name in listings.
    pub title: &'static str,
    /// Columns of the published format.
    pub columns: &'static str,
    /// Units of times, addresses and lengths.
    pub units: &'static str,
    /// Creates a parser at the start of a file.
    pub make: fn() -> Box<dyn Parser>,
}

/// All formats that are detected by their content.
pub const FORMATS: [&Format; 14] = [
    &block_text::BLKPARSE,
    &blktrace::FORMAT,
    &block_text::TRACEFS,
    &biosnoop::FORMAT,
    &fio_iolog::FORMAT,
    &msr::FORMAT,
    &etw::FORMAT,
    &lines::FIU,
    &lines::SYSTOR,
    &lines::ALIBABA,
    &lines::TENCENT,
    &vscsi::FORMAT,
    &lines::SPC,
    &lines::DISKSIM,
];

/// Result of parsing the first bytes of a file as one format.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Format name, as for `--format`.
    pub name: &'static str,
    pub(crate) records: u64,
    pub(crate) lines: u64,
    /// Most frequent reason for skipping a line; empty if no line was skipped.
    pub reason: &'static str,
    pub(crate) first_line: u64,
}

/// Parses the first bytes of a file as each format; `whole` if the bytes are the whole file.
pub fn tried(head: &[u8], whole: bool) -> Vec<(&'static Format, Trial)> {
    FORMATS.iter().map(|format| (*format, trial(format, head, whole))).collect()
}

fn trial(format: &'static Format, head: &[u8], whole: bool) -> Trial {
    let mut sink = Sink::new();
    let mut parser = (format.make)();
    parser.parse(head, whole, &mut sink);
    parser.finish(&mut sink);
    let unexpected = sink.skipped.reasons().iter().filter(|lines| !lines.expected);
    let most = unexpected.max_by_key(|lines| lines.lines);
    Trial {
        name: format.name,
        records: sink.records,
        lines: sink.skipped.unexpected(),
        reason: most.map_or("", |lines| lines.reason),
        first_line: most.map_or(0, |lines| lines.first_line),
    }
}

/// Returns the format with the most I/Os, provided that these outnumber the skipped lines.
pub fn recognised(trials: &[(&'static Format, Trial)]) -> Option<&'static Format> {
    let likely =
        trials.iter().filter(|(_, trial)| trial.records > 0 && trial.records >= trial.lines);
    likely.max_by_key(|(_, trial)| trial.records).map(|(format, _)| *format)
}

/// Returns the format with the given name.
pub fn by_name(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name).copied()
}
