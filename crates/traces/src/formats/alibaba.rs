//! Alibaba block traces (2020): `device_id,opcode,offset,length,timestamp`.

use crate::fields::Commas;
use crate::number::{NS_PER_US, time_ns, whole};
use crate::parser::{Line, LineFormat, Lines};
use crate::record::{Operation, Record};
use crate::sink::Sink;
use crate::skipped::Reason;

use super::Format;

pub(super) const FORMAT: Format = Format {
    name: "alibaba",
    title: "Alibaba cloud block storage",
    columns: "device_id,opcode,offset,length,timestamp",
    units: "time in microseconds; bytes",
    make: || Box::new(Lines::new(Alibaba)),
};

struct Alibaba;

impl LineFormat for Alibaba {
    fn line(&mut self, line: &[u8], to: &mut Sink) -> Result<Line, Reason> {
        let mut fields = Commas::new(line);
        let volume = fields.field()?;
        let operation = match fields.field()? {
            b"R" => Operation::Read,
            b"W" => Operation::Write,
            b"opcode" => return Ok(Line::Beside("header")),
            _ => return Err("unknown operation"),
        };
        let (offset, length) = (whole(fields.field()?)?, whole(fields.field()?)?);
        let time = time_ns(fields.field()?, NS_PER_US)?;
        fields.end()?;
        let mut record = Record::new(to.since_begin(time)?, operation, offset, length);
        record.volume = to.volumes.number(volume);
        to.push(&record)?;
        Ok(Line::Used)
    }
}
