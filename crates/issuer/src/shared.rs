//! State shared between an issue and its observers.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use crate::io::Io;

/// A completed I/O, with times relative to the start of the issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The I/O.
    pub io: Io,
    /// Issue time.
    pub issue_ns: u64,
    /// Completion time.
    pub complete_ns: u64,
    /// Bytes transferred, or a negative error number.
    pub result: i32,
}

/// Progress of a running issue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IssueProgress {
    /// Time since the start of the issue.
    pub elapsed_ns: u64,
    /// I/Os completed since the start of the issue.
    pub ios: u64,
    /// Bytes transferred by these I/Os.
    pub bytes: u64,
    /// Due time of the last issued I/O.
    pub due_ns: u64,
    /// Number of I/Os issued but not yet completed.
    pub in_flight: u64,
}

/// Observable state of an issue, and requests from its observers.
#[derive(Debug, Default)]
pub struct Shared {
    stop: AtomicBool,
    abandon: AtomicBool,
    /// `true` if completed I/Os are stored until the call to [`Self::take`].
    pub(crate) records: bool,
    done: Mutex<Vec<Done>>,
    live: Mutex<IssueProgress>,
}

impl Shared {
    /// Creates the state; if `records`, stores each completed I/O until the call to [`Self::take`].
    pub fn new(records: bool) -> Self {
        Self { records, ..Self::default() }
    }

    /// Stops issuing and waits for the I/Os in flight.
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    /// Stops without waiting for the I/Os in flight because the drive does not respond.
    pub fn abandon(&self) {
        self.stop();
        self.abandon.store(true, Relaxed);
    }

    /// Returns the I/Os completed since the last call.
    pub fn take(&self) -> Vec<Done> {
        std::mem::take(&mut self.done.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the current totals.
    pub fn live(&self) -> IssueProgress {
        *self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn show(&self, live: IssueProgress) {
        *self.live.lock().unwrap_or_else(PoisonError::into_inner) = live;
    }

    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandon.load(Relaxed)
    }

    /// Hands over records; retains them if other records are being taken, unless `waits`.
    pub(crate) fn give(&self, records: &mut Vec<Done>, waits: bool) {
        if waits {
            self.done.lock().unwrap_or_else(PoisonError::into_inner).append(records);
        } else if let Ok(mut done) = self.done.try_lock() {
            done.append(records);
        }
    }
}
