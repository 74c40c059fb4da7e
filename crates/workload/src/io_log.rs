//! I/O log that a job replays instead of generating I/Os (fio's `read_iolog`).
//!
//! If the log has times, the job is an open loop: each I/O arrives at its time in the log and is
//! issued then, or as soon as the queue has room. If the log has no times, I/Os are issued as fast
//! as the queue permits. After its last I/O, a log starts over.

use serde::{Deserialize, Serialize};
use writecliff_base::StreamId;
use writecliff_host_interface::{Content, Operation};
use writecliff_synthesis::Pass;

use crate::check::{Check, Limits, reject, whole_sectors};
use crate::generator::IoRequest;

/// Columns of equal length, one row per I/O.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IoLog {
    /// One letter per I/O: `r` read, `w` write, `t` trim, `f` flush.
    pub operations: String,
    /// Offsets of the first byte, relative to the start of the device; 0 for flushes.
    pub offsets: Vec<u64>,
    /// Lengths in bytes, at most [`LENGTH_MAX`]; 0 for flushes.
    pub lengths: Vec<u64>,
    /// Arrival times since the start of the job, ascending; empty to issue I/Os as fast as
    /// possible.
    pub times_ns: Vec<u64>,
}

impl From<Pass> for IoLog {
    fn from(pass: Pass) -> Self {
        let Pass { operations, offsets, lengths, times_ns } = pass;
        assert!(times_ns.is_sorted(), "arrivals of a pass go back");
        assert_eq!(times_ns.len(), offsets.len(), "each I/O of a pass has an arrival");
        Self { operations, offsets, lengths, times_ns }
    }
}

/// Maximum command length. Python splits longer TRIMs.
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

impl IoLog {
    /// Returns `true` if the log contains trims.
    pub fn trims(&self) -> bool {
        self.operations.contains('t')
    }

    /// Returns the arrivals of all I/Os except flushes, which belong to the preceding I/O.
    pub(crate) fn arrivals_ns(&self) -> Vec<u64> {
        let letters = self.operations.bytes();
        letters.zip(&self.times_ns).filter(|(l, _)| *l != b'f').map(|(_, time)| *time).collect()
    }

    pub(crate) fn check(&self) -> Check {
        let rows = self.operations.len();
        let times = self.times_ns.is_empty() || self.times_ns.len() == rows;
        reject! {
            KEY if self.operations.bytes().all(|letter| letter == b'f') => "it has no I/Os";
            KEY if self.operations.bytes().any(|letter| operation_of(letter).is_none()) =>
                "an operation is none of r, w, t and f";
            KEY if self.offsets.len() != rows || self.lengths.len() != rows || !times =>
                "its columns differ in length";
            KEY if !self.times_ns.is_sorted() => "its times are not ascending";
        }
        let columns = self.operations.bytes().zip(&self.offsets).zip(&self.lengths);
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

    /// Checks that a drive has all addresses in the log.
    pub(crate) fn fits(&self, limits: &Limits) -> Check {
        let ends = self.offsets.iter().zip(&self.lengths);
        let end = ends.map(|(offset, length)| offset.saturating_add(*length)).max().unwrap_or(0);
        let capacity = limits.capacity;
        reject! {
            KEY if end > capacity.0 => "an I/O ends at byte {end}; the drive has {capacity}";
        }
        Ok(())
    }
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
