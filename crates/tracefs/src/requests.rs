//! Combines the events of a request to one row.
//!
//! Events do not name their request. A request is identified by its operation and first sector; of
//! two requests with equal ones, the older completes first. A flush has no sector; flushes complete
//! in the order in which they were issued.

use std::collections::VecDeque;

use crate::block_event::{BlockEvent, EventKind, Flags, Operation};
use crate::rows::{Index, RequestRow, Rows, State};

/// Time after which an incomplete request is reported as it is: its completion event must have been
/// lost, and all later requests wait for it in the rows.
const OPEN_MAX_NS: u64 = 60_000_000_000;
/// Limit on the requests in the rows; beyond it, the oldest incomplete request is reported as it
/// is.
const ROWS_MAX: usize = 1 << 22;

/// A request with its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Operation of the request.
    pub operation: Operation,
    /// Flags of the request.
    pub flags: Flags,
    /// First sector of 512 B on the device.
    pub sector: u64,
    /// Number of sectors.
    pub sectors: u32,
    /// Time at which the request was created.
    pub time_ns: u64,
    /// Time at which the driver got the request.
    pub issue_ns: u64,
    /// Time of completion; 0 for a request that was open at the end.
    pub complete_ns: u64,
    /// Identifier of the thread that created the request.
    pub thread_id: i32,
    /// Number of the thread's name in `Names`.
    pub name: u32,
    /// Error number of the completion; 0 for success.
    pub errno: u16,
}

/// Events that the trace cannot show as requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Anomalies {
    /// Completions of requests that were issued before the capture, or whose issue was lost.
    pub unknown_completions: u64,
    /// Requests that were created but not issued: at the end, or because events were lost.
    pub unissued: u64,
    /// Requests that were issued and not completed.
    pub open: u64,
    /// Requests that the driver returned to the queue.
    pub requeued: u64,
    /// Requests that became part of others.
    pub merged: u64,
    /// Commands other than reads, writes, discards and flushes.
    pub other: u64,
}

/// The thread that requested a flush, which the kernel issues in a different thread.
#[derive(Clone, Copy, Debug)]
struct Asker {
    thread_id: i32,
    name: u32,
}

/// The requests of one device, or of a part of it.
#[derive(Debug)]
pub struct Requests {
    /// Captured sectors of the device: the first and the end.
    sectors: (u64, u64),
    rows: Rows,
    queued: Index,
    issued: Index,
    flushes: VecDeque<u64>,
    asker: Option<Asker>,
    now_ns: u64,
    ready: VecDeque<Request>,
    /// Events that could not be matched.
    pub anomalies: Anomalies,
}

impl Requests {
    /// Captures the sectors from `first_sector` up to `end_sector`, and all flushes.
    pub fn new(first_sector: u64, end_sector: u64) -> Self {
        Self {
            sectors: (first_sector, end_sector),
            rows: Rows::default(),
            queued: Index::default(),
            issued: Index::default(),
            flushes: VecDeque::new(),
            asker: None,
            now_ns: 0,
            ready: VecDeque::new(),
            anomalies: Anomalies::default(),
        }
    }

    /// Adds an event. Events come in the order of their times.
    pub fn add(&mut self, event: &BlockEvent) {
        self.now_ns = self.now_ns.max(event.time_ns);
        let mut event = *event;
        if event.sectors == 0 && event.flags.has(Flags::PREFLUSH) {
            if event.kind == EventKind::Get {
                // The flush itself is a separate request without a bio.
                self.asker = Some(Asker { thread_id: event.thread_id, name: event.name });
                return;
            }
            event.operation = Operation::Flush;
        }
        match event.operation {
            Operation::Other => {
                self.anomalies.other += u64::from(event.kind == EventKind::Issue);
            }
            Operation::Flush => self.flush(&event),
            _ if (self.sectors.0..self.sectors.1).contains(&event.sector) => self.data(&event),
            _ => {}
        }
        self.settle();
    }

