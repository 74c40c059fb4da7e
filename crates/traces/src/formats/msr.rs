//! MSR Cambridge (IOTTA 388): `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.

use crate::fields::Commas;
use crate::number::{NS_PER_TICK, leading, response_ns, time_ns, whole};
use crate::parser::{Line, LineFormat, Lines};
use crate::record::{Operation, Record};
use crate::sink::{Reason, Sink};

use super::Format;

pub(super) const FORMAT: Format = Format {
    name: "msr",
    title: "MSR Cambridge",
    columns: "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
    units: "time and response time in Windows ticks of 100 ns; bytes",
    make: || Box::new(Lines::new(Msr::default())),
};

#[derive(Default)]
struct Msr {
    /// Volume of the previous line as text: host and disk.
    last: Vec<u8>,
    volume: u32,
}

impl Msr {
    /// Returns the number of the volume `host,disk`, usually that of the previous line.
    fn volume(&mut self, host: &[u8], disk: &[u8], to: &mut Sink) -> u32 {
        let same = self.last.len() == host.len() + disk.len() + 1
            && self.last.starts_with(host)
            && self.last.ends_with(disk)
            && self.last[host.len()] == b'.';
        if !same {
            self.last.clear();
            self.last.extend_from_slice(host);
            self.last.push(b'.');
            self.last.extend_from_slice(disk);
            self.volume = to.volumes.number(&self.last);
        }
        self.volume
    }
}

struct Fields<'a> {
    time_ns: u64,
    host: &'a [u8],
    disk: &'a [u8],
    operation: Operation,
    offset: u64,
    length: u64,
    response_ns: i64,
}

/// Returns the fields of a line in the usual form, which has no blanks, fractions or long numbers.
/// Returns `None` for all other lines, which are parsed field by field.
#[inline]
fn plain(line: &[u8]) -> Option<Fields<'_>> {
    let number = |at: usize| {
        let (value, end) = leading(line, at)?;
        (line.get(end) == Some(&b',')).then_some((value, end + 1))
    };
    let (ticks, host) = number(0)?;
    let host_end = host + line[host..].iter().position(|&byte| byte == b',')?;
    let (_, kind) = number(host_end + 1)?;
    let (operation, offset) = match &line[kind..] {
        [b'R', b'e', b'a', b'd', b',', ..] => (Operation::Read, kind + 5),
        [b'W', b'r', b'i', b't', b'e', b',', ..] => (Operation::Write, kind + 6),
        _ => return None,
    };
    let (offset, length) = number(offset)?;
    let (length, response) = number(length)?;
    let (response_ticks, end) = leading(line, response)?;
    let (host, disk) = (&line[host..host_end], &line[host_end + 1..kind - 1]);
    let time_ns = ticks.checked_mul(NS_PER_TICK)?;
    let response_ns = response_ticks.checked_mul(NS_PER_TICK)?.try_into().ok()?;
    let fields = Fields { time_ns, host, disk, operation, offset, length, response_ns };
    (end == line.len()).then_some(fields)
}

/// Returns the fields of any line; `None` for the header.
fn any(line: &[u8]) -> Result<Option<Fields<'_>>, Reason> {
    let mut fields = Commas::new(line);
    let (time, host, disk) = (fields.field()?, fields.field()?, fields.field()?);
    let operation = match fields.field()? {
        b"Read" => Operation::Read,
        b"Write" => Operation::Write,
        b"Type" if time == b"Timestamp" => return Ok(None),
        _ => return Err("unknown operation"),
    };
    let (offset, length) = (whole(fields.field()?)?, whole(fields.field()?)?);
    let response_ns = response_ns(fields.field()?, NS_PER_TICK)?;
    fields.end()?;
    whole(disk)?;
    let time_ns = time_ns(time, NS_PER_TICK)?;
    Ok(Some(Fields { time_ns, host, disk, operation, offset, length, response_ns }))
}

impl LineFormat for Msr {
    fn line(&mut self, line: &[u8], to: &mut Sink) -> Result<Line, Reason> {
        let Some(of) = plain(line).map_or_else(|| any(line), |fields| Ok(Some(fields)))? else {
            return Ok(Line::Beside("header"));
        };
        let mut record =
            Record::new(to.since_begin(of.time_ns)?, of.operation, of.offset, of.length);
        record.response_ns = of.response_ns;
        record.volume = self.volume(of.host, of.disk, to);
        to.used(&record)
    }
}
