//! SYSTOR '17 (Fujitsu, virtual desktops): `Timestamp,Response,IOType,LUN,Offset,Size`.

use crate::fields::Commas;
use crate::number::{NS_PER_S, time_ns, whole};
use crate::parser::{Line, LineFormat, Lines};
use crate::record::{NO_RESPONSE, Operation, Record};
use crate::sink::Sink;
use crate::skipped::Reason;

use super::Format;

pub(super) const FORMAT: Format = Format {
    name: "systor",
    title: "SYSTOR '17, virtual desktops",
    columns: "Timestamp,Response,IOType,LUN,Offset,Size",
    units: "time and response time in seconds; bytes",
    make: || Box::new(Lines::new(Systor)),
};

struct Systor;

impl LineFormat for Systor {
    fn line(&mut self, line: &[u8], to: &mut Sink) -> Result<Line, Reason> {
        let mut fields = Commas::new(line);
        let (time, response, operation) = (fields.field()?, fields.field()?, fields.field()?);
        let (volume, offset, length) = (fields.field()?, fields.field()?, fields.field()?);
        fields.end()?;
        let operation = match operation {
            b"R" => Operation::Read,
            b"W" => Operation::Write,
            b"" => return Ok(Line::Beside("row without an operation")),
            b"IOType" => return Ok(Line::Beside("header")),
            _ => return Err("unknown operation"),
        };
        let (offset, length) = (whole(offset)?, whole(length)?);
        let response = match response {
            b"" => NO_RESPONSE,
            said => i64::try_from(time_ns(said, NS_PER_S)?).map_err(|_| "time too large")?,
        };
        let time = time_ns(time, NS_PER_S)?;
        let mut record = Record::new(to.since_begin(time)?, operation, offset, length);
        record.response_ns = response;
        record.volume = to.volumes.number(volume);
        to.push(&record)?;
        Ok(Line::Used)
    }
}
