//! Replays the last portion of a trace with timing: writes as fast as the drive accepts them, with
//! concurrent reads of live data.
//!
//! A TRIM waits until all previous writes have completed, as in file systems, which discard blocks
//! only after their deallocation is durable.

use std::collections::VecDeque;

use writecliff_base::{Nanos, Prng, SLOT_BYTES};
use writecliff_filesystem::{BlockOp, BlockRequest, BlockTrace};
use writecliff_host_interface::CommandTable;
use writecliff_measure::Histogram;
use writecliff_ssd::{Command, Completion, Drive, Operation, Ssd};

use super::{LOOK_EVERY, ReplayOptions, ReplayRun, commands, progress};
use crate::host::{self, Load};
use crate::outcome::{Observer, StepProgress};

const READERS_LABEL: u64 = 0x7265_6164;
const NONE: u32 = u32::MAX;
/// Trace requests between two progress reports.
const LOOK_EVERY_TIMED: usize = LOOK_EVERY / 8;

/// Options of the timed phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timed {
    /// Number of outstanding host writes.
    pub queue_depth: u32,
    /// Number of outstanding random 4 KiB reads of live data.
    pub readers: u32,
    /// Reads per written block, for a program with a fixed ratio of reads to writes, where writes
    /// wait until due reads have started. The ratio is `None` if readers never pause.
    pub reads_per_block: Option<f64>,
    /// Maximum number of blocks per write command.
    pub command_blocks: u32,
    /// Number of blocks written in the timed phase, at most half of the trace.
    pub written_blocks: u64,
}

impl Timed {
    /// Returns the index of the first request in the timed phase.
    pub(super) fn begin(&self, trace: &BlockTrace) -> usize {
        let mut left = self.written_blocks.min(trace.written_blocks / 2);
        for (index, request) in trace.requests.iter().enumerate().rev() {
            if request.op == BlockOp::Write {
                if left < u64::from(request.count) {
                    return index + 1;
                }
                left -= u64::from(request.count);
            }
        }
        0
    }
}

/// Blocks that hold data; read addresses are selected from this list.
struct LiveSet {
    list: Vec<u32>,
    position: Vec<u32>,
}

impl LiveSet {
    fn add(&mut self, block: u32) {
        let position = &mut self.position[block as usize];
        if *position == NONE {
            *position = self.list.len() as u32;
            self.list.push(block);
        }
    }

    fn remove(&mut self, block: u32) {
        let position = std::mem::replace(&mut self.position[block as usize], NONE);
        if position != NONE {
            let removed = self.list.swap_remove(position as usize);
            debug_assert_eq!(removed, block, "another block is at the position of a live block");
            if let Some(&moved) = self.list.get(position as usize) {
                self.position[moved as usize] = position;
            }
        }
    }
}

/// The requests of a trace and the reads beside them.
struct TraceLoad<'a, 'b> {
    run: &'a mut ReplayRun<'b>,
    requests: &'a [BlockRequest],
    /// Number of requests whose commands are all issued.
    issued: usize,
    /// Commands of the current request that are not issued.
    pending: VecDeque<Command>,
    command_blocks: u32,
    queue_depth: u32,
    /// Outstanding commands, each with its time of issue.
    outstanding: CommandTable<(Command, Nanos), u32>,
    live: LiveSet,
    random: Prng,
    writes: u32,
    reads: u32,
    readers: u32,
    reads_per_block: f64,
    /// Reads that are due but have not started.
    due: f64,
    latencies: (Histogram, Histogram),
    begin_ns: u64,
    look_at: usize,
}

/// Runs the timed part. Returns the latencies of reads and of writes, and `true` if the observer
/// stopped it.
pub(super) fn run(
    ssd: &mut Ssd,
    run: &mut ReplayRun<'_>,
    requests: &[BlockRequest],
    timed: &Timed,
    options: &ReplayOptions,
    observer: &mut dyn Observer,
) -> ((Histogram, Histogram), bool) {
    let mut live = LiveSet { list: Vec::new(), position: vec![NONE; run.ledger.blocks()] };
    run.ledger.live().for_each(|block| live.add(block));
    let mut load = TraceLoad {
        run,
        requests,
        issued: 0,
        pending: VecDeque::new(),
        command_blocks: timed.command_blocks,
        queue_depth: timed.queue_depth,
        outstanding: CommandTable::default(),
        live,
        random: Prng::derive(options.seed, READERS_LABEL),
        writes: 0,
        reads: 0,
        readers: timed.readers,
        reads_per_block: timed.reads_per_block.unwrap_or(0.0),
        due: if timed.reads_per_block.is_some() { 0.0 } else { f64::INFINITY },
        latencies: Default::default(),
        begin_ns: ssd.now().0,
        look_at: LOOK_EVERY_TIMED,
    };
    load.book(ssd);
    load.issue(ssd);
    let is_stopped = !load.is_done() && host::drive(ssd, &mut load, observer).is_break();
    assert_eq!(load.outstanding.in_flight(), 0, "commands are outstanding at the end");
    (load.latencies, is_stopped)
}

