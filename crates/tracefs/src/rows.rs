//! Requests in creation order, and an index of the outstanding requests.

use std::collections::{BTreeMap, VecDeque};

use crate::block_event::{Flags, Operation};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Created but not yet issued to the driver.
    Queued,
    Issued,
    Done,
    /// Merged into another request.
    Merged,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestRow {
    pub(crate) state: State,
    pub(crate) operation: Operation,
    pub(crate) flags: Flags,
    pub(crate) sector: u64,
    pub(crate) sectors: u32,
    pub(crate) time_ns: u64,
    pub(crate) issue_ns: u64,
    pub(crate) complete_ns: u64,
    pub(crate) thread_id: i32,
    pub(crate) name: u32,
    pub(crate) errno: u16,
    /// Number of sectors that have not completed.
    pub(crate) left: u32,
    /// Next row with the same key.
    next: Option<u64>,
}

impl RequestRow {
    pub(crate) fn new(operation: Operation, sector: u64, sectors: u32, time_ns: u64) -> Self {
        Self {
            state: State::Queued,
            operation,
            flags: Flags::default(),
            sector,
            sectors,
            time_ns,
            issue_ns: 0,
            complete_ns: 0,
            thread_id: 0,
            name: 0,
            errno: 0,
            left: sectors,
            next: None,
        }
    }
}

/// Rows by number, oldest first; numbers are not reused.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    rows: VecDeque<RequestRow>,
    first: u64,
}

impl Rows {
    pub(crate) fn push(&mut self, row: RequestRow) -> u64 {
        debug_assert_eq!(row.next, None, "a new row is in no index");
        self.rows.push_back(row);
        self.first + self.rows.len() as u64 - 1
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn get(&mut self, number: u64) -> Option<&mut RequestRow> {
        let at = number.checked_sub(self.first)?;
        self.rows.get_mut(at as usize)
    }

    pub(crate) fn front(&self) -> Option<(u64, &RequestRow)> {
        self.rows.front().map(|row| (self.first, row))
    }

    pub(crate) fn pop(&mut self) -> Option<RequestRow> {
        let row = self.rows.pop_front()?;
        self.first += 1;
        Some(row)
    }
}

/// Rows by operation and first sector; rows with equal keys are ordered by age.
#[derive(Debug, Default)]
pub(crate) struct Index {
    oldest: BTreeMap<(u64, Operation), u64>,
}

impl Index {
    pub(crate) fn add(&mut self, rows: &mut Rows, key: (u64, Operation), number: u64) {
        if let Some(row) = rows.get(number) {
            row.next = None;
        }
        let mut last = *self.oldest.entry(key).or_insert(number);
        while last != number {
            let Some(row) = rows.get(last) else { break };
            let Some(next) = row.next else {
                row.next = Some(number);
                return;
            };
            last = next;
        }
    }

    /// Removes and returns the oldest row with this key.
    pub(crate) fn take(&mut self, rows: &mut Rows, key: (u64, Operation)) -> Option<u64> {
        let number = self.oldest.remove(&key)?;
        if let Some(next) = rows.get(number).and_then(|row| row.next.take()) {
            debug_assert_ne!(next, number, "a row follows itself");
            self.oldest.insert(key, next);
        }
        Some(number)
    }
}
