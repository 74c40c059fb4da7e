//! I/O log that a job replays instead of generating I/Os (fio's `read_iolog`).
//!
//! If the log has times, the job is an open loop: each I/O arrives at its time in the log and is
//! issued then, or as soon as the queue has room. If the log has no times, I/Os are issued as fast
//! as the queue permits. After its last I/O, a log starts over.

use writecliff_base::StreamId;
use writecliff_host_interface::{Content, Operation};
use writecliff_synthesis::IoLog;

use crate::check::{Check, Limits, reject, whole_sectors};
use crate::generator::IoRequest;

/// Length limit of a command. Python splits TRIMs that are longer.
const LENGTH_MAX: u64 = u32::MAX as u64;
const KEY: &str = "log";

fn operation_of(letter: u8) -> Option<Operation> {
    match letter {
        b'r' => Some(Operation::Read),
        b'w' => Some(Operation::Write),
        b't' => Some(Operation::Trim),
        b'f' => Some(Operation::Flush),
        _ => None,
    }
}

/// Returns the arrivals of all I/Os except flushes, which belong to the I/O before them.
pub(crate) fn arrivals_ns(log: &IoLog) -> Vec<u64> {
    let letters = log.operations.bytes();
    letters.zip(&log.times_ns).filter(|(l, _)| *l != b'f').map(|(_, time)| *time).collect()
}

pub(crate) fn check(log: &IoLog) -> Check {
    let rows = log.operations.len();
    let times = log.times_ns.is_empty() || log.times_ns.len() == rows;
    reject! {
        KEY if log.operations.bytes().all(|letter| letter == b'f') => "it has no I/Os";
        KEY if log.operations.bytes().any(|letter| operation_of(letter).is_none()) =>
            "an operation is none of r, w, t and f";
        KEY if log.offsets.len() != rows || log.lengths.len() != rows || !times =>
            "its columns differ in length";
        KEY if !log.times_ns.is_sorted() => "its times are not ascending";
    }
    let columns = log.operations.bytes().zip(&log.offsets).zip(&log.lengths);
    for (row, ((letter, &offset), &length)) in (1..).zip(columns) {
        whole_sectors(KEY, offset)?;
        whole_sectors(KEY, length)?;
        reject! {
            KEY if length > LENGTH_MAX =>
                "I/O {row} has {length} bytes; a command has less than 4 GiB";
            KEY if letter != b'f' && length == 0 => "an I/O at offset {offset} has no bytes";
        }
    }
    Ok(())
}

/// Checks that a drive has all addresses of the log.
pub(crate) fn fits(log: &IoLog, limits: &Limits) -> Check {
    let ends = log.offsets.iter().zip(&log.lengths);
    let end = ends.map(|(offset, length)| offset.saturating_add(*length)).max().unwrap_or(0);
    let capacity = limits.capacity;
    reject! {
        KEY if end > capacity.0 => "an I/O ends at byte {end}; the drive has {capacity}";
    }
    Ok(())
}

/// Endless replay of a log.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    log: IoLog,
    next: usize,
}

impl Replay {
    pub(crate) fn new(log: IoLog) -> Self {
        let rows = log.operations.len();
        assert!(rows > 0 && log.offsets.len() == rows && log.lengths.len() == rows);
        Self { log, next: 0 }
    }

    pub(crate) fn next(&mut self, content: Content, stream: StreamId) -> IoRequest {
        let row = self.next;
        self.next = (row + 1) % self.log.offsets.len();
        let op = operation_of(self.log.operations.as_bytes()[row]).expect("the log was checked");
        debug_assert!(self.log.lengths[row] <= LENGTH_MAX, "the length of a command has 32 bits");
        let (offset, length) = (self.log.offsets[row], self.log.lengths[row] as u32);
        IoRequest { op, offset, length, content, stream }
    }
}