impl TraceLoad<'_, '_> {
    /// Starts the next request. After the last one, no further reads start.
    fn book(&mut self, ssd: &mut Ssd) {
        let Some(request) = self.requests.get(self.issued) else {
            self.readers = 0;
            return;
        };
        self.run.book(request, ssd);
        self.pending.extend(commands(request, &self.run.pieces, self.command_blocks));
    }

    /// Issues the commands of the trace that need not wait for a completion.
    fn issue(&mut self, ssd: &mut Ssd) {
        while let Some(request) = self.requests.get(self.issued) {
            if request.op == BlockOp::Trim {
                if self.writes > 0 {
                    return;
                }
                for block in request.block..request.block + request.count {
                    self.live.remove(block);
                }
                for command in std::mem::take(&mut self.pending) {
                    self.submit(ssd, command);
                }
            }
            while let Some(&command) = self.pending.front() {
                if self.writes >= self.queue_depth || self.lags() {
                    return;
                }
                self.pending.pop_front();
                self.submit(ssd, command);
                self.due += f64::from(command.length / SLOT_BYTES as u32) * self.reads_per_block;
                self.read(ssd);
            }
            self.issued += 1;
            self.book(ssd);
        }
    }

    fn submit(&mut self, ssd: &mut Ssd, command: Command) {
        let now = ssd.now();
        let tag = self.outstanding.insert((command, now));
        if command.operation == Operation::Read {
            self.reads += 1;
        } else {
            self.writes += 1;
        }
        debug_assert_eq!(self.outstanding.in_flight(), (self.writes + self.reads) as usize);
        ssd.submit(now, Command { tag, ..command });
    }

    /// Returns `true` if due reads have not started, as in a program whose threads all wait for a
    /// read.
    fn lags(&self) -> bool {
        self.due.is_finite() && self.due >= 1.0 && self.reads > 0
    }

    /// Keeps up to `readers` reads outstanding, as far as reads are due.
    fn read(&mut self, ssd: &mut Ssd) {
        while self.reads < self.readers && self.due >= 1.0 && !self.live.list.is_empty() {
            self.due -= 1.0;
            let block = self.live.list[self.random.below(self.live.list.len() as u64) as usize];
            let offset = u64::from(block) * SLOT_BYTES;
            let read = Command::new(Operation::Read, offset, SLOT_BYTES as u32);
            self.submit(ssd, Command { queue: 1, ..read });
        }
    }
}

impl Load<Ssd> for TraceLoad<'_, '_> {
    fn completed(&mut self, ssd: &mut Ssd, done: Completion) {
        let (command, issued) = self.outstanding.remove(done.tag);
        debug_assert!(done.at >= issued && done.operation == command.operation);
        let latency = (done.at - issued).0;
        match done.operation {
            Operation::Read => {
                self.reads -= 1;
                self.latencies.0.record(latency);
            }
            Operation::Write => {
                self.writes -= 1;
                self.latencies.1.record(latency);
                let first = (command.offset / SLOT_BYTES) as u32;
                for block in first..first + command.length / SLOT_BYTES as u32 {
                    self.live.add(block);
                }
            }
            Operation::Trim | Operation::Flush => self.writes -= 1,
        }
        self.read(ssd);
        self.issue(ssd);
    }

    fn is_done(&self) -> bool {
        self.writes + self.reads == 0
    }

    fn is_looked_at(&self) -> bool {
        self.issued >= self.look_at
    }

    fn progress(&mut self, ssd: &Ssd) -> StepProgress {
        self.look_at = self.issued + LOOK_EVERY_TIMED;
        let elapsed_ns = (ssd.now().0 - self.begin_ns).max(1);
        progress(ssd, elapsed_ns, (self.issued, self.requests.len()))
    }

    fn stop(&mut self) {
        self.requests = &[];
        self.pending.clear();
        (self.readers, self.look_at) = (0, usize::MAX);
    }
}
