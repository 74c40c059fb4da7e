//! fio's I/O logs, versions 2 and 3.
//!
//! Version 2 has pauses (`wait`) instead of times, each relative to the previous line. Version 3
//! starts each line with a time in microseconds (fio's HOWTO, "Trace file format").

use crate::fields::Words;
use crate::number::{NS_PER_US, time_ns, whole};
use crate::parser::{Line, LineFormat, Lines};
use crate::record::Operation;
use crate::sink::{Reason, Sink};

use super::Format;

pub(super) const FORMAT: Format = Format {
    name: "fio-iolog",
    title: "fio's I/O log, version 2 or 3",
    columns: "version 2: file action [offset length]; version 3: time file action [offset length]",
    units: "time and waits in microseconds; bytes",
    make: || Box::new(Lines::new(FioIolog::default())),
};

#[derive(Default)]
struct FioIolog {
    /// Version of the log; 0 before the header.
    version: u8,
    now_ns: u64,
}

impl LineFormat for FioIolog {
    fn line(&mut self, line: &[u8], to: &mut Sink) -> Result<Line, Reason> {
        if self.version == 0 || line.starts_with(b"fio version ") {
            self.version = match line.trim_ascii_end() {
                b"fio version 2 iolog" => 2,
                b"fio version 3 iolog" => 3,
                _ => return Err("missing header of a fio log (version 2 or 3)"),
            };
            return Ok(Line::Used);
        }
        let mut words = Words::new(line);
        if self.version == 3 {
            let time = time_ns(words.field()?, NS_PER_US)?;
            self.now_ns = self.now_ns.max(time);
        }
        let (mut file, mut action) = (words.field()?, words.field()?);
        if file == b"wait" && self.version == 2 && action.iter().all(u8::is_ascii_digit) {
            (file, action, words) = (b"", b"wait", Words::new(line));
            words.field()?;
        }
        let operation = match action {
            b"add" | b"open" | b"close" | b"unlink" => {
                return Ok(Line::Beside("file opened or closed"));
            }
            b"wait" if self.version == 2 => {
                let wait = time_ns(words.field()?, NS_PER_US)?;
                self.now_ns = self.now_ns.checked_add(wait).ok_or("time too large")?;
                return Ok(Line::Used);
            }
            b"read" => Operation::Read,
            b"write" => Operation::Write,
            b"trim" => Operation::Discard,
            b"sync" | b"datasync" => Operation::Flush,
            _ => return Err("unknown action"),
        };
        let (mut offset, mut length) = (0, 0);
        if operation != Operation::Flush {
            (offset, length) = (whole(words.field()?)?, whole(words.field()?)?);
            words.end()?;
        }
        let record = to.record(self.now_ns, operation, offset, length, file)?;
        to.used(&record)
    }
}
