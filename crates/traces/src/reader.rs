//! Reads trace files in batches.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::Names;
use crate::error::TraceError;
use crate::formats::columns::{Column, OwnColumns};
use crate::formats::{FORMATS, Format, Trial, by_name, recognised, tried};
use crate::order::Order;
use crate::parser::{Lines, Parser};
use crate::record::Record;
use crate::sink::{Sink, Skipped};
use crate::source::{Member, Source, unpacking};

const BUFFER_BYTES: usize = 1 << 20;
/// Number of bytes for format detection: enough for any header and some I/Os.
const HEAD_BYTES: usize = 1 << 18;
/// Number of lines without an I/O after which reading fails.
const LINES_IN_VAIN: u64 = 1_000_000;

/// Options for reading a trace file.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Format name; `None` to detect the format.
    pub format: Option<String>,
    /// Meanings of the columns in a custom CSV file, instead of a format.
    pub columns: Vec<Column>,
    /// Name of the only archive member to read; `None` to read all members.
    pub member: Option<String>,
}

/// A trace reader, whose memory use does not depend on the trace length.
pub struct Reader {
    path: PathBuf,
    choice: Choice,
    source: Source,
    member: Option<Part>,
    sink: Sink,
    order: Order,
    /// Format names: one name, or the names for the members of an archive.
    pub formats: Vec<&'static str>,
    /// Archive members that were read.
    pub members: Vec<String>,
    /// Archive members that are not traces.
    pub passed_over: Vec<String>,
    /// Number of unpacked bytes so far.
    pub read_bytes: u64,
    latest_ns: i64,
}

/// Name of the format that `--columns` describes.
pub const OWN_COLUMNS: &str = "columns";

/// Current trace in the file.
struct Part {
    bytes: Box<dyn Read + Send>,
    parser: Box<dyn Parser>,
    buffer: Vec<u8>,
    /// Range of the buffer that is filled but not yet parsed.
    filled: std::ops::Range<usize>,
    ended: bool,
}

impl Reader {
    /// Opens a trace and detects its format.
    pub fn open(path: &Path, choice: Choice) -> Result<Self, TraceError> {
        if let Some(name) = choice.format.as_deref().filter(|name| by_name(name).is_none()) {
            let names: Vec<_> = FORMATS.iter().map(|format| format.name).collect();
            let hint = format!("known: {}", names.join(", "));
            return Err(TraceError::new(format!("unknown format '{name}'"), Some(hint)));
        }
        let source = Source::open(path, choice.member.as_deref())?;
        let mut reader = Self {
            path: path.to_owned(),
            choice,
            source,
            member: None,
            sink: Sink::new(),
            order: Order::default(),
            formats: Vec::new(),
            members: Vec::new(),
            passed_over: Vec::new(),
            read_bytes: 0,
            latest_ns: 0,
        };
        reader.next_member()?;
        if reader.member.is_none() {
            let message = match (&reader.choice.member, reader.passed_over.is_empty()) {
                (Some(name), _) => {
                    format!("{}: the archive has no member '{name}'", path.display())
                }
                (_, true) => format!("{}: the archive has no members", path.display()),
                (_, false) => format!(
                    "{}: no archive member is a trace: {}",
                    path.display(),
                    reader.passed_over.join(", ")
                ),
            };
            return Err(TraceError::new(message, None));
        }
        Ok(reader)
    }

    /// Returns the names of the volumes, indexed by `Record::volume`.
    pub fn volumes(&self) -> &Names {
        &self.sink.volumes
    }

    /// Returns the names of the processes, indexed by `Record::process`.
    pub fn processes(&self) -> &Names {
        &self.sink.processes
    }

    /// Returns the lines skipped so far.
    pub fn skipped(&self) -> &Skipped {
        &self.sink.skipped
    }

    /// Returns the number of I/Os so far that were too far out of order for the sorting window.
    pub fn late(&self) -> u64 {
        self.order.late
    }

    /// Returns the number of I/Os so far, and the time in ns from the first to the last.
    pub fn span(&self) -> (u64, i64) {
        (self.sink.records, self.latest_ns)
    }

    /// Returns the number of packed bytes read so far and the total size, both over all files.
    pub fn read_of_file(&self) -> (u64, u64) {
        self.source.read_of_file()
    }

    /// Fills `batch` with the next I/Os; at the end, returns `false` and an empty batch.
    ///
    /// Returns an error if the file cannot be read, or if most of its lines are not I/Os.
    pub fn next(&mut self, batch: &mut Vec<Record>) -> Result<bool, TraceError> {
        batch.clear();
        while batch.is_empty() {
            let Some(part) = &mut self.member else { return Ok(false) };
            self.read_bytes += part.read().map_err(|error| self.cut_off(&error))?;
            let Some(part) = &mut self.member else { return Ok(false) };
            part.parse(&mut self.sink);
            let done = part.ended && part.filled.is_empty();
            if done {
                part.parser.finish(&mut self.sink);
                self.member = None;
            }
            self.order.add(&mut self.sink.batch, batch);
            if self.sink.records == 0 && self.sink.skipped.unexpected() >= LINES_IN_VAIN {
                self.check()?;
            }
            if done {
                self.next_member()?;
                if self.member.is_none() {
                    self.order.finish(batch);
                    self.check()?;
                }
            }
        }
        self.latest_ns =
            batch.last().map_or(self.latest_ns, |last| last.time_ns.max(self.latest_ns));
        Ok(true)
    }

