//! Issuing thread: waits for the next due time, submits I/Os, and reaps completions meanwhile.
//!
//! The thread sleeps in the kernel while the next due time is far away, and completions wake it. It
//! spins for the last portion of a wait because sleeps end some microseconds late, or later on a
//! busy machine. While it spins, it polls the ring, so that completions get exact times.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use writecliff_workload::Operation;

use crate::arena::{Arena, Piece};
use crate::clock::{be_punctual, now_ns};
use crate::data::Data;
use crate::deallocator::{Deallocated, Deallocator};
use crate::feed::{Feed, Next};
use crate::io::{Io, IoFailure, Lane};
use crate::measured::{Collector, JobTime, Measured};
use crate::ring::{BATCH, Request, Ring};
use crate::shared::{Done, IssueProgress, Shared};

/// Time before the first I/O, reserved for one-time work of the thread.
const LEAD_NS: u64 = 1_000_000;
/// Last portion of a wait, during which the thread spins.
const SPIN_NS: u64 = 80_000;
/// Maximum sleep time, which limits the reaction time to a stop request.
const SLEEP_NS: u64 = 20_000_000;
/// Maximum sleep time during deallocations, whose threads do not wake this thread.
const SLEEP_BESIDE_NS: u64 = 500_000;
/// Maximum number of I/Os in flight over all lanes.
pub(crate) const IN_FLIGHT_MAX: u32 = 1 << 14;
/// Maximum number of waiting I/Os, beyond which no further I/O is taken from the feed.
const WAITING_MAX: usize = 1 << 18;
/// Number of records that are handed over together.
const RECORDS: usize = 1 << 10;

/// I/O target.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// File descriptor, opened for direct I/O.
    pub fd: BorrowedFd<'a>,
    /// `true` for a file, `false` for a block device.
    pub is_file: bool,
}

/// Lanes, jobs and target of an issue.
#[derive(Clone, Debug)]
pub struct Issue<'a> {
    /// Drive or file that receives the I/Os.
    pub target: Target<'a>,
    /// Lanes, by the number that I/Os refer to.
    pub lanes: Vec<Lane>,
    /// Jobs that the lanes belong to.
    pub jobs: Vec<JobTime>,
    /// Interval length of the measured time series.
    pub interval_ns: u64,
    /// Seed of the write data.
    pub seed: u64,
}

/// An I/O with the memory allocated for it.
struct Ready {
    io: Io,
    piece: Option<Piece>,
    issue_ns: u64,
}

struct LaneState {
    lane: Lane,
    outstanding: u32,
    waiting: VecDeque<Ready>,
}

struct Issuing<'a> {
    ring: Ring,
    arena: Arena,
    deallocator: Deallocator,
    deallocations: u32,
    data: Data,
    feed: Feed,
    shared: &'a Shared,
    lanes: Vec<LaneState>,
    next: Option<Ready>,
    ended: bool,
    /// I/Os in flight by slot.
    table: Vec<Option<Ready>>,
    free: Vec<u32>,
    in_flight: u32,
    waiting: usize,
    /// `true` if an I/O waits for memory or the limit of all lanes, not the limit of its own lane.
    is_short: bool,
    start_ns: u64,
    due_ns: u64,
    collector: Collector,
    records: Vec<Done>,
    completions: Vec<(u32, i32)>,
    deallocated: Vec<Deallocated>,
}

/// Issues the I/Os of `feed` until it ends, an I/O fails or a stop is requested, then drains them.
///
/// Returns an error if io_uring or memory cannot be set up; I/O errors are in the result.
pub fn issue(what: &Issue<'_>, feed: Feed, shared: &Shared) -> io::Result<Measured> {
    be_punctual();
    let arena = Arena::new()?;
    let depth: u64 = what.lanes.iter().map(|lane| u64::from(lane.depth)).sum();
    let depth = depth.clamp(1, u64::from(IN_FLIGHT_MAX)) as u32;
    let state = |&lane: &Lane| LaneState { lane, outstanding: 0, waiting: VecDeque::new() };
    let mut issuing = Issuing {
        ring: Ring::new(what.target.fd.as_raw_fd(), &arena, depth)?,
        arena,
        deallocator: Deallocator::new(what.target.fd, what.target.is_file)?,
        deallocations: 0,
        data: Data::new(what.seed, what.lanes.len()),
        feed,
        shared,
        lanes: what.lanes.iter().map(state).collect(),
        next: None,
        ended: false,
        table: (0..depth).map(|_| None).collect(),
        free: (0..depth).rev().collect(),
        in_flight: 0,
        waiting: 0,
        is_short: false,
        start_ns: 0,
        due_ns: 0,
        collector: Collector::new(&what.jobs, what.interval_ns),
        records: Vec::new(),
        completions: Vec::new(),
        deallocated: Vec::new(),
    };
    issuing.collector.measured.is_pinned = issuing.ring.is_pinned;
    let ended = issuing.run();
    let Issuing { ring, arena, in_flight, collector, .. } = issuing;
    drop(ring);
    if in_flight > 0 {
        arena.leak();
    }
    ended?;
    let stopped = shared.is_stopped() || collector.measured.failures > 0;
    Ok(collector.finish(stopped))
}

