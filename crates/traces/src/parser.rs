//! Interface between a format and the reader, and line handling for text formats.

use memchr::memchr;

use crate::sink::{Reason, Sink};

/// Parser of a format, which converts bytes into I/Os.
pub trait Parser: Send {
    /// Parses the complete records at the start of `bytes`; returns the number of consumed bytes,
    /// which is above 0 for `WHOLE_MAX_BYTES` bytes or more. `last` marks the end of the input.
    fn parse(&mut self, bytes: &[u8], last: bool, to: &mut Sink) -> usize;

    /// Passes on I/Os that wait for later records.
    fn finish(&mut self, _to: &mut Sink) {}
}

/// Maximum length of a line or record.
pub(crate) const WHOLE_MAX_BYTES: usize = 1 << 17;
/// Maximum length of a text line; longer lines are skipped.
pub const LINE_MAX_BYTES: usize = 1 << 16;

pub(crate) enum Line {
    /// An I/O, or information that later lines need.
    Used,
    /// A line of the format that is not an I/O.
    Beside(Reason),
}

pub(crate) trait LineFormat: Send {
    /// Parses a line without its line ending. The error is the reason why the line is skipped.
    fn line(&mut self, line: &[u8], to: &mut Sink) -> Result<Line, Reason>;

    fn finish(&mut self, _to: &mut Sink) {}
}

impl<F: FnMut(&[u8], &mut Sink) -> Result<Line, Reason> + Send> LineFormat for F {
    fn line(&mut self, line: &[u8], to: &mut Sink) -> Result<Line, Reason> {
        self(line, to)
    }
}

pub(crate) struct Lines<F> {
    format: F,
    /// `true` inside an overlong line, whose remainder is skipped.
    too_long: bool,
}

impl<F: LineFormat> Lines<F> {
    pub(crate) fn new(format: F) -> Self {
        Self { format, too_long: false }
    }

    fn line(&mut self, line: &[u8], to: &mut Sink) {
        if std::mem::take(&mut self.too_long) {
            return;
        }
        to.line += 1;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            return;
        }
        match self.format.line(line, to) {
            Ok(Line::Used) => {}
            Ok(Line::Beside(reason)) => to.skip(reason, true),
            Err(reason) => to.skip(reason, false),
        }
    }
}

impl<F: LineFormat> Parser for Lines<F> {
    fn parse(&mut self, bytes: &[u8], last: bool, to: &mut Sink) -> usize {
        let mut at = 0;
        while let Some(length) = memchr(b'\n', &bytes[at..]) {
            self.line(&bytes[at..at + length], to);
            at += length + 1;
        }
        let rest = &bytes[at..];
        if last && !rest.is_empty() {
            self.line(rest, to);
            return bytes.len();
        }
        if rest.len() >= LINE_MAX_BYTES {
            if !std::mem::replace(&mut self.too_long, true) {
                to.line += 1;
                to.skip("line over 64 KiB", false);
            }
            return bytes.len();
        }
        at
    }

    fn finish(&mut self, to: &mut Sink) {
        self.format.finish(to);
    }
}
