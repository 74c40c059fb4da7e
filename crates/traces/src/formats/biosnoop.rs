//! biosnoop (BCC, bpftrace) output: one line per completed I/O, with its latency.

use crate::fields::{Words, bytes_of};
use crate::number::{NS_PER_MS, NS_PER_S, SECTOR_BYTES, time_ns, whole};
use crate::parser::{Line, LineFormat, Lines};
use crate::record::{Operation, Record};
use crate::sink::{Reason, Sink};

use super::Format;

pub(super) const FORMAT: Format = Format {
    name: "biosnoop",
    title: "biosnoop (BCC, bpftrace)",
    columns: "TIME(s) COMM PID DISK T SECTOR BYTES [QUE(ms)] LAT(ms)",
    units: "time in seconds, latency in milliseconds; sectors of 512 bytes",
    make: || Box::new(Lines::new(Biosnoop::default())),
};

#[derive(Default)]
struct Biosnoop {
    /// Unit of the time column according to the header; 0 before the header.
    unit_ns: u64,
    /// `true` if the header has a column with the queue time.
    queued: bool,
}

impl Biosnoop {
    fn header(&mut self, line: &[u8]) -> Result<Line, Reason> {
        let has = |word: &[u8]| Words::new(line).any(|other| other == word);
        if ![&b"DISK"[..], b"SECTOR", b"BYTES", b"LAT(ms)"].iter().all(|word| has(word)) {
            return Err("biosnoop header without an address, size or latency column");
        }
        self.unit_ns = if has(b"TIME(ms)") { NS_PER_MS } else { NS_PER_S };
        self.queued = has(b"QUE(ms)");
        Ok(Line::Beside("header"))
    }
}

impl LineFormat for Biosnoop {
    fn line(&mut self, line: &[u8], to: &mut Sink) -> Result<Line, Reason> {
        if line.trim_ascii_start().starts_with(b"TIME(") {
            return self.header(line);
        }
        if line.starts_with(b"Tracing ") || line.starts_with(b"Attaching ") {
            return Ok(Line::Beside("header"));
        }
        if self.unit_ns == 0 {
            return Err("missing biosnoop header");
        }
        // The process name may contain blanks, so fields are counted from the end.
        let words: Vec<_> = Words::new(line).collect();
        let behind = 6 + usize::from(self.queued);
        if words.len() < behind + 2 {
            return Err("too few fields");
        }
        let [pid, disk, operation, sector, bytes] = words[words.len() - behind..][..5] else {
            return Err("too few fields");
        };
        whole(pid)?;
        let operation = match operation {
            b"R" => Operation::Read,
            b"W" => Operation::Write,
            b"D" => Operation::Discard,
            b"F" => Operation::Flush,
            _ => return Err("unknown operation"),
        };
        let latency = time_ns(words[words.len() - 1], NS_PER_MS)?;
        let (mut offset, mut length) = (0, 0);
        if operation != Operation::Flush {
            offset = bytes_of(whole(sector)?, SECTOR_BYTES)?;
            length = whole(bytes)?;
        }
        let done = time_ns(words[0], self.unit_ns)?;
        let response = i64::try_from(latency).map_err(|_| "time too large")?;
        let issued = to.since_begin(done)?.saturating_sub(response);
        let mut record = Record::new(issued, operation, offset, length);
        record.response_ns = response;
        record.volume = to.volumes.number(disk);
        let name = words[1..words.len() - behind].join(&b' ');
        record.process = to.processes.number(&name);
        to.used(&record)
    }
}
