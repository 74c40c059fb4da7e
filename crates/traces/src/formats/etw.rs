//! Microsoft production server traces (IOTTA): Windows events (ETW) as CSV.
//!
//! Events are recorded when their I/Os complete; the elapsed time in an event gives the issue time.

use crate::fields::Commas;
use crate::number::{NS_PER_US, hexadecimal, response_ns, time_ns, whole};
use crate::parser::{Line, LineFormat, Lines};
use crate::record::{Operation, Record};
use crate::sink::{Reason, Sink};

use super::Format;

pub(super) const FORMAT: Format = Format {
    name: "etw",
    title: "Microsoft production servers (ETW as CSV)",
    columns: "DiskRead|DiskWrite|DiskFlush, TimeStamp, Process ( PID), ThreadID, IrpPtr, \
              ByteOffset, IOSize, ElapsedTime, DiskNum, ...",
    units: "times in microseconds; bytes in hexadecimal; the header ends at EndHeader",
    make: || Box::new(Lines::new(Etw::default())),
};

#[derive(Default)]
struct Etw {
    header: bool,
    /// `true` if events have a processor column, as written by newer versions of the tool.
    processor: bool,
}

impl LineFormat for Etw {
    fn line(&mut self, line: &[u8], to: &mut Sink) -> Result<Line, Reason> {
        let mut fields = Commas::new(line);
        let event = fields.field()?;
        if event == b"BeginHeader" || event == b"EndHeader" {
            self.header = event == b"BeginHeader";
            return Ok(Line::Beside("header"));
        }
        if self.header {
            if event == b"DiskRead" {
                self.processor = Commas::new(line).any(|field| field == b"CPU");
            }
            return Ok(Line::Beside("header"));
        }
        let operation = match event {
            b"DiskRead" => Operation::Read,
            b"DiskWrite" => Operation::Write,
            b"DiskFlush" => Operation::Flush,
            b"DiskReadInit" | b"DiskWriteInit" | b"DiskFlushInit" => {
                return Ok(Line::Beside("start of an I/O that is reported at its end"));
            }
            b"FileIoRead" | b"FileIoWrite" | b"FileIoCreate" | b"FileIoClose" => {
                return Ok(Line::Beside("I/O of a file"));
            }
            _ if event.is_empty() || !event.iter().all(u8::is_ascii_alphanumeric) => {
                return Err("unknown event");
            }
            _ => return Err("event other than a disk I/O"),
        };
        event_of(operation, self.processor, &mut fields, to)?;
        Ok(Line::Used)
    }
}

fn event_of(
    operation: Operation,
    processor: bool,
    fields: &mut Commas<'_>,
    to: &mut Sink,
) -> Result<(), Reason> {
    let (time, process) = (time_ns(fields.field()?, NS_PER_US)?, fields.field()?);
    for _ in 0..2 + usize::from(processor) {
        fields.field()?; // Skip the thread and the packet.
    }
    let (offset, length, elapsed, disk) = if operation == Operation::Flush {
        let (elapsed, disk) = (fields.field()?, fields.field()?);
        (0, 0, elapsed, disk)
    } else {
        let offset = hexadecimal(fields.field()?)?;
        let length = hexadecimal(fields.field()?)?;
        (offset, length, fields.field()?, fields.field()?)
    };
    whole(disk)?;
    let response_ns = response_ns(elapsed, NS_PER_US)?;
    // An I/O may have started before the trace started.
    let issued = to.since_begin(time)?.saturating_sub(response_ns);
    let mut record = Record::new(issued, operation, offset, length);
    record.response_ns = response_ns;
    record.volume = to.volumes.number(disk);
    let name = process.iter().position(|&byte| byte == b'(').unwrap_or(process.len());
    record.process = to.processes.number(process[..name].trim_ascii());
    to.push(&record)
}
