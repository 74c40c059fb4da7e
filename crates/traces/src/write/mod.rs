//! Traces in formats of other programs.

mod blkparse;
mod fio_iolog;
mod msr;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::Names;
use crate::error::TraceError;
use crate::record::{Batch, Record};

/// A format that is written.
trait RecordFormat: Send {
    /// Before the first I/O.
    fn begin(&mut self, _to: &mut dyn Write) -> std::io::Result<()> {
        Ok(())
    }

    /// An I/O at a time that is not before the one before. False if the format cannot have it.
    fn record(
        &mut self,
        record: &Record,
        volume: &str,
        process: &str,
        to: &mut dyn Write,
    ) -> std::io::Result<bool>;

    /// After the last I/O.
    fn finish(&mut self, _to: &mut dyn Write) -> std::io::Result<()> {
        Ok(())
    }
}

/// Names of the formats that are written.
pub const WRITTEN: [&str; 3] = ["fio-iolog", "msr", "blkparse"];

/// A trace that is being written.
pub struct Writer {
    to: BufWriter<File>,
    format: Box<dyn RecordFormat>,
    last_ns: i64,
    /// I/Os that the format cannot have.
    pub left_out: u64,
    /// I/Os that got the time of the one before, which is later than theirs.
    pub moved: u64,
    pub records: u64,
}

impl Writer {
    /// Begin a file, which is replaced.
    pub fn create(path: &Path, format: &str) -> Result<Self, TraceError> {
        let chosen: Box<dyn RecordFormat> = match format {
            "fio-iolog" => Box::new(fio_iolog::FioIolog::default()),
            "msr" => Box::new(msr::Msr),
            "blkparse" => Box::new(blkparse::Blkparse::default()),
            _ => {
                let hint = format!("known: {}", WRITTEN.join(", "));
                return Err(TraceError::new(
                    format!("traces are not written as '{format}'"),
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

    /// Write I/Os, with the names that their numbers stand for.
    pub fn add(
        &mut self,
        batch: &Batch,
        volumes: &[String],
        processes: &[String],
    ) -> std::io::Result<()> {
        for mut record in batch.iter() {
            if record.time_ns < self.last_ns {
                record.time_ns = self.last_ns;
                self.moved += 1;
            }
            self.last_ns = record.time_ns;
            let volume = volumes.get(record.volume as usize).map_or("", String::as_str);
            let process = processes.get(record.process as usize).map_or("", String::as_str);
            if self.format.record(&record, volume, process, &mut self.to)? {
                self.records += 1;
            } else {
                self.left_out += 1;
            }
        }
        Ok(())
    }

    /// Complete the file on its medium.
    pub fn finish(&mut self) -> std::io::Result<()> {
        self.format.finish(&mut self.to)?;
        self.to.flush()?;
        self.to.get_ref().sync_all()
    }
}

/// The name of a volume as a word: without what separates fields, and not empty.
fn word(name: &str) -> String {
    let plain = |c: char| if c.is_whitespace() || c == ',' || c.is_control() { '_' } else { c };
    let found: String = name.chars().map(plain).collect();
    if found.is_empty() { "volume".to_owned() } else { found }
}

/// Names in their order of appearance, for formats that number or declare volumes. Used with few
/// volumes or names in long runs, so that the last one is looked at first.
fn number_of(names: &mut Names, name: &str) -> u32 {
    names.number(name.as_bytes())
}
