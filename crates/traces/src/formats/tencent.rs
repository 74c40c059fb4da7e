//! Tencent CBS: `Timestamp,Offset,Size,IOType,VolumeID`.

use crate::fields::{Commas, bytes_of};
use crate::number::{NS_PER_S, SECTOR_BYTES, time_ns, whole};
use crate::parser::{Line, LineFormat, Lines};
use crate::record::{Operation, Record};
use crate::sink::Sink;
use crate::skipped::Reason;

use super::Format;

pub(super) const FORMAT: Format = Format {
    name: "tencent",
    title: "Tencent cloud block storage",
    columns: "Timestamp,Offset,Size,IOType,VolumeID",
    units: "time in whole seconds; sectors of 512 bytes; 0 read, 1 write",
    make: || Box::new(Lines::new(Tencent)),
};

struct Tencent;

impl LineFormat for Tencent {
    fn line(&mut self, line: &[u8], to: &mut Sink) -> Result<Line, Reason> {
        let mut fields = Commas::new(line);
        let time = fields.field()?;
        if time == b"Timestamp" {
            return Ok(Line::Beside("header"));
        }
        let offset = bytes_of(whole(fields.field()?)?, SECTOR_BYTES)?;
        let length = bytes_of(whole(fields.field()?)?, SECTOR_BYTES)?;
        let operation = match fields.field()? {
            b"0" => Operation::Read,
            b"1" => Operation::Write,
            _ => return Err("unknown operation"),
        };
        let volume = fields.field()?;
        fields.end()?;
        whole(volume)?;
        let time = time_ns(time, NS_PER_S)?;
        let mut record = Record::new(to.since_begin(time)?, operation, offset, length);
        record.volume = to.volumes.number(volume);
        to.push(&record)?;
        Ok(Line::Used)
    }
}
