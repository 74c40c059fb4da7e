//! Published text formats with one I/O per line.

use crate::fields::{Commas, Words, bytes_of};
use crate::number::{
    NS_PER_MS, NS_PER_S, NS_PER_US, SECTOR_BYTES, hexadecimal, response_ns, time_ns, whole,
};
use crate::parser::{Line, Lines};
use crate::record::{NO_RESPONSE, Operation};
use crate::sink::{Reason, Sink};

use super::Format;

type Parsed = Result<Line, Reason>;

fn read_or_write(word: &[u8], read: &[u8], write: &[u8]) -> Result<Operation, Reason> {
    match word {
        _ if word == read => Ok(Operation::Read),
        _ if word == write => Ok(Operation::Write),
        _ => Err("unknown operation"),
    }
}

fn sectors(text: &[u8]) -> Result<u64, Reason> {
    bytes_of(whole(text)?, SECTOR_BYTES)
}

pub(super) const ALIBABA: Format = Format {
    name: "alibaba",
    title: "Alibaba cloud block storage",
    columns: "device_id,opcode,offset,length,timestamp",
    units: "time in microseconds; bytes",
    make: || Box::new(Lines::new(alibaba)),
};

/// Alibaba block traces (2020): `device_id,opcode,offset,length,timestamp`.
fn alibaba(line: &[u8], to: &mut Sink) -> Parsed {
    let mut fields = Commas::new(line);
    let volume = fields.field()?;
    let operation = match fields.field()? {
        b"opcode" => return Ok(Line::Beside("header")),
        word => read_or_write(word, b"R", b"W")?,
    };
    let (offset, length) = (whole(fields.field()?)?, whole(fields.field()?)?);
    let time = time_ns(fields.field()?, NS_PER_US)?;
    fields.end()?;
    let record = to.record(time, operation, offset, length, volume)?;
    to.used(&record)
}

pub(super) const TENCENT: Format = Format {
    name: "tencent",
    title: "Tencent cloud block storage",
    columns: "Timestamp,Offset,Size,IOType,VolumeID",
    units: "time in whole seconds; sectors of 512 bytes; 0 read, 1 write",
    make: || Box::new(Lines::new(tencent)),
};

fn tencent(line: &[u8], to: &mut Sink) -> Parsed {
    let mut fields = Commas::new(line);
    let time = fields.field()?;
    if time == b"Timestamp" {
        return Ok(Line::Beside("header"));
    }
    let (offset, length) = (sectors(fields.field()?)?, sectors(fields.field()?)?);
    let operation = read_or_write(fields.field()?, b"0", b"1")?;
    let volume = fields.field()?;
    fields.end()?;
    whole(volume)?;
    let record = to.record(time_ns(time, NS_PER_S)?, operation, offset, length, volume)?;
    to.used(&record)
}

pub(super) const SPC: Format = Format {
    name: "spc",
    title: "SPC, UMass trace repository (Financial, WebSearch)",
    columns: "ASU,LBA,Size,Opcode,Timestamp, then further fields",
    units: "time in seconds; address in sectors of 512 bytes, size in bytes",
    make: || Box::new(Lines::new(spc)),
};

/// Storage Performance Council / UMass repository: `ASU,LBA,Size,Opcode,Timestamp`.
fn spc(line: &[u8], to: &mut Sink) -> Parsed {
    let mut fields = Commas::new(line);
    let volume = fields.field()?;
    let (offset, length) = (sectors(fields.field()?)?, whole(fields.field()?)?);
    let operation = match fields.field()? {
        b"r" | b"R" => Operation::Read,
        b"w" | b"W" => Operation::Write,
        _ => return Err("unknown operation"),
    };
    whole(volume)?;
    let time = time_ns(fields.field()?, NS_PER_S)?;
    let record = to.record(time, operation, offset, length, volume)?;
    to.used(&record)
}

pub(super) const DISKSIM: Format = Format {
    name: "disksim",
    title: "DiskSim ASCII",
    columns: "time device block blocks flags",
    units: "time in milliseconds; blocks of 512 bytes; bit 0 of the flags: read",
    make: || Box::new(Lines::new(disksim)),
};

fn disksim(line: &[u8], to: &mut Sink) -> Parsed {
    let mut fields = Words::new(line);
    let (time, volume) = (fields.field()?, fields.field()?);
    let (offset, length) = (sectors(fields.field()?)?, sectors(fields.field()?)?);
    let flags = fields.field()?;
    fields.end()?;
    whole(volume)?;
    let flags = if flags.starts_with(b"0x") { hexadecimal(flags)? } else { whole(flags)? };
    let operation = if flags & 1 == 1 { Operation::Read } else { Operation::Write };
    let record = to.record(time_ns(time, NS_PER_MS)?, operation, offset, length, volume)?;
    to.used(&record)
}

pub(super) const SYSTOR: Format = Format {
    name: "systor",
    title: "SYSTOR '17, virtual desktops",
    columns: "Timestamp,Response,IOType,LUN,Offset,Size",
    units: "time and response time in seconds; bytes",
    make: || Box::new(Lines::new(systor)),
};

/// SYSTOR '17 traces (Fujitsu, virtual desktops): `Timestamp,Response,IOType,LUN,Offset,Size`.
fn systor(line: &[u8], to: &mut Sink) -> Parsed {
    let mut fields = Commas::new(line);
    let (time, response, operation) = (fields.field()?, fields.field()?, fields.field()?);
    let (volume, offset, length) = (fields.field()?, fields.field()?, fields.field()?);
    fields.end()?;
    let operation = match operation {
        b"" => return Ok(Line::Beside("row without an operation")),
        b"IOType" => return Ok(Line::Beside("header")),
        word => read_or_write(word, b"R", b"W")?,
    };
    let (offset, length) = (whole(offset)?, whole(length)?);
    let response = match response {
        b"" => NO_RESPONSE,
        time => response_ns(time, NS_PER_S)?,
    };
    let mut record = to.record(time_ns(time, NS_PER_S)?, operation, offset, length, volume)?;
    record.response_ns = response;
    to.used(&record)
}

pub(super) const FIU: Format = Format {
    name: "fiu",
    title: "FIU (home, mail, web)",
    columns: "ts pid process lba size W|R major minor md5",
    units: "time in nanoseconds; sectors of 512 bytes; MD5 of the data",
    make: || Box::new(Lines::new(fiu)),
};

/// Number of stored hash digits; 64 bits suffice to distinguish different data.
const HASH_DIGITS: usize = 16;

fn fiu(line: &[u8], to: &mut Sink) -> Parsed {
    let mut fields = Words::new(line);
    let (time, pid, process) = (fields.field()?, fields.field()?, fields.field()?);
    let (offset, length) = (sectors(fields.field()?)?, sectors(fields.field()?)?);
    let operation = read_or_write(fields.field()?, b"R", b"W")?;
    let (major, minor) = (fields.field()?, fields.field()?);
    let hash = fields.next().unwrap_or_default();
    fields.end()?;
    whole(pid)?;
    whole(major)?;
    whole(minor)?;
    let (time, device) = (time_ns(time, 1)?, [major, b",", minor].concat());
    let mut record = to.record(time, operation, offset, length, &device)?;
    if hash.len() >= HASH_DIGITS {
        record.content = hexadecimal(&hash[..HASH_DIGITS])?.max(1);
    }
    record.process = to.processes.number(process);
    to.used(&record)
}
