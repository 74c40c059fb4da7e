//! Binary blktrace files, which contain block layer events in one file per processor.
//!
//! An event is
//! `magic:4 sequence:4 time:8 sector:8 bytes:4 action:4 pid:4 device:4 cpu:4 error:2 pdu_len:2`,
//! then `pdu_len` more bytes (the kernel's `blktrace_api.h`). The low half of the action is the
//! event, and the high half is the request type.

use std::collections::BTreeMap;

use writecliff_tracefs::{BlockEvent, EventKind, Flags, Operation};

use crate::pairing::Pairing;
use crate::parser::{Parser, WHOLE_MAX_BYTES};
use crate::sink::Sink;

use super::Format;

pub(super) const FORMAT: Format = Format {
    name: "blktrace",
    title: "blktrace, binary",
    columns: "binary: events of the block layer; a file for each processor, NAME.blktrace.N",
    units: "time in nanoseconds; sectors of 512 bytes; requests from their events",
    make: || Box::new(Blktrace::default()),
};

#[derive(Default)]
struct Blktrace {
    big_endian: Option<bool>,
    lost: bool,
    /// Thread names by thread number, from the trace.
    names: BTreeMap<u32, u32>,
    pairing: Pairing,
}

pub(crate) const HEADER_BYTES: usize = 48;
const MAGIC: u32 = 0x6561_7400;
const MAGIC_MASK: u32 = 0xffff_ff00;
const VERSION: u32 = 7;
const ACTION_MASK: u32 = 0xff;
const CGROUP: u32 = 1 << 8;
const NOTIFY: u32 = 1 << (10 + 16);
const PROCESS_NAME: u32 = 0;
const SECTOR_SHIFT: u32 = 9;
const PROCESSES_MAX: usize = 1 << 16;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) time_ns: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    pid: u32,
    device: u32,
    error: u16,
    pub(crate) pdu_bytes: usize,
}

impl Header {
    /// Parses the header at the start of `bytes`, in either byte order; `None` if there is none.
    pub(crate) fn parse(bytes: &[u8], big_endian: &mut Option<bool>) -> Option<Self> {
        let four = |at: usize| -> Option<[u8; 4]> { bytes.get(at..at + 4)?.try_into().ok() };
        let big = *big_endian.get_or_insert(u32::from_be_bytes(four(0)?) & MAGIC_MASK == MAGIC);
        let word = |at: usize| -> Option<u32> {
            Some(if big { u32::from_be_bytes(four(at)?) } else { u32::from_le_bytes(four(at)?) })
        };
        let long = |at: usize| -> Option<u64> {
            let (low, high) =
                if big { (word(at + 4)?, word(at)?) } else { (word(at)?, word(at + 4)?) };
            Some(u64::from(high) << 32 | u64::from(low))
        };
        if word(0)? != MAGIC | VERSION {
            return None;
        }
        // Two 16-bit numbers are swapped separately.
        let (error, pdu) = match (word(44)?, big) {
            (both, false) => (both & 0xffff, both >> 16),
            (both, true) => (both >> 16, both & 0xffff),
        };
        Some(Self {
            time_ns: long(8)?,
            sector: long(16)?,
            bytes: word(24)?,
            action: word(28)?,
            pid: word(32)?,
            device: word(36)?,
            error: error as u16,
            pdu_bytes: pdu as usize,
        })
    }

    /// Returns the operation, as blkparse prints it, from the kernel's `BLK_TC_*` bits (high half).
    fn operation(self) -> (Operation, Flags) {
        let is = |bit: u32| self.action & 1 << (16 + bit) != 0;
        let mut flags = 0;
        for (bit, flag) in [(3, Flags::SYNC), (11, Flags::READAHEAD), (12, Flags::META)] {
            flags |= if is(bit) { flag } else { 0 };
        }
        let operation = match (is(13), is(1), is(0)) {
            (true, ..) => Operation::Discard,
            (_, true, _) => Operation::Write,
            (_, _, true) => Operation::Read,
            _ if is(2) => Operation::Flush,
            _ => Operation::Other,
        };
        // A flush before a write and the FUA of a write need no separate events.
        if is(2) && operation == Operation::Write {
            flags |= if self.bytes == 0 { Flags::PREFLUSH } else { 0 };
        }
        if is(15) {
            flags |= Flags::FUA;
        }
        (operation, Flags(flags))
    }
}

/// Returns the type of an action (`__BLK_TA_*`): queue 1, back merge 2, front merge 3, get request
/// 4, sleep 5, requeue 6, issue 7, complete 8.
fn kind_of(action: u32) -> Option<EventKind> {
    Some(match action & ACTION_MASK {
        1 => EventKind::BioQueue,
        3 => EventKind::FrontMerge,
        4 => EventKind::Get,
        6 => EventKind::Requeue,
        7 => EventKind::Issue,
        8 => EventKind::Complete,
        _ => return None,
    })
}

impl Blktrace {
    fn event(&mut self, header: Header, pdu: &[u8], to: &mut Sink) {
        if header.action & NOTIFY != 0 {
            // A control group number precedes the remaining data.
            let pdu = if header.action & CGROUP == 0 { pdu } else { pdu.get(8..).unwrap_or(&[]) };
            if header.action & ACTION_MASK == PROCESS_NAME && self.names.len() < PROCESSES_MAX {
                let end = pdu.iter().position(|&byte| byte == 0).unwrap_or(pdu.len());
                let name = to.processes.number(&pdu[..end]);
                self.names.insert(header.pid, name);
            }
            return;
        }
        let Some(kind) = kind_of(header.action) else {
            return to.skip("event that does not belong to a request", true);
        };
        let (operation, flags) = header.operation();
        let (major, minor) = (header.device >> 20, header.device & 0xf_ffff);
        let name = self.names.get(&header.pid).copied().unwrap_or(0);
        let event = BlockEvent {
            time_ns: header.time_ns,
            kind,
            operation,
            flags,
            sector: header.sector,
            sectors: header.bytes >> SECTOR_SHIFT,
            thread_id: header.pid as i32,
            name,
            errno: header.error,
        };
        let volume = to.volumes.number(format!("{major},{minor}").as_bytes());
        self.pairing.add(volume, &event, to);
    }
}

impl Parser for Blktrace {
    fn parse(&mut self, bytes: &[u8], last: bool, to: &mut Sink) -> usize {
        let mut used = 0;
        while !self.lost && bytes.len() - used >= HEADER_BYTES {
            let rest = &bytes[used..];
            let Some(header) = Header::parse(rest, &mut self.big_endian) else {
                self.lost = true;
                to.line += 1;
                to.skip("not a blktrace event", false);
                break;
            };
            let size = HEADER_BYTES + header.pdu_bytes;
            debug_assert!(size <= WHOLE_MAX_BYTES);
            let Some(event) = rest.get(..size) else { break };
            to.line += 1;
            self.event(header, &event[HEADER_BYTES..], to);
            used += size;
        }
        if !self.lost && last && used < bytes.len() {
            self.lost = true;
            to.line += 1;
            to.skip("truncated event", false);
        }
        if self.lost { bytes.len() } else { used }
    }

    fn finish(&mut self, to: &mut Sink) {
        self.pairing.finish(to);
    }
}
