//! Combines the events of a request into one row.
//!
//! Events do not identify their request. A request is identified by its operation and first sector.
//! If both are equal for two requests, the older request completes first. A flush has no sector;
//! flushes complete in the order of their issue.

use std::collections::{BTreeMap, VecDeque};

use crate::block_event::{BlockEvent, EventKind, Flags, Operation};

/// Time after which an incomplete request is reported without its completion. The completion event
/// of such a request must have been lost, and all later requests wait for it in the rows.
const OPEN_MAX_NS: u64 = 60_000_000_000;
/// Limit on the stored rows, beyond which the oldest open request is reported as incomplete.
const ROWS_MAX: usize = 1 << 22;

/// A request with its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Event that created the request, with the error number of the request's completion. The
    /// sectors are those of the whole request.
    pub event: BlockEvent,
    /// Time when the driver received the request.
    pub issue_ns: u64,
    /// Completion time; 0 for a request that was still open at the end.
    pub complete_ns: u64,
}

/// Numbers of events that cannot be represented as requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Anomalies {
    /// Completions of requests that were issued before the capture, or whose issue was lost.
    pub unknown_completions: u64,
    /// Requests that were created but not issued, either at the end or because events were lost.
    pub unissued: u64,
    /// Requests that were issued but not completed.
    pub open: u64,
    /// Requests that the driver returned to the queue.
    pub requeued: u64,
    /// Requests that were merged into other requests.
    pub merged: u64,
    /// Commands other than reads, writes, discards and flushes.
    pub other: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Created but not yet issued to the driver.
    Queued,
    Issued,
    Done,
    /// Merged into another request.
    Merged,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    request: Request,
    state: State,
    /// Number of sectors that are not complete yet.
    left: u32,
}

impl Row {
    fn of(event: &BlockEvent) -> Self {
        let event = BlockEvent { errno: 0, ..*event };
        let request = Request { event, issue_ns: 0, complete_ns: 0 };
        Self { request, state: State::Queued, left: event.sectors }
    }

    fn issued(&mut self, time_ns: u64) {
        (self.state, self.request.issue_ns) = (State::Issued, time_ns);
    }
}

/// Rows by number, oldest first; numbers are not reused.
#[derive(Debug, Default)]
struct Rows {
    rows: VecDeque<Row>,
    first: u64,
}

impl Rows {
    fn push(&mut self, row: Row) -> u64 {
        self.rows.push_back(row);
        self.first + self.rows.len() as u64 - 1
    }

    fn get(&mut self, number: u64) -> Option<&mut Row> {
        let at = number.checked_sub(self.first)?;
        self.rows.get_mut(at as usize)
    }
}

/// First sector and operation of a request.
type Key = (u64, Operation);

/// Numbers of rows by key; rows with equal keys are in insertion order.
#[derive(Debug, Default)]
struct Index {
    numbers: BTreeMap<(Key, u64), u64>,
    added: u64,
}

impl Index {
    fn add(&mut self, key: Key, number: u64) {
        self.numbers.insert((key, self.added), number);
        self.added += 1;
    }

    /// Removes and returns the oldest row with this key.
    fn take(&mut self, key: Key) -> Option<u64> {
        let (&oldest, _) = self.numbers.range((key, 0)..=(key, u64::MAX)).next()?;
        self.numbers.remove(&oldest)
    }
}

/// Requests of one device or partition.
#[derive(Debug)]
pub struct Requests {
    /// First sector and end sector of the captured range on the device.
    sectors: (u64, u64),
    rows: Rows,
    queued: Index,
    issued: Index,
    flushes: VecDeque<u64>,
    /// Thread that requested a flush, and its name; the kernel issues the flush in another thread.
    asker: Option<(i32, u32)>,
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

