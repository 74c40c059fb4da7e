//! Merges the blktrace files of all processors into one stream in time order.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use super::packed::{Bytes, BytesRead};
use crate::formats::blktrace::{HEADER_BYTES, Header};

/// Returns all files `NAME.blktrace.N` of the trace that `path` belongs to; `None` for other files.
pub(super) fn beside(path: &Path) -> Option<Vec<PathBuf>> {
    let name = path.file_name()?.to_str()?;
    let (stem, number) = name.rsplit_once('.')?;
    if !stem.ends_with(".blktrace") || number.parse::<u32>().is_err() {
        return None;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?;
    let mut files: Vec<(u32, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let number = name.to_str()?.strip_prefix(stem)?.strip_prefix('.')?.parse().ok()?;
            entry.metadata().ok()?.is_file().then(|| (number, entry.path()))
        })
        .collect();
    files.sort();
    Some(files.into_iter().map(|(_, path)| path).collect())
}

/// A file and its next event.
struct Part {
    file: BufReader<Bytes>,
    event: Vec<u8>,
    time_ns: u64,
}

/// Merged events of all files; simultaneous events are ordered by file number.
pub(super) struct Merged {
    pub(super) size_bytes: u64,
    parts: Vec<Part>,
    /// Offset of the event being read.
    at: usize,
    event: Vec<u8>,
}

/// Opens the files; `read` counts the bytes read from all files.
pub(super) fn merged(files: &[PathBuf], read: &BytesRead) -> std::io::Result<Merged> {
    let mut parts = Vec::new();
    let mut size_bytes = 0;
    for path in files {
        let file = File::open(path)?;
        size_bytes += file.metadata()?.len();
        let file = BufReader::new(read.of(file));
        let mut part = Part { file, event: Vec::new(), time_ns: 0 };
        if part.next()? {
            parts.push(part);
        }
    }
    Ok(Merged { size_bytes, parts, at: 0, event: Vec::new() })
}

impl Part {
    /// Reads the next event; returns `false` at the end. Bytes that are not an event are passed on
    /// unchanged, so that the parser reports them.
    fn next(&mut self) -> std::io::Result<bool> {
        self.event.clear();
        let read = self.file.by_ref().take(HEADER_BYTES as u64).read_to_end(&mut self.event)?;
        if let Some(header) = Header::parse(&self.event, &mut None) {
            let more = header.pdu_bytes as u64;
            self.file.by_ref().take(more).read_to_end(&mut self.event)?;
            self.time_ns = header.time_ns;
        }
        Ok(read > 0)
    }
}

impl Read for Merged {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.event.len() {
            let first = self.parts.iter().enumerate().min_by_key(|(_, part)| part.time_ns);
            let Some((first, _)) = first else { return Ok(0) };
            let part = &mut self.parts[first];
            std::mem::swap(&mut self.event, &mut part.event);
            self.at = 0;
            if !part.next()? {
                self.parts.remove(first);
            }
        }
        let most = into.len().min(self.event.len() - self.at);
        into[..most].copy_from_slice(&self.event[self.at..self.at + most]);
        self.at += most;
        Ok(most)
    }
}
