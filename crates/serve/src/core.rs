//! The drive and its outstanding requests, protected by one lock.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use writecliff_base::{Bytes, Nanos, SECTOR_BYTES};
use writecliff_host_interface::{Completion, Operation, Status};
use writecliff_runner::{AnyDrive, MovedByStream};

use crate::clock::Clock;
use crate::journal::{Journal, Record};
use crate::request::{Done, Failure, Refusal, Replies, Request, Tag};
use crate::served::Timing;
use crate::served::power::{Durable, Planned};
use crate::statistics::{Life, Operations, StreamWrites};
use crate::trace::Trace;

mod durability;

use durability::Durability;

/// Maximum number of commands in the drive, which supports at most 65,536; others wait outside.
const COMMANDS_MAX: usize = 16_384;
/// Interval for simulating the background work of an idle drive.
const IDLE_TICK: Nanos = Nanos(100_000_000);

/// Destination of a session's replies.
#[derive(Clone)]
pub(crate) struct Client {
    pub number: u32,
    pub replies: Arc<dyn Replies>,
}

struct Outstanding {
    request: Request,
    client: Client,
    submitted: Nanos,
    failure: Option<Failure>,
    /// Number of the next change when the request, or its flush, was submitted.
    change: u64,
    /// Number of bytes that have been submitted to the drive.
    given: u64,
    commands: u32,
    is_flushing: bool,
}

pub(crate) struct Core {
    pub drive: AnyDrive,
    pub clock: Clock,
    pub timing: Timing,
    pub operations: Operations,
    /// Statistics since the last call to `recent()`.
    pub recent: Operations,
    pub by_stream: StreamWrites,
    /// Bytes moved by stream before the start of serving.
    moved_before: Option<MovedByStream>,
    /// Request trace; `None` if no trace is recorded.
    pub trace: Option<Trace>,
    pub stopped: bool,
    pub life: Life,
    /// Time when requests became outstanding.
    busy_since: Nanos,
    /// Journal of a drive that has a state file.
    pub journal: Option<Journal>,
    /// Drive time up to which the drive has been simulated.
    at: Nanos,
    requests: Vec<Option<Outstanding>>,
    free: Vec<u32>,
    in_drive: usize,
    /// Requests that have not been fully submitted to the drive.
    waiting: VecDeque<u32>,
    /// Completed requests whose clients have not yet been notified.
    pub done: Vec<(Client, Done)>,
    /// Ranges that became durable since the last contents update.
    durable: Vec<Durable>,
    durability: Durability,
    pub planned: Planned,
    /// Number of submitted writes.
    pub writes: u64,
    /// Number of the next change of the contents.
    changes: Arc<AtomicU64>,
    capacity: u64,
    has_fast_forwarded: bool,
}

impl Core {
    /// Creates the core. `undo_limit` limits the content changes that are stored for undo.
    pub(crate) fn new(
        mut drive: AnyDrive,
        timing: Timing,
        changes: Arc<AtomicU64>,
        undo_limit: Bytes,
    ) -> Self {
        let durability = Durability::of(&mut drive, timing, undo_limit);
        // A restored drive has no record of data that were being written to flash.
        let quiesces = timing == Timing::Fast || drive.volatile().is_some();
        if quiesces {
            drive.quiesce();
        }
        let (at, capacity) = (drive.now(), drive.capacity().0);
        let slow_down = match timing {
            Timing::Real { slow_down } => slow_down,
            Timing::Fast => 1.0,
        };
        Self {
            clock: Clock::new(at, slow_down),
            timing,
            operations: Operations::default(),
            recent: Operations::default(),
            by_stream: StreamWrites::default(),
            moved_before: drive.moved_by_stream(),
            trace: None,
            stopped: false,
            life: Life::default(),
            busy_since: at,
            journal: None,
            at,
            requests: Vec::new(),
            free: Vec::new(),
            in_drive: 0,
            waiting: VecDeque::new(),
            done: Vec::new(),
            durable: Vec::new(),
            durability,
            planned: Planned::default(),
            writes: 0,
            changes,
            capacity,
            has_fast_forwarded: false,
            drive,
        }
    }

    pub(crate) fn outstanding(&self) -> usize {
        self.requests.len() - self.free.len()
    }

    /// Returns the reason why the drive cannot accept `request`; `None` if it can.
    pub(crate) fn refusal(&self, request: &Request) -> Option<Refusal> {
        let Request { offset, length, .. } = *request;
        if self.stopped {
            return Some(Refusal::Stopped);
        }
        if !(offset | length).is_multiple_of(SECTOR_BYTES) {
            return Some(Refusal::Unaligned);
        }
        if offset.checked_add(length).is_none_or(|end| end > self.capacity) {
            return Some(Refusal::OutOfRange);
        }
        if request.stream.0 >= self.drive.streams() {
            return Some(Refusal::NoStream);
        }
        let is_trim = request.operation == Operation::Trim;
        (is_trim && self.drive.refuses_trim().is_some()).then_some(Refusal::NoTrim)
    }

