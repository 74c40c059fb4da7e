//! CloudPhysics traces: commands of virtual SCSI disks, as binary records in two versions.
//!
//! Version 1 is `sn:4 len:4 nSG:4 cmd:2 ver:2 lbn:8 ts:8`, and version 2 is
//! `cmd:2 ver:2 sn:4 len:4 nSG:4 lbn:8 ts:8 rt:8`. Both are little-endian, and the high byte of
//! `ver` is the version.

use crate::fields::bytes_of;
use crate::number::{NS_PER_US, SECTOR_BYTES};
use crate::parser::Parser;
use crate::record::{Operation, Record};
use crate::sink::{Reason, Sink};

use super::Format;

pub(super) const FORMAT: Format = Format {
    name: "vscsi",
    title: "CloudPhysics vscsi, version 1 or 2",
    columns: "binary: sn len nSG cmd ver lbn ts, in version 2 also rt",
    units: "times in microseconds; address in sectors of 512 bytes, length in bytes",
    make: || Box::new(Vscsi::default()),
};

#[derive(Default)]
struct Vscsi {
    version: Option<u8>,
    /// `true` after a damaged record, because the start of the next record is unknown.
    lost: bool,
}

/// Reason to skip a command that is not an I/O, although its record is intact.
const NO_DATA: Reason = "command that transfers no data";

const LENGTHS: [usize; 3] = [0, 32, 40];

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte))
}

impl Vscsi {
    fn record(&self, bytes: &[u8], to: &mut Sink) -> Result<(), Reason> {
        let [command, version, size, sector, time, response] = match self.version {
            Some(1) => [12..14, 14..16, 4..8, 16..24, 24..32, 0..0],
            _ => [0..2, 2..4, 8..12, 16..24, 24..32, 32..40],
        };
        if number(&bytes[version]) >> 8 != u64::from(self.version.unwrap_or_default()) {
            return Err("unsupported record version");
        }
        let operation = match number(&bytes[command]) {
            0x08 | 0x28 | 0x88 | 0xa8 => Operation::Read,
            0x0a | 0x2a | 0x8a | 0xaa => Operation::Write,
            0x35 | 0x91 => Operation::Flush,
            0x41 | 0x42 | 0x93 => Operation::Discard,
            _ => return Err(NO_DATA),
        };
        let (mut offset, mut length) = (0, 0);
        if operation != Operation::Flush {
            offset = bytes_of(number(&bytes[sector]), SECTOR_BYTES)?;
            length = number(&bytes[size]);
        }
        let time = number(&bytes[time]).checked_mul(NS_PER_US).ok_or("time too large")?;
        let mut record = Record::new(to.since_begin(time)?, operation, offset, length);
        if !response.is_empty() {
            let us = number(&bytes[response]).checked_mul(NS_PER_US).ok_or("time too large")?;
            record.response_ns = i64::try_from(us).map_err(|_| "time too large")?;
        }
        record.volume = to.volumes.number(b"vscsi");
        to.push(&record)
    }
}

impl Parser for Vscsi {
    fn parse(&mut self, bytes: &[u8], last: bool, to: &mut Sink) -> usize {
        if self.lost {
            return bytes.len();
        }
        let version = match self.version {
            Some(version) => version,
            None if bytes.len() < LENGTHS[2] && !last => return 0,
            None => match (bytes.get(15), bytes.get(3)) {
                (Some(1), _) if bytes[12..14] != [0, 0] => 1,
                (_, Some(2)) => 2,
                _ => 0,
            },
        };
        self.version = Some(version);
        let size = LENGTHS[usize::from(version)];
        let mut used = 0;
        while version != 0 && bytes.len() - used >= size {
            to.line += 1;
            if let Err(reason) = self.record(&bytes[used..used + size], to) {
                to.skip(reason, reason == NO_DATA);
            }
            used += size;
        }
        if version == 0 || (last && used < bytes.len()) {
            self.lost = true;
            to.line += 1;
            to.skip(if version == 0 { "not a vscsi record" } else { "truncated record" }, false);
            return bytes.len();
        }
        used
    }
}
