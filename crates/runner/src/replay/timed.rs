//! Replays the last portion of a trace with timing: writes as fast as the drive accepts them, with
//! concurrent reads of live data.
//!
//! A TRIM waits until all previous writes have completed, as in file systems, which discard blocks
//! only after their deallocation is durable.

use writecliff_base::{Nanos, Prng, SLOT_BYTES};
use writecliff_filesystem::{BlockOp, BlockRequest, BlockTrace};
use writecliff_host_interface::CommandTable;
use writecliff_measure::Histogram;
use writecliff_ssd::{Command, Completion, Drive, Operation, Ssd};

use super::{LOOK_EVERY, Run, look, trims, write};
use crate::outcome::Observer;

const READERS_LABEL: u64 = 0x7265_6164;
const NONE: u32 = u32::MAX;

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

struct Host<'a> {
    ssd: &'a mut Ssd,
    /// Outstanding commands, each with its issue time.
    outstanding: CommandTable<(Command, Nanos), u32>,
    live: LiveSet,
    random: Prng,
    writes: u32,
    reads: u32,
    readers: u32,
    reads_per_block: f64,
    /// Reads that are due but have not started.
    due: f64,
}

/// Runs the timed phase; returns `true` if the observer stopped it. `latencies` receives the
/// latencies of reads and writes.
pub(super) fn run(
    ssd: &mut Ssd,
    run: &mut Run<'_>,
    requests: &[BlockRequest],
    timed: &Timed,
    seed: u64,
    latencies: &mut (Histogram, Histogram),
    observer: &mut dyn Observer,
) -> bool {
    let mut live = LiveSet { list: Vec::new(), position: vec![NONE; run.ledger.blocks()] };
    run.ledger.live().for_each(|block| live.add(block));
    let random = Prng::derive(seed, READERS_LABEL);
    let begin_ns = ssd.now().0;
    let mut host = Host {
        ssd,
        outstanding: CommandTable::default(),
        live,
        random,
        writes: 0,
        reads: 0,
        readers: timed.readers,
        reads_per_block: timed.reads_per_block.unwrap_or(0.0),
        due: if timed.reads_per_block.is_some() { 0.0 } else { f64::INFINITY },
    };
    for (index, request) in requests.iter().enumerate() {
        run.book(request, host.ssd);
        if request.op == BlockOp::Trim {
            while host.writes > 0 {
                host.next(latencies);
            }
            for block in request.block..request.block + request.count {
                host.live.remove(block);
            }
            for command in trims(request) {
                host.submit(command);
            }
        }
        let mut block = request.block;
        for piece in &run.pieces {
            let end = block + piece.count;
            while block < end {
                let count = timed.command_blocks.min(end - block);
                while host.writes >= timed.queue_depth || host.lags() {
                    host.next(latencies);
                }
                host.submit(write(block, count, piece.stream));
                host.due += f64::from(count) * host.reads_per_block;
                host.read();
                block += count;
            }
        }
        if index % (LOOK_EVERY / 8) == LOOK_EVERY / 8 - 1 {
            let elapsed_ns = (host.ssd.now().0 - begin_ns).max(1);
            if look(observer, host.ssd, elapsed_ns, (index + 1, requests.len())) {
                host.drain(latencies);
                return true;
            }
        }
    }
    host.drain(latencies);
    false
}

impl Host<'_> {
    fn submit(&mut self, command: Command) {
        let now = self.ssd.now();
        let tag = self.outstanding.insert((command, now));
        if command.operation == Operation::Read {
            self.reads += 1;
        } else {
            self.writes += 1;
        }
        debug_assert_eq!(self.outstanding.in_flight(), (self.writes + self.reads) as usize);
        self.ssd.submit(now, Command { tag, ..command });
    }

    /// Returns `true` if due reads have not started, as in a program whose threads all wait for a
    /// read.
    fn lags(&self) -> bool {
        self.due.is_finite() && self.due >= 1.0 && self.reads > 0
    }

    /// Keeps up to `readers` reads outstanding while reads are due.
    fn read(&mut self) {
        while self.reads < self.readers && self.due >= 1.0 && !self.live.list.is_empty() {
            self.due -= 1.0;
            let block = self.live.list[self.random.below(self.live.list.len() as u64) as usize];
            let offset = u64::from(block) * SLOT_BYTES;
            let read = Command::new(Operation::Read, offset, SLOT_BYTES as u32);
            self.submit(Command { queue: 1, ..read });
        }
    }

    /// Processes the next completion.
    fn next(&mut self, latencies: &mut (Histogram, Histogram)) {
        let Some(Completion { at, tag, operation, .. }) = self.ssd.step(Nanos::MAX) else {
            unreachable!("commands are outstanding, so one completes")
        };
        let (command, issued) = self.outstanding.remove(tag);
        debug_assert!(at >= issued && operation == command.operation);
        let latency = (at - issued).0;
        match operation {
            Operation::Read => {
                self.reads -= 1;
                latencies.0.record(latency);
            }
            Operation::Write => {
                self.writes -= 1;
                latencies.1.record(latency);
                let first = (command.offset / SLOT_BYTES) as u32;
                for block in first..first + command.length / SLOT_BYTES as u32 {
                    self.live.add(block);
                }
            }
            Operation::Trim | Operation::Flush => self.writes -= 1,
        }
        self.read();
    }

    fn drain(&mut self, latencies: &mut (Histogram, Histogram)) {
        self.readers = 0;
        while self.writes + self.reads > 0 {
            self.next(latencies);
        }
        assert_eq!(self.outstanding.in_flight(), 0, "commands are outstanding at the end");
    }
}
