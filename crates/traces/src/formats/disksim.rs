//! DiskSim's ASCII traces: time, device, block, blocks, flags.

use crate::fields::{Words, bytes_of};
use crate::number::{NS_PER_MS, SECTOR_BYTES, hexadecimal, time_ns, whole};
use crate::parser::{Line, LineFormat, Lines};
use crate::record::{Operation, Record};
use crate::sink::Sink;
use crate::skipped::Reason;

use super::Format;

pub(super) const FORMAT: Format = Format {
    name: "disksim",
    title: "DiskSim ASCII",
    columns: "time device block blocks flags",
    units: "time in milliseconds; blocks of 512 bytes; bit 0 of the flags: read",
    make: || Box::new(Lines::new(DiskSim)),
};

struct DiskSim;

impl LineFormat for DiskSim {
    fn line(&mut self, line: &[u8], to: &mut Sink) -> Result<Line, Reason> {
        let mut fields = Words::new(line);
        let (time, volume) = (fields.field()?, fields.field()?);
        let offset = bytes_of(whole(fields.field()?)?, SECTOR_BYTES)?;
        let length = bytes_of(whole(fields.field()?)?, SECTOR_BYTES)?;
        let flags = fields.field()?;
        fields.end()?;
        whole(volume)?;
        let flags = if flags.starts_with(b"0x") { hexadecimal(flags)? } else { whole(flags)? };
        let operation = if flags & 1 == 1 { Operation::Read } else { Operation::Write };
        let time = time_ns(time, NS_PER_MS)?;
        let mut record = Record::new(to.since_begin(time)?, operation, offset, length);
        record.volume = to.volumes.number(volume);
        to.push(&record)?;
        Ok(Line::Used)
    }
}
