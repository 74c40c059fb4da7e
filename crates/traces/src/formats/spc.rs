//! Storage Performance Council / UMass repository: `ASU,LBA,Size,Opcode,Timestamp`.

use crate::fields::{Commas, bytes_of};
use crate::number::{NS_PER_S, SECTOR_BYTES, time_ns, whole};
use crate::parser::{Line, LineFormat, Lines};
use crate::record::{Operation, Record};
use crate::sink::Sink;
use crate::skipped::Reason;

use super::Format;

pub(super) const FORMAT: Format = Format {
    name: "spc",
    title: "SPC, UMass trace repository (Financial, WebSearch)",
    columns: "ASU,LBA,Size,Opcode,Timestamp, then fields of one's own",
    units: "time in seconds; address in sectors of 512 bytes, size in bytes",
    make: || Box::new(Lines::new(Spc)),
};

struct Spc;

impl LineFormat for Spc {
    fn line(&mut self, line: &[u8], to: &mut Sink) -> Result<Line, Reason> {
        let mut fields = Commas::new(line);
        let volume = fields.field()?;
        let offset = bytes_of(whole(fields.field()?)?, SECTOR_BYTES)?;
        let length = whole(fields.field()?)?;
        let operation = match fields.field()? {
            b"r" | b"R" => Operation::Read,
            b"w" | b"W" => Operation::Write,
            _ => return Err("unknown operation"),
        };
        whole(volume)?;
        let time = time_ns(fields.field()?, NS_PER_S)?;
        let mut record = Record::new(to.since_begin(time)?, operation, offset, length);
        record.volume = to.volumes.number(volume);
        to.push(&record)?;
        Ok(Line::Used)
    }
}