    /// Simulates the drive until `to`; does nothing if `to` is in the past.
    pub(crate) fn advance(&mut self, to: Nanos) {
        if self.timing == Timing::Fast || to < self.at {
            return;
        }
        self.at = to;
        while self.in_drive > 0 {
            let Some(completion) = self.drive.step(to) else { return };
            self.command_done(completion);
        }
        debug_assert_eq!(self.outstanding(), 0, "a request has no command in an idle drive");
        self.drive.idle_until(to);
    }

    /// Lets the drive complete all outstanding commands, regardless of their completion times.
    pub(crate) fn drain(&mut self) {
        while self.in_drive > 0 {
            let completion = self.drive.step(Nanos::MAX).expect("commands complete");
            self.at = self.at.max(completion.at);
            self.command_done(completion);
        }
        assert_eq!(self.outstanding(), 0, "a request has no command in a drained drive");
        self.settle();
    }

    /// Ends fast-forwarding, so that the drive can do other work.
    pub(crate) fn settle(&mut self) {
        if std::mem::take(&mut self.has_fast_forwarded) {
            self.drive.end_fast_forward();
        }
    }

    /// Updates the time after other code may have advanced the drive.
    pub(crate) fn catch_up(&mut self) {
        self.at = self.at.max(self.drive.now());
    }

    /// Returns the wall time when [`Self::advance`] next has work.
    pub(crate) fn next_due(&mut self) -> Option<Nanos> {
        let cut = self.planned.next_time.map(|at| self.clock.wall_time(at));
        cut.into_iter().chain(self.next_event()).min()
    }

    fn next_event(&mut self) -> Option<Nanos> {
        let event = self.drive.next_event()?;
        match (self.timing, self.in_drive) {
            (Timing::Fast, _) => None,
            (_, 0) => Some(self.clock.wall_time(event).max(self.clock.wall() + IDLE_TICK)),
            _ => Some(self.clock.wall_time(event)),
        }
    }

    /// Returns the time from which the drive accepts commands; 0 if timing is disabled.
    pub(crate) fn ready(&self) -> Nanos {
        if self.timing == Timing::Fast { Nanos::ZERO } else { self.at }
    }

    /// Accepts a request that has not been rejected, with a `failure` that it already has.
    pub(crate) fn submit(
        &mut self,
        client: &Client,
        request: Request,
        arrived: Nanos,
        failure: Option<Failure>,
    ) {
        debug_assert_eq!(self.refusal(&request), None, "the session has checked it");
        self.keep(client.number, &request, arrived);
        // The drive itself counts rejected writes, but a rejected trim does not reach the drive.
        let is_refused_trim =
            failure == Some(Failure::WriteProtected) && request.operation == Operation::Trim;
        if !is_refused_trim && let Some(record) = Record::of(&request) {
            self.note(record);
        }
        if self.timing == Timing::Fast {
            let change = self.next_change();
            let mut failure = failure;
            if !is_refused_trim {
                failure = failure.or(self.fast_forward(&request, change));
                self.note_durable(&request, change);
            }
            let done = Done { request, due: arrived, failure };
            self.count(&request, None);
            self.done.push((client.clone(), done));
            return;
        }
        let outstanding = Outstanding {
            request,
            client: client.clone(),
            submitted: self.at,
            failure,
            change: self.next_change(),
            given: 0,
            commands: 0,
            is_flushing: false,
        };
        if self.outstanding() == 0 {
            self.busy_since = self.at;
        }
        let number = self.insert(outstanding);
        if is_refused_trim || (request.length == 0 && request.operation != Operation::Flush) {
            self.finish(number, self.at);
            return;
        }
        self.waiting.push_back(number);
        self.give(self.at);
    }

    /// Counts a completed request. A write is counted for the stream that it currently maps to.
    fn count(&mut self, request: &Request, latency: Option<Nanos>) {
        if request.operation == Operation::Write {
            let streams = (request.stream, self.drive.routed(request.stream));
            let (requests, bytes) = self.by_stream.entry(streams).or_default();
            *requests += 1;
            *bytes += request.length;
        }
        self.operations.count(request, latency);
        self.recent.count(request, latency);
        self.life.count(request);
    }

    /// Returns the bytes moved by stream since the start of serving.
    pub(crate) fn moved_by_stream(&self) -> Option<MovedByStream> {
        let now = self.drive.moved_by_stream()?;
        Some(now.since(self.moved_before.as_ref()?))
    }

