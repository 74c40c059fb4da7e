//! Ring buffers of a tracing instance, their pages, and the records in the pages
//! (`kernel/trace/ring_buffer.c`).
//!
//! A page contains the time of its first record, the number of used bytes, and consecutive records.
//! Each record starts with 5 bits of type or length and 27 bits of time since the previous record.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::format::{EventFormat, Field, FormatError, parse_fields};

const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
const LENGTH_BITS: u32 = 5;
const DELTA_BITS: u32 = 27;
const MISSED_EVENTS: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;
/// Mask for absolute times, which have 59 bits; the upper bits are those of the previous time.
const ABSOLUTE_MASK: u64 = (1 << 59) - 1;

const TIME: Field = Field { offset: 0, size: 8, signed: false };

/// Positions of the page fields, from `events/header_page`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLayout {
    /// Field with the number of used bytes.
    pub commit: Field,
    /// Offset of the first record.
    pub data_at: usize,
    /// Page size in bytes.
    pub size: usize,
}

impl PageLayout {
    /// Reads `events/header_page`.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        let fields = parse_fields(text)?;
        let format = EventFormat { name: "header_page".to_owned(), id: 0, fields };
        let (commit, data) = (format.field("commit")?, format.field("data")?);
        Ok(Self {
            commit: Field { size: commit.size.min(8), ..commit },
            data_at: data.offset,
            size: data.offset.saturating_add(data.size).clamp(4096, 1 << 20),
        })
    }
}

/// Records of a page: the time in ns on the buffer's clock, and the event.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    data: &'a [u8],
    at: usize,
    time_ns: u64,
    /// Number of events lost before this page, if the page reports a number.
    pub lost: u64,
}

impl<'a> Records<'a> {
    /// Returns the records of `page`; returns no records if the page is too short.
    pub fn of(page: &'a [u8], layout: PageLayout) -> Self {
        let commit = layout.commit.number(page);
        let used = (commit & !(MISSED_EVENTS | MISSED_STORED)) as usize;
        let rest = page.get(layout.data_at..).unwrap_or_default();
        let mut lost = u64::from(commit & MISSED_EVENTS != 0);
        if lost > 0 && commit & MISSED_STORED != 0 && used < rest.len() {
            lost = Field { offset: used, ..TIME }.number(rest);
        }
        let data = &rest[..used.min(rest.len())];
        Self { data, at: 0, time_ns: TIME.number(page), lost }
    }

    fn u32_at(&self, at: usize) -> Option<u32> {
        let bytes = self.data.get(at..at.checked_add(4)?)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let header = self.u32_at(self.at)?;
            let (kind, delta) =
                (header & ((1 << LENGTH_BITS) - 1), u64::from(header >> LENGTH_BITS));
            let body = self.at + 4;
            match kind {
                TIME_EXTEND | TIME_STAMP => {
                    let whole = (u64::from(self.u32_at(body)?) << DELTA_BITS) + delta;
                    self.time_ns = match kind {
                        TIME_EXTEND => self.time_ns.wrapping_add(whole),
                        _ => (self.time_ns & !ABSOLUTE_MASK) | (whole & ABSOLUTE_MASK),
                    };
                    self.at = body + 4;
                }
                PADDING => {
                    if delta == 0 {
                        self.at = self.data.len(); // The remainder of the page is unused.
                        return None;
                    }
                    self.time_ns = self.time_ns.wrapping_add(delta);
                    self.at = body.checked_add(self.u32_at(body)?.max(4) as usize)?;
                }
                _ => {
                    self.time_ns = self.time_ns.wrapping_add(delta);
                    // Longer events start with a length field, which counts itself.
                    let (from, to) = match kind {
                        0 => {
                            let length = self.u32_at(body).filter(|&length| length >= 4)?;
                            (body + 4, body.checked_add(length as usize)?)
                        }
                        words => (body, body + 4 * words as usize),
                    };
                    self.at = to;
                    return Some((self.time_ns, self.data.get(from..to)?));
                }
            }
        }
    }
}

const O_NONBLOCK: i32 = 0o4000;
/// Maximum number of pages read from a processor at once, so that no other buffer overflows.
const PAGES_AT_ONCE: usize = 4096;

/// Buffers of all processors, open for reading.
#[derive(Debug)]
pub struct Buffers {
    files: Vec<File>,
    layout: PageLayout,
    page: Vec<u8>,
    /// Number of bytes read so far.
    pub read_bytes: u64,
    /// Total number of lost events reported by the pages.
    pub lost: u64,
}

impl Buffers {
    /// Opens `per_cpu/cpu*/trace_pipe_raw` of an instance.
    pub fn open(instance: &Path, layout: PageLayout) -> io::Result<Self> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(instance.join("per_cpu"))? {
            let path = entry?.path().join("trace_pipe_raw");
            files.push(OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path)?);
        }
        Ok(Self { files, layout, page: vec![0; layout.size], read_bytes: 0, lost: 0 })
    }

    /// Passes the time and data of all events in the buffers to `each`.
    pub fn drain(&mut self, mut each: impl FnMut(u64, &[u8])) -> io::Result<()> {
        for file in &mut self.files {
            for _ in 0..PAGES_AT_ONCE {
                let count = match file.read(&mut self.page) {
                    Ok(0) => break,
                    Ok(count) => count,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error),
                };
                self.read_bytes += count as u64;
                let records = Records::of(&self.page[..count], self.layout);
                self.lost += records.lost;
                for (time_ns, event) in records {
                    each(time_ns, event);
                }
            }
        }
        Ok(())
    }

    /// Closes the buffers because the kernel does not remove an open instance.
    pub fn close(&mut self) {
        self.files.clear();
    }
}
