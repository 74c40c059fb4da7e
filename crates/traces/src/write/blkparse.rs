//! blkparse's text: an issue (D) for each I/O, and a completion (C) where it is known, in the order
//! of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Write;

use crate::Names;
use crate::number::{NS_PER_S, SECTOR_BYTES};
use crate::record::{NO_RESPONSE, Operation, Record};

use super::{RecordFormat, number_of};

/// Completions that wait for their time; a trace with more has damaged response times.
const WAITING_MAX: usize = 1 << 20;

#[derive(Default)]
pub(super) struct Blkparse {
    volumes: Names,
    sequence: u64,
    completions: BinaryHeap<Reverse<(i64, u64, Event)>>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    volume: u32,
    operation: Operation,
    sector: u64,
    sectors: u64,
}

fn line(
    to: &mut dyn Write,
    time_ns: i64,
    number: u64,
    action: char,
    of: Event,
    bracket: &str,
) -> std::io::Result<()> {
    let rwbs = match of.operation {
        Operation::Read => "R",
        Operation::Write => "W",
        Operation::Discard => "D",
        Operation::Flush => "FN",
    };
    let ns = time_ns.unsigned_abs();
    let (seconds, fraction) = (ns / NS_PER_S, ns % NS_PER_S);
    let volume = of.volume;
    let (major, minor) = (8 + volume / 256, volume % 256);
    write!(to, "{major:3},{minor:<3} 0 {number:8} {seconds:5}.{fraction:09} 0  {action}  {rwbs} ")?;
    if of.operation != Operation::Flush {
        write!(to, "{} + {} ", of.sector, of.sectors)?;
    }
    writeln!(to, "[{bracket}]")
}

impl Blkparse {
    fn complete(&mut self, until_ns: i64, to: &mut dyn Write) -> std::io::Result<()> {
        while let Some(Reverse((time_ns, _, event))) = self.completions.peek().copied() {
            if time_ns > until_ns {
                break;
            }
            self.completions.pop();
            self.sequence += 1;
            line(to, time_ns, self.sequence, 'C', event, "0")?;
        }
        Ok(())
    }
}

impl RecordFormat for Blkparse {
    fn record(
        &mut self,
        record: &Record,
        volume: &str,
        process: &str,
        to: &mut dyn Write,
    ) -> std::io::Result<bool> {
        let end = record.offset_bytes + record.length_bytes;
        let sector = record.offset_bytes / SECTOR_BYTES;
        let event = Event {
            volume: number_of(&mut self.volumes, volume),
            operation: record.operation,
            sector,
            sectors: end.div_ceil(SECTOR_BYTES) - sector,
        };
        // The kernel counts the sectors of a request in 32 bits.
        if event.sectors > u64::from(u32::MAX) {
            return Ok(false);
        }
        self.complete(record.time_ns, to)?;
        self.sequence += 1;
        line(to, record.time_ns, self.sequence, 'D', event, process)?;
        if record.response_ns != NO_RESPONSE {
            let done = record.time_ns.saturating_add(record.response_ns);
            self.completions.push(Reverse((done, self.sequence, event)));
            if self.completions.len() > WAITING_MAX {
                self.completions.pop();
            }
        }
        Ok(true)
    }

    fn finish(&mut self, to: &mut dyn Write) -> std::io::Result<()> {
        self.complete(i64::MAX, to)
    }
}