    fn cut_off(&self, error: &std::io::Error) -> TraceError {
        let TraceError { message, hint } = unpacking(&self.path, error);
        TraceError::new(format!("{message} after {} I/Os", self.sink.records), hint)
    }

    /// Returns an error if most lines are not I/Os, because the file then has another format or is
    /// damaged.
    fn check(&self) -> Result<(), TraceError> {
        let (records, lines) = (self.sink.records, self.sink.skipped.unexpected());
        if records > 0 && lines <= records {
            return Ok(());
        }
        let worst = self.sink.skipped.reasons().iter().max_by_key(|lines| lines.lines);
        let why = worst.map_or(String::new(), |lines| {
            format!(" ({}, first in line {})", lines.reason, lines.first_line)
        });
        let message = format!(
            "{}: could not parse {lines} of {} lines as {}{why}",
            self.path.display(),
            lines + records,
            self.formats.join(", ")
        );
        Err(TraceError::new(
            message,
            Some("choose another format with --format, or use --columns".into()),
        ))
    }

    /// Starts the next trace in the file.
    fn next_member(&mut self) -> Result<(), TraceError> {
        while let Some(member) = self.source.next()? {
            let name = member.name.clone();
            match self.part(member) {
                Ok((part, format)) => {
                    self.sink.line = 0;
                    self.member = Some(part);
                    if self.formats.last() != Some(&format) {
                        self.sink.restart_clock();
                    }
                    if !self.formats.contains(&format) {
                        self.formats.push(format);
                    }
                    if self.source.is_archive() {
                        self.members.push(name);
                    }
                    return Ok(());
                }
                // Archives commonly include a member that describes the traces.
                Err(_) if self.source.is_archive() && self.choice.member.is_none() => {
                    self.passed_over.push(name);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn part(&self, member: Member) -> Result<(Part, &'static str), TraceError> {
        let mut bytes = member.bytes;
        let mut buffer = Vec::with_capacity(BUFFER_BYTES);
        let limit = HEAD_BYTES as u64;
        bytes.by_ref().take(limit).read_to_end(&mut buffer).map_err(|e| self.cut_off(&e))?;
        let (parser, name) = self.parser(&buffer)?;
        let filled = 0..buffer.len();
        buffer.resize(BUFFER_BYTES, 0);
        Ok((Part { bytes, parser, buffer, filled, ended: false }, name))
    }

    fn parser(&self, head: &[u8]) -> Result<(Box<dyn Parser>, &'static str), TraceError> {
        if !self.choice.columns.is_empty() {
            let columns = OwnColumns::new(self.choice.columns.clone());
            return Ok((Box::new(Lines::new(columns)), OWN_COLUMNS));
        }
        let made = |format: &Format| ((format.make)(), format.name);
        if let Some(format) = self.choice.format.as_deref().and_then(by_name) {
            return Ok(made(format));
        }
        let trials = tried(head, head.len() < HEAD_BYTES);
        recognised(&trials).map(made).ok_or_else(|| not_recognised(&self.path, &trials))
    }
}

fn not_recognised(path: &Path, trials: &[(&Format, Trial)]) -> TraceError {
    let tried: Vec<_> = trials
        .iter()
        .map(|(_, trial)| match trial.reason {
            "" => format!("{}: the trace has no I/Os", trial.name),
            why => format!("{}: {why} in line {}", trial.name, trial.first_line),
        })
        .collect();
    TraceError::new(
        format!("{}: the file is not a trace in a known format", path.display()),
        Some(format!(
            "formats tried: {}; for another format, describe the columns with --columns",
            tried.join("; ")
        )),
    )
}

impl Part {
    /// Reads more bytes and appends them to the remaining bytes.
    fn read(&mut self) -> std::io::Result<u64> {
        self.buffer.copy_within(self.filled.clone(), 0);
        self.filled = 0..self.filled.len();
        let mut read = 0;
        while !self.ended && self.filled.end < self.buffer.len() {
            let count = match self.bytes.read(&mut self.buffer[self.filled.end..]) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            self.filled.end += count;
            read += count as u64;
            self.ended = count == 0;
            if self.filled.end >= HEAD_BYTES {
                break;
            }
        }
        Ok(read)
    }

    fn parse(&mut self, to: &mut Sink) {
        let used = self.parser.parse(&self.buffer[self.filled.clone()], self.ended, to);
        self.filled.start += used;
        if self.ended {
            // The parser will never consume the remaining bytes.
            self.filled = 0..0;
        }
    }
}