impl Issuing<'_> {
    fn run(&mut self) -> io::Result<()> {
        self.feed.wait();
        self.fetch();
        self.start_ns = now_ns() + LEAD_NS;
        self.collector.measured.started_ns = self.start_ns;
        while !self.shared.is_stopped() && self.collector.measured.failures == 0 {
            self.reap()?;
            self.fetch();
            let now = now_ns();
            match self.next.as_ref().map(|ready| self.start_ns + ready.io.due_ns) {
                Some(due) if due <= now => self.issue_due()?,
                Some(due) => self.pause(now, due)?,
                None if self.ended && self.in_flight == 0 && self.waiting == 0 => break,
                None => self.pause(now, now + SLEEP_BESIDE_NS)?,
            }
        }
        self.drain()
    }

    /// Takes the next I/O from the feed, and prepares its data while there is time.
    fn fetch(&mut self) {
        if self.next.is_some() || self.ended || self.waiting >= WAITING_MAX {
            return;
        }
        match self.feed.look() {
            Next::Io(io) => {
                let mut ready = Ready { io, piece: None, issue_ns: 0 };
                self.prepare(&mut ready);
                self.next = Some(ready);
            }
            Next::Nothing => {}
            Next::Ended => self.ended = true,
        }
    }

    /// Allocates and fills the memory of a write; returns `false` if no memory is free.
    fn prepare(&mut self, ready: &mut Ready) -> bool {
        let io = &ready.io;
        if io.operation != Operation::Write || ready.piece.is_some() {
            return true;
        }
        ready.piece = self.arena.take(io.length as usize);
        let Some(piece) = ready.piece else { return false };
        let bytes = self.arena.bytes(piece, io.length as usize);
        let compressible = self.lanes[io.lane as usize].lane.compressible_pct;
        self.data.fill(bytes, io.lane as usize, io.repeats, compressible);
        true
    }

    /// Submits due I/Os in small batches.
    fn issue_due(&mut self) -> io::Result<()> {
        for _ in 0..BATCH {
            let now = now_ns();
            let is_due = |ready: &mut Ready| self.start_ns + ready.io.due_ns <= now;
            let Some(ready) = self.next.take_if(is_due) else { break };
            let lane = ready.io.lane as usize;
            let is_first = self.lanes[lane].waiting.is_empty();
            let held = if is_first { self.begin(ready, now) } else { Some(ready) };
            if let Some(ready) = held {
                self.lanes[lane].waiting.push_back(ready);
                self.waiting += 1;
                self.collector.measured.lateness.waited += 1;
            }
            self.fetch();
        }
        self.ring.submit()
    }

    /// Pushes an I/O to the ring, or returns the I/O if it must wait.
    fn begin(&mut self, mut ready: Ready, now: u64) -> Option<Ready> {
        let lane = &self.lanes[ready.io.lane as usize];
        if lane.outstanding >= lane.lane.depth {
            return Some(ready);
        }
        if self.free.is_empty() || !self.prepare(&mut ready) {
            self.is_short = true;
            return Some(ready);
        }
        let slot = self.free.pop().unwrap_or_default();
        let io = ready.io;
        let lane = &mut self.lanes[io.lane as usize];
        lane.outstanding += 1;
        self.in_flight += 1;
        debug_assert!(lane.outstanding <= lane.lane.depth, "more in flight than the lane's depth");
        debug_assert_eq!(self.in_flight as usize + self.free.len(), self.table.len());
        let most = &mut self.collector.measured.in_flight_max;
        *most = (*most).max(self.in_flight);
        self.due_ns = self.due_ns.max(io.due_ns);
        ready.issue_ns = now - self.start_ns;
        self.collector.issued(&io, ready.issue_ns);
        if io.operation == Operation::Trim {
            self.deallocations += 1;
            self.deallocator.submit(slot, io.offset, io.length);
        } else {
            let memory = match ready.piece {
                Some(piece) => self.arena.address(piece),
                None => self.arena.read_buffer(),
            };
            let request = Request {
                operation: io.operation,
                offset: io.offset,
                length: io.length as u32,
                memory,
                dsync: lane.lane.dsync && io.operation == Operation::Write,
            };
            self.ring.push(slot, &request);
        }
        debug_assert!(self.table[slot as usize].is_none(), "slot {slot} is in flight");
        self.table[slot as usize] = Some(ready);
        None
    }

    /// Reaps completions, and issues the I/Os that waited for the completions.
    fn reap(&mut self) -> io::Result<()> {
        let mut completions = std::mem::take(&mut self.completions);
        self.ring.take(&mut completions)?;
        if self.deallocations > 0 {
            self.deallocator.take(&mut self.deallocated);
        }
        if completions.is_empty() && self.deallocated.is_empty() {
            self.completions = completions;
            return Ok(());
        }
        let now = now_ns();
        for (slot, result) in completions.drain(..) {
            self.complete(slot, result, now);
        }
        self.completions = completions;
        for completion in std::mem::take(&mut self.deallocated) {
            self.deallocations -= 1;
            self.complete(completion.slot, completion.result, completion.at_ns);
        }
        if self.is_short && !self.shared.is_stopped() {
            self.is_short = false;
            for lane in 0..self.lanes.len() {
                self.issue_waiting(lane)?;
            }
        }
        self.ring.submit()?;
        self.show(now);
        Ok(())
    }

    fn complete(&mut self, slot: u32, result: i32, at_ns: u64) {
        let Some(ready) = self.table[slot as usize].take() else { return };
        let Ready { io, piece, issue_ns } = ready;
        self.free.push(slot);
        debug_assert!(self.free.len() <= self.table.len() && self.in_flight > 0);
        self.in_flight -= 1;
        if let Some(piece) = piece {
            self.arena.give_back(piece);
        }
        let lane = &mut self.lanes[io.lane as usize];
        lane.outstanding -= 1;
        let complete_ns = (at_ns - self.start_ns).max(issue_ns);
        let is_transfer = matches!(io.operation, Operation::Read | Operation::Write);
        let moved = result.max(0) as u64;
        if result < 0 || (is_transfer && moved < io.length) {
            let failure = IoFailure { io, errno: (-result).max(0), moved };
            let measured = &mut self.collector.measured;
            measured.failure.get_or_insert(failure);
            measured.failures += 1;
        } else {
            let job = lane.lane.job;
            self.collector.record(&io, job, issue_ns, complete_ns);
        }
        if self.shared.records {
            let result = if result == 0 { io.length as i32 } else { result };
            self.records.push(Done { io, issue_ns, complete_ns, result });
        }
        if !self.lanes[io.lane as usize].waiting.is_empty()
            && !self.shared.is_stopped()
            && self.collector.measured.failures == 0
        {
            // If the ring has failed, the next submission reports the same error again.
            let _ = self.issue_waiting(io.lane as usize);
        }
    }

    /// Issues the waiting I/Os of a lane up to the lane's depth.
    fn issue_waiting(&mut self, lane: usize) -> io::Result<()> {
        let mut pushed = 0;
        while let Some(ready) = self.lanes[lane].waiting.pop_front() {
            let now = now_ns();
            let deadline = self.lanes[lane].lane.deadline_ns;
            if deadline.is_some_and(|ns| now - self.start_ns >= ns) {
                self.lanes[lane].waiting.push_front(ready);
                self.leave(lane);
                break;
            }
            if let Some(ready) = self.begin(ready, now) {
                self.lanes[lane].waiting.push_front(ready);
                break;
            }
            self.waiting -= 1;
            pushed += 1;
            if pushed % BATCH == 0 {
                self.ring.submit()?;
            }
        }
        if pushed > 0 { self.ring.submit() } else { Ok(()) }
    }

    fn leave(&mut self, lane: usize) {
        debug_assert!(self.waiting >= self.lanes[lane].waiting.len());
        for ready in std::mem::take(&mut self.lanes[lane].waiting) {
            self.waiting -= 1;
            self.collector.measured.lateness.left += 1;
            if let Some(piece) = ready.piece {
                self.arena.give_back(piece);
            }
        }
    }

    fn pause(&mut self, now: u64, until_ns: u64) -> io::Result<()> {
        let left = until_ns - now;
        if left <= SPIN_NS {
            std::hint::spin_loop();
            return Ok(());
        }
        self.show(now);
        if self.shared.records && self.records.len() >= RECORDS {
            self.shared.give(&mut self.records, false);
        }
        let longest = if self.deallocations > 0 { SLEEP_BESIDE_NS } else { SLEEP_NS };
        self.ring.wait((left - SPIN_NS).min(longest))
    }

    /// Waits for all I/Os in flight, unless the drive has been abandoned.
    fn drain(&mut self) -> io::Result<()> {
        for lane in 0..self.lanes.len() {
            self.leave(lane);
        }
        while self.in_flight > 0 && !self.shared.is_abandoned() {
            self.reap()?;
            if self.in_flight > 0 {
                self.ring.wait(SLEEP_BESIDE_NS)?;
            }
        }
        debug_assert_eq!(self.waiting, 0, "I/Os still wait");
        self.collector.measured.abandoned = u64::from(self.in_flight);
        self.show(now_ns());
        self.shared.give(&mut self.records, true);
        Ok(())
    }

    fn show(&mut self, now: u64) {
        self.shared.show(IssueProgress {
            elapsed_ns: now.saturating_sub(self.start_ns),
            ios: self.collector.ios,
            bytes: self.collector.bytes,
            due_ns: self.due_ns,
            in_flight: u64::from(self.in_flight),
        });
        if self.records.len() >= RECORDS {
            self.shared.give(&mut self.records, false);
        }
    }
}
