//! FIU (home, mail, web): time, process, address, size, operation, device, hash of the data.

use crate::fields::{Words, bytes_of};
use crate::number::{SECTOR_BYTES, hexadecimal, time_ns, whole};
use crate::parser::{Line, LineFormat, Lines};
use crate::record::{Operation, Record};
use crate::sink::Sink;
use crate::skipped::Reason;

use super::Format;

pub(super) const FORMAT: Format = Format {
    name: "fiu",
    title: "FIU (home, mail, web)",
    columns: "ts pid process lba size W|R major minor md5",
    units: "time in nanoseconds; sectors of 512 bytes; MD5 of the data",
    make: || Box::new(Lines::new(Fiu::default())),
};

#[derive(Default)]
struct Fiu {
    volume: Vec<u8>,
}

/// Digits of a hash that are kept: 64 bits tell data apart.
const HASH_DIGITS: usize = 16;

impl LineFormat for Fiu {
    fn line(&mut self, line: &[u8], to: &mut Sink) -> Result<Line, Reason> {
        let mut fields = Words::new(line);
        let (time, pid, process) = (fields.field()?, fields.field()?, fields.field()?);
        let offset = bytes_of(whole(fields.field()?)?, SECTOR_BYTES)?;
        let length = bytes_of(whole(fields.field()?)?, SECTOR_BYTES)?;
        let operation = match fields.field()? {
            b"R" => Operation::Read,
            b"W" => Operation::Write,
            _ => return Err("unknown operation"),
        };
        let (major, minor) = (fields.field()?, fields.field()?);
        let hash = fields.next().unwrap_or_default();
        fields.end()?;
        whole(pid)?;
        whole(major)?;
        whole(minor)?;
        let time = time_ns(time, 1)?;
        let mut record = Record::new(to.since_begin(time)?, operation, offset, length);
        if hash.len() >= HASH_DIGITS {
            record.content = hexadecimal(&hash[..HASH_DIGITS])?.max(1);
        }
        self.volume.clear();
        self.volume.extend_from_slice(major);
        self.volume.push(b',');
        self.volume.extend_from_slice(minor);
        record.volume = to.volumes.number(&self.volume);
        record.process = to.processes.number(process);
        to.push(&record)?;
        Ok(Line::Used)
    }
}