    /// Adds a request to the trace, if a trace is recorded.
    pub(crate) fn keep(&mut self, session: u32, request: &Request, arrived: Nanos) {
        if let Some(trace) = &mut self.trace {
            let time = if self.timing == Timing::Fast { arrived } else { self.at };
            trace.record(time, session, request);
        }
    }

    fn insert(&mut self, outstanding: Outstanding) -> u32 {
        if let Some(number) = self.free.pop() {
            debug_assert!(self.requests[number as usize].is_none(), "request {number} is in use");
            self.requests[number as usize] = Some(outstanding);
            return number;
        }
        self.requests.push(Some(outstanding));
        self.requests.len() as u32 - 1
    }

    fn fast_forward(&mut self, request: &Request, change: u64) -> Option<Failure> {
        let mut failure = None;
        for command in request.commands() {
            if request.operation == Operation::Read {
                failure = failure.or(failure_of(self.drive.fast_forward_read(&command)));
                continue;
            }
            if request.operation == Operation::Write && self.drive.is_read_only() {
                failure = Some(Failure::WriteProtected); // The drive counts this failure.
            }
            self.has_fast_forwarded = true;
            let Durability::Untimed(untimed) = &mut self.durability else {
                self.drive.fast_forward(&command);
                continue;
            };
            let ssd = self.drive.volatile().expect("it is one that loses changes");
            if untimed.fast_forward(ssd, &command, change) {
                self.durable.push(Durable::All { below: change });
            }
        }
        failure
    }

    fn give(&mut self, at: Nanos) {
        while self.in_drive < COMMANDS_MAX
            && let Some(&number) = self.waiting.front()
        {
            let outstanding = self.requests[number as usize].as_mut().expect("it is outstanding");
            let Outstanding { request, given, .. } = outstanding;
            debug_assert!(*given < request.length || request.operation == Operation::Flush);
            let command = request.command(*given, outstanding.client.number, number);
            *given += u64::from(command.length);
            outstanding.commands += 1;
            let is_all = *given == request.length || outstanding.is_flushing;
            if is_all {
                self.waiting.pop_front();
            }
            self.in_drive += 1;
            if let Durability::ByDrive = self.durability
                && let Some(ssd) = self.drive.volatile()
            {
                ssd.recorder_mut().numbered(number, outstanding.change);
            }
            self.drive.submit(at, command);
        }
    }

    fn command_done(&mut self, completion: Completion) {
        debug_assert!(self.in_drive > 0, "a command completes once");
        self.in_drive -= 1;
        let number = completion.tag;
        let outstanding =
            self.requests[number as usize].as_mut().expect("its command was outstanding");
        outstanding.failure = outstanding.failure.or(failure_of(completion.status));
        outstanding.commands -= 1;
        let is_given = outstanding.given == outstanding.request.length || outstanding.is_flushing;
        if outstanding.commands == 0 && is_given {
            let wants_flush = outstanding.request.durable
                && outstanding.request.operation != Operation::Flush
                && !outstanding.is_flushing;
            if wants_flush && self.drive.is_volatile() {
                self.flush(number, completion.at);
            } else {
                self.finish(number, completion.at);
            }
        }
        self.give(completion.at);
    }

    fn flush(&mut self, number: u32, at: Nanos) {
        let change = self.next_change();
        let outstanding = self.requests[number as usize].as_mut().expect("it is outstanding");
        outstanding.is_flushing = true;
        outstanding.change = change;
        outstanding.commands += 1;
        let flush = Request::new(Tag::NONE, Operation::Flush, 0, 0);
        let flush = Request { stream: outstanding.request.stream, ..flush };
        self.in_drive += 1;
        self.drive.submit(at, flush.command(0, outstanding.client.number, number));
    }

    fn next_change(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    fn finish(&mut self, number: u32, at: Nanos) {
        let outstanding = self.requests[number as usize].take().expect("it is outstanding");
        debug_assert_eq!(outstanding.commands, 0, "commands of the request are in the drive");
        self.free.push(number);
        let Outstanding { request, client, submitted, failure, change, given, .. } = outstanding;
        debug_assert!(given == request.length || failure.is_some(), "bytes were not given");
        self.note_durable(&request, change);
        self.count(&request, Some(at.saturating_sub(submitted)));
        if self.outstanding() == 0 {
            self.life.busy += at.saturating_sub(self.busy_since);
        }
        let due = self.clock.wall_time(at);
        self.done.push((client, Done { request, due, failure }));
    }
}

/// Returns the failure that a command with this status reports to the client.
fn failure_of(status: Status) -> Option<Failure> {
    match status {
        Status::Success => None,
        Status::UnrecoveredRead => Some(Failure::UnrecoveredRead),
        Status::WriteProtected => Some(Failure::WriteProtected),
    }
}