    /// Adds an event. Events must be added in time order.
    pub fn add(&mut self, event: &BlockEvent) {
        self.now_ns = self.now_ns.max(event.time_ns);
        let mut event = *event;
        if event.sectors == 0 && event.flags.has(Flags::PREFLUSH) {
            if event.kind == EventKind::Get {
                // The flush itself is a separate request that has no bio.
                self.asker = Some((event.thread_id, event.name));
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

    /// Returns the finished requests in creation order.
    pub fn take(&mut self) -> impl Iterator<Item = Request> + '_ {
        self.ready.drain(..)
    }

    /// Ends the capture and reports the open requests.
    pub fn finish(&mut self) {
        while !self.rows.rows.is_empty() {
            self.pop();
        }
    }

    fn flush(&mut self, event: &BlockEvent) {
        match event.kind {
            EventKind::Issue | EventKind::BioQueue => {
                let (flags, sector, sectors) = (Flags::default(), 0, 0);
                let mut row = Row::of(&BlockEvent { flags, sector, sectors, ..*event });
                if let (EventKind::Issue, Some(asker)) = (event.kind, self.asker) {
                    (row.request.event.thread_id, row.request.event.name) = asker;
                }
                row.issued(event.time_ns);
                let number = self.rows.push(row);
                self.flushes.push_back(number);
            }
            EventKind::Complete | EventKind::BioComplete => {
                let number = self.flushes.pop_front();
                self.complete(number, event, 0);
            }
            EventKind::Requeue => {
                if let Some(row) = self.flushes.pop_back().and_then(|last| self.rows.get(last)) {
                    row.state = State::Merged; // The request is issued again as another row.
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
                if event.flags.has(Flags::PREFLUSH) || event.flags.has(Flags::FUA) {
                    self.asker = Some((event.thread_id, event.name));
                }
                self.queued.add(key, self.rows.push(Row::of(event)));
            }
            EventKind::Issue => self.issue(event),
            EventKind::BioQueue => {
                let mut row = Row::of(event);
                row.issued(event.time_ns);
                self.issued.add(key, self.rows.push(row));
            }
            // This event ends a write with flushes whose data were completed earlier.
            EventKind::Complete if event.sectors == 0 => {}
            EventKind::Complete | EventKind::BioComplete => {
                let number = self.issued.take(key);
                self.complete(number, event, event.sectors);
            }
            EventKind::Requeue => {
                if let Some(number) = self.issued.take(key) {
                    self.anomalies.requeued += 1;
                    self.queued.add(key, number);
                    if let Some(row) = self.rows.get(number) {
                        row.state = State::Queued;
                    }
                }
            }
            EventKind::FrontMerge => {
                let behind = event.sector.saturating_add(u64::from(event.sectors));
                if let Some(number) = self.queued.take((behind, event.operation)) {
                    if let Some(row) = self.rows.get(number) {
                        row.request.event.sector = event.sector;
                    }
                    self.queued.add(key, number);
                }
            }
            EventKind::Merge => {
                let number = self.queued.take(key);
                if let Some(row) = number.and_then(|number| self.rows.get(number)) {
                    row.state = State::Merged;
                    self.anomalies.merged += 1;
                }
            }
        }
    }

    fn issue(&mut self, event: &BlockEvent) {
        let key = (event.sector, event.operation);
        let number = match self.queued.take(key) {
            Some(number) => number,
            // The request was created before the capture, or has no bio.
            None => self.rows.push(Row::of(event)),
        };
        if let Some(row) = self.rows.get(number) {
            row.issued(event.time_ns);
            (row.request.event.sectors, row.left) = (event.sectors, event.sectors);
            row.request.event.flags.0 |= event.flags.0;
        }
        self.issued.add(key, number);
    }

    /// Completes `sectors` sectors of a request; 0 for all sectors.
    fn complete(&mut self, number: Option<u64>, event: &BlockEvent, sectors: u32) {
        let Some(row) = number.and_then(|number| self.rows.get(number)) else {
            self.anomalies.unknown_completions += 1;
            return;
        };
        let created = &mut row.request.event;
        created.errno = created.errno.max(event.errno);
        row.left = row.left.saturating_sub(sectors);
        if sectors > 0 && row.left > 0 {
            let rest = event.sector.saturating_add(u64::from(sectors));
            self.issued.add((rest, row.request.event.operation), number.unwrap_or_default());
            return;
        }
        (row.state, row.request.complete_ns) = (State::Done, event.time_ns);
    }

    /// Reports the oldest rows that are complete or timed out.
    fn settle(&mut self) {
        while let Some(row) = self.rows.rows.front() {
            let late = self.now_ns.saturating_sub(row.request.event.time_ns) > OPEN_MAX_NS;
            let ended = matches!(row.state, State::Done | State::Merged);
            if !ended && !late && self.rows.rows.len() <= ROWS_MAX {
                return;
            }
            self.pop();
        }
    }

    /// Reports the oldest row, whether complete or incomplete.
    fn pop(&mut self) {
        let Some(Row { request, state, left }) = self.rows.rows.pop_front() else { return };
        let number = self.rows.first;
        self.rows.first += 1;
        // An incomplete row must be the oldest with its key.
        let BlockEvent { operation, sector, sectors, .. } = request.event;
        match state {
            State::Queued | State::Issued if operation == Operation::Flush => {
                self.flushes.retain(|&flush| flush != number);
            }
            State::Queued => {
                self.queued.take((sector, operation));
            }
            State::Issued => {
                let done = u64::from(sectors - left.min(sectors));
                self.issued.take((sector + done, operation));
            }
            State::Done | State::Merged => {}
        }
        self.anomalies.unissued += u64::from(state == State::Queued);
        self.anomalies.open += u64::from(state == State::Issued);
        if matches!(state, State::Issued | State::Done) {
            self.ready.push_back(request);
        }
    }
}
