//! MSR Cambridge's CSV. It has reads and writes only; a volume `host.N` becomes disk N of a host.

use std::io::Write;

use crate::number::NS_PER_TICK;
use crate::record::{Operation, Record};

use super::{RecordFormat, word};

pub(super) struct Msr;

/// Times count from 1601; those of a trace begin here (2007-02-22 17:00, when MSR's traces do).
const BEGIN_TICKS: u64 = 128_166_372_000_000_000;

impl RecordFormat for Msr {
    fn record(
        &mut self,
        record: &Record,
        volume: &str,
        _process: &str,
        to: &mut dyn Write,
    ) -> std::io::Result<bool> {
        let operation = match record.operation {
            Operation::Read => "Read",
            Operation::Write => "Write",
            _ => return Ok(false),
        };
        let numbered = volume
            .rsplit_once('.')
            .filter(|(_, disk)| !disk.is_empty() && disk.bytes().all(|byte| byte.is_ascii_digit()));
        let (host, disk) = numbered.unwrap_or((volume, "0"));
        let ticks = BEGIN_TICKS + record.time_ns.unsigned_abs() / NS_PER_TICK;
        let response = u64::try_from(record.response_ns).unwrap_or(0) / NS_PER_TICK;
        let host = word(host);
        let (offset, length) = (record.offset_bytes, record.length_bytes);
        writeln!(to, "{ticks},{host},{disk},{operation},{offset},{length},{response}")?;
        Ok(true)
    }
}