    /// Returns the finished requests in order of creation.
    pub fn take(&mut self) -> impl Iterator<Item = Request> + '_ {
        self.ready.drain(..)
    }

    /// Ends the capture: reports the open requests.
    pub fn finish(&mut self) {
        while self.rows.front().is_some() {
            self.pop();
        }
    }

    fn flush(&mut self, event: &BlockEvent) {
        match event.kind {
            EventKind::Issue | EventKind::BioQueue => {
                let mut row = RequestRow::new(Operation::Flush, 0, 0, event.time_ns);
                (row.thread_id, row.name) = (event.thread_id, event.name);
                if let (EventKind::Issue, Some(asker)) = (event.kind, self.asker) {
                    (row.thread_id, row.name) = (asker.thread_id, asker.name);
                }
                (row.state, row.issue_ns) = (State::Issued, event.time_ns);
                let number = self.rows.push(row);
                self.flushes.push_back(number);
            }
            EventKind::Complete | EventKind::BioComplete => {
                let number = self.flushes.pop_front();
                self.complete(number, event, 0);
            }
            EventKind::Requeue => {
                if let Some(row) = self.flushes.pop_back().and_then(|last| self.rows.get(last)) {
                    row.state = State::Merged; // it is issued again as another row
                    self.anomalies.requeued += 1;
                }
            }
            EventKind::Get | EventKind::FrontMerge | EventKind::Merge => {}
        }
    }

    fn data(&mut self, event: &BlockEvent) {
        let key = (event.sector, event.operation);
        match event.kind {
            EventKind::Get => {
                let row = of(event);
                if event.flags.has(Flags::PREFLUSH) || event.flags.has(Flags::FUA) {
                    self.asker = Some(Asker { thread_id: row.thread_id, name: row.name });
                }
                let number = self.rows.push(row);
                self.queued.add(&mut self.rows, key, number);
            }
            EventKind::Issue => self.issue(event),
            EventKind::BioQueue => {
                let mut row = of(event);
                (row.state, row.issue_ns) = (State::Issued, event.time_ns);
                let number = self.rows.push(row);
                self.issued.add(&mut self.rows, key, number);
            }
            // End of a write with flushes, whose data were completed earlier.
            EventKind::Complete if event.sectors == 0 => {}
            EventKind::Complete | EventKind::BioComplete => {
                let number = self.issued.take(&mut self.rows, key);
                self.complete(number, event, event.sectors);
            }
            EventKind::Requeue => {
                if let Some(number) = self.issued.take(&mut self.rows, key) {
                    self.anomalies.requeued += 1;
                    self.queued.add(&mut self.rows, key, number);
                    if let Some(row) = self.rows.get(number) {
                        row.state = State::Queued;
                    }
                }
            }
            EventKind::FrontMerge => {
                let behind = event.sector.saturating_add(u64::from(event.sectors));
                let number = self.queued.take(&mut self.rows, (behind, event.operation));
                if let Some(number) = number {
                    if let Some(row) = self.rows.get(number) {
                        row.sector = event.sector;
                    }
                    self.queued.add(&mut self.rows, key, number);
                }
            }
            EventKind::Merge => {
                let number = self.queued.take(&mut self.rows, key);
                if let Some(row) = number.and_then(|number| self.rows.get(number)) {
                    row.state = State::Merged;
                    self.anomalies.merged += 1;
                }
            }
        }
    }

    fn issue(&mut self, event: &BlockEvent) {
        let key = (event.sector, event.operation);
        let number = match self.queued.take(&mut self.rows, key) {
            Some(number) => number,
            None => self.rows.push(of(event)), // made before the capture, or by no bio
        };
        if let Some(row) = self.rows.get(number) {
            (row.state, row.issue_ns) = (State::Issued, event.time_ns);
            (row.sectors, row.left) = (event.sectors, event.sectors);
            row.flags.0 |= event.flags.0;
        }
        self.issued.add(&mut self.rows, key, number);
    }

    /// Completes `sectors` sectors of a request; 0 for all.
    fn complete(&mut self, number: Option<u64>, event: &BlockEvent, sectors: u32) {
        let Some(row) = number.and_then(|number| self.rows.get(number)) else {
            self.anomalies.unknown_completions += 1;
            return;
        };
        row.errno = row.errno.max(event.errno);
        row.left = row.left.saturating_sub(sectors);
        if sectors > 0 && row.left > 0 {
            let key = (event.sector.saturating_add(u64::from(sectors)), row.operation);
            self.issued.add(&mut self.rows, key, number.unwrap_or_default());
            return;
        }
        (row.state, row.complete_ns) = (State::Done, event.time_ns);
    }

    /// Reports the oldest rows that are complete or timed out.
    fn settle(&mut self) {
        while let Some((_, row)) = self.rows.front() {
            let late = self.now_ns.saturating_sub(row.time_ns) > OPEN_MAX_NS;
            let ended = matches!(row.state, State::Done | State::Merged);
            if !ended && !late && self.rows.len() <= ROWS_MAX {
                return;
            }
            self.pop();
        }
    }

    /// Reports the oldest row, complete or not.
    fn pop(&mut self) {
        let Some((number, &row)) = self.rows.front() else { return };
        if matches!(row.state, State::Queued | State::Issued) {
            self.forget(number, &row);
        }
        let popped = self.rows.pop();
        debug_assert!(popped.is_some_and(|popped| popped.state == row.state));
        match row.state {
            State::Merged => return,
            State::Queued => {
                self.anomalies.unissued += 1;
                return;
            }
            State::Issued => self.anomalies.open += 1,
            State::Done => {}
        }
        self.ready.push_back(Request {
            operation: row.operation,
            flags: row.flags,
            sector: row.sector,
            sectors: row.sectors,
            time_ns: row.time_ns,
            issue_ns: row.issue_ns,
            complete_ns: row.complete_ns,
            thread_id: row.thread_id,
            name: row.name,
            errno: row.errno,
        });
    }

    /// Removes an incomplete row, which must be the oldest with its key, from the indices.
    fn forget(&mut self, number: u64, row: &RequestRow) {
        if row.operation == Operation::Flush {
            self.flushes.retain(|&flush| flush != number);
            return;
        }
        let done = u64::from(row.sectors - row.left.min(row.sectors));
        let key = (row.sector + done, row.operation);
        match row.state {
            State::Queued => self.queued.take(&mut self.rows, (row.sector, row.operation)),
            _ => self.issued.take(&mut self.rows, key),
        };
    }
}

/// Returns a new row for this event.
fn of(event: &BlockEvent) -> RequestRow {
    let mut row = RequestRow::new(event.operation, event.sector, event.sectors, event.time_ns);
    (row.flags, row.thread_id, row.name) = (event.flags, event.thread_id, event.name);
    row
}
