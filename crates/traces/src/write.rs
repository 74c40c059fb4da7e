//! Writes traces in the formats of other programs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::Names;
use crate::error::TraceError;
use crate::number::{NS_PER_S, NS_PER_TICK, NS_PER_US, SECTOR_BYTES};
use crate::record::{NO_RESPONSE, Operation, Record};

/// An I/O, and the names of its volume and process.
struct Row<'a> {
    record: Record,
    volume: &'a str,
    process: &'a str,
}

/// An output format of traces.
trait RecordFormat: Send {
    fn begin(&mut self, _to: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    /// Writes an I/O, in time order; returns `false` if the format cannot represent it.
    fn record(&mut self, row: &Row<'_>, to: &mut dyn Write) -> io::Result<bool>;

    fn finish(&mut self, _to: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

/// Names of the formats that traces can be written in.
pub const WRITTEN: [&str; 3] = ["fio-iolog", "msr", "blkparse"];

/// A trace that is being written.
pub struct Writer {
    to: BufWriter<File>,
    format: Box<dyn RecordFormat>,
    last_ns: i64,
    /// Number of I/Os that the format cannot represent.
    pub left_out: u64,
    /// Number of I/Os that were written with the later time of the previous I/O.
    pub moved: u64,
    /// Number of I/Os written so far.
    pub records: u64,
}

impl Writer {
    /// Creates or replaces the file.
    pub fn create(path: &Path, format: &str) -> Result<Self, TraceError> {
        let chosen: Box<dyn RecordFormat> = match format {
            "fio-iolog" => Box::new(FioIolog::default()),
            "msr" => Box::new(Msr),
            "blkparse" => Box::new(Blkparse::default()),
            _ => {
                let hint = format!("known: {}", WRITTEN.join(", "));
                return Err(TraceError::new(
                    format!("traces cannot be written in format '{format}'"),
                    Some(hint),
                ));
            }
        };
        let file = File::create(path).map_err(|error| TraceError::io(path, &error))?;
        let mut writer = Self {
            to: BufWriter::with_capacity(1 << 20, file),
            format: chosen,
            last_ns: 0,
            left_out: 0,
            moved: 0,
            records: 0,
        };
        writer.format.begin(&mut writer.to).map_err(|error| TraceError::io(path, &error))?;
        Ok(writer)
    }

    /// Writes I/Os. `volumes` and `processes` contain the names for their numbers.
    pub fn add(
        &mut self,
        batch: &[Record],
        volumes: &[String],
        processes: &[String],
    ) -> io::Result<()> {
        for mut record in batch.iter().copied() {
            debug_assert_eq!(record.check(), Ok(()), "an I/O that no drive could have");
            if record.time_ns < self.last_ns {
                record.time_ns = self.last_ns;
                self.moved += 1;
            }
            self.last_ns = record.time_ns;
            let volume = volumes.get(record.volume as usize).map_or("", String::as_str);
            let process = processes.get(record.process as usize).map_or("", String::as_str);
            if self.format.record(&Row { record, volume, process }, &mut self.to)? {
                self.records += 1;
            } else {
                self.left_out += 1;
            }
        }
        Ok(())
    }

    /// Completes the file and syncs it to stable storage.
    pub fn finish(&mut self) -> io::Result<()> {
        self.format.finish(&mut self.to)?;
        self.to.flush()?;
        self.to.get_ref().sync_all()
    }
}

/// Returns the volume name as a non-empty word without field separators.
fn word(name: &str) -> String {
    let plain = |c: char| if c.is_whitespace() || c == ',' || c.is_control() { '_' } else { c };
    let word: String = name.chars().map(plain).collect();
    if word.is_empty() { "volume".to_owned() } else { word }
}

/// fio's I/O log, version 3: `time file action [offset length]`, in microseconds.
#[derive(Default)]
struct FioIolog {
    files: Names,
    words: Vec<String>,
    last_us: u64,
}

impl RecordFormat for FioIolog {
    fn begin(&mut self, to: &mut dyn Write) -> io::Result<()> {
        writeln!(to, "fio version 3 iolog")
    }

    fn record(&mut self, row: &Row<'_>, to: &mut dyn Write) -> io::Result<bool> {
        let Row { record, volume, .. } = *row;
        let us = record.time_ns.unsigned_abs() / NS_PER_US;
        self.last_us = us;
        let number = self.files.number(volume.as_bytes()) as usize;
        if number == self.words.len() {
            let file = word(volume);
            writeln!(to, "{us} {file} add\n{us} {file} open")?;
            self.words.push(file);
        }
        let file = &self.words[number];
        let action = match record.operation {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Discard => "trim",
            Operation::Flush => {
                writeln!(to, "{us} {file} sync 0 0")?;
                return Ok(true);
            }
        };
        writeln!(to, "{us} {file} {action} {} {}", record.offset_bytes, record.length_bytes)?;
        Ok(true)
    }

    fn finish(&mut self, to: &mut dyn Write) -> io::Result<()> {
        for file in &self.words {
            writeln!(to, "{} {file} close", self.last_us)?;
        }
        Ok(())
    }
}

/// MSR Cambridge CSV, with reads and writes only. Volume `host.N` becomes disk N of the host.
struct Msr;

/// Start time of a trace, measured from 1601 (2007-02-22 17:00, the start of MSR's own traces).
const BEGIN_TICKS: u64 = 128_166_372_000_000_000;

impl RecordFormat for Msr {
    fn record(&mut self, row: &Row<'_>, to: &mut dyn Write) -> io::Result<bool> {
        let Row { record, volume, .. } = *row;
        let operation = match record.operation {
            Operation::Read => "Read",
            Operation::Write => "Write",
            _ => return Ok(false),
        };
        let numbered = volume
            .rsplit_once('.')
            .filter(|(_, disk)| !disk.is_empty() && disk.bytes().all(|byte| byte.is_ascii_digit()));
        let (host, disk) = numbered.unwrap_or((volume, "0"));
        let ticks = BEGIN_TICKS + record.time_ns.unsigned_abs() / NS_PER_TICK;
        let response = u64::try_from(record.response_ns).unwrap_or(0) / NS_PER_TICK;
        let host = word(host);
        let (offset, length) = (record.offset_bytes, record.length_bytes);
        writeln!(to, "{ticks},{host},{disk},{operation},{offset},{length},{response}")?;
        Ok(true)
    }
}

/// Maximum number of pending completions; with more, the response times are damaged.
const WAITING_MAX: usize = 1 << 20;

/// blkparse text: in time order, an issue (D) and, if known, a completion (C) of each I/O.
#[derive(Default)]
struct Blkparse {
    /// Volumes in order of first appearance.
    volumes: Names,
    sequence: u64,
    completions: BinaryHeap<Reverse<(i64, u64, Event)>>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    volume: u32,
    operation: Operation,
    sector: u64,
    sectors: u64,
}

fn line(
    to: &mut dyn Write,
    time_ns: i64,
    number: u64,
    action: char,
    of: Event,
    bracket: &str,
) -> io::Result<()> {
    let rwbs = match of.operation {
        Operation::Read => "R",
        Operation::Write => "W",
        Operation::Discard => "D",
        Operation::Flush => "FN",
    };
    let ns = time_ns.unsigned_abs();
    let (seconds, fraction) = (ns / NS_PER_S, ns % NS_PER_S);
    let volume = of.volume;
    let (major, minor) = (8 + volume / 256, volume % 256);
    write!(to, "{major:3},{minor:<3} 0 {number:8} {seconds:5}.{fraction:09} 0  {action}  {rwbs} ")?;
    if of.operation != Operation::Flush {
        write!(to, "{} + {} ", of.sector, of.sectors)?;
    }
    writeln!(to, "[{bracket}]")
}

impl Blkparse {
    fn complete(&mut self, until_ns: i64, to: &mut dyn Write) -> io::Result<()> {
        while let Some(Reverse((time_ns, _, event))) = self.completions.peek().copied() {
            if time_ns > until_ns {
                break;
            }
            self.completions.pop();
            self.sequence += 1;
            line(to, time_ns, self.sequence, 'C', event, "0")?;
        }
        Ok(())
    }
}

impl RecordFormat for Blkparse {
    fn record(&mut self, row: &Row<'_>, to: &mut dyn Write) -> io::Result<bool> {
        let Row { record, volume, process } = *row;
        let end = record.offset_bytes + record.length_bytes;
        let sector = record.offset_bytes / SECTOR_BYTES;
        let event = Event {
            volume: self.volumes.number(volume.as_bytes()),
            operation: record.operation,
            sector,
            sectors: end.div_ceil(SECTOR_BYTES) - sector,
        };
        // The kernel counts the sectors of a request in a 32-bit integer.
        if event.sectors > u64::from(u32::MAX) {
            return Ok(false);
        }
        self.complete(record.time_ns, to)?;
        self.sequence += 1;
        line(to, record.time_ns, self.sequence, 'D', event, process)?;
        if record.response_ns != NO_RESPONSE {
            let done = record.time_ns.saturating_add(record.response_ns);
            self.completions.push(Reverse((done, self.sequence, event)));
            if self.completions.len() > WAITING_MAX {
                self.completions.pop();
            }
        }
        Ok(true)
    }

    fn finish(&mut self, to: &mut dyn Write) -> io::Result<()> {
        self.complete(i64::MAX, to)
    }
}
