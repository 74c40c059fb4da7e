//! Replays a file I/O trace on a simulated drive with streams.
//!
//! The trace is fast-forwarded, which determines write amplification. The last portion of the trace
//! may be replayed with timing, as fast as the drive accepts it, with concurrent reads of live
//! data. The timed portion determines read latencies. Both modes go through the same drive states.
//! Only the second half of the written volume is measured; the first half brings the drive to
//! steady state.

mod ledger;
mod timed;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use writecliff_base::{SLOT_BYTES, StreamId};
use writecliff_filesystem::assign::{Assigner, Bucketing, MisTag, Piece, Scheme};
use writecliff_filesystem::{BlockOp, BlockRequest, BlockTrace};
use writecliff_host_interface::placement::{DataPlacementStatus, FdpStatistics};
use writecliff_ssd::{Command, Drive, DriveCounters, Operation, Ssd};

pub use self::ledger::{BUCKETS, Ledger};
pub use self::timed::Timed;
use writecliff_measure::Histogram;

use crate::device::Counters;
use crate::outcome::{Observer, StepProgress};

/// Number of requests by which address announcements to the drive precede the requests.
const AHEAD: usize = 12;
/// Number of rows in the time series.
const ROWS: u64 = 128;
/// Requests between two observer calls; small because tests have short traces.
const LOOK_EVERY: usize = if cfg!(test) { 1 << 8 } else { 1 << 19 };

/// Options of a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplayOptions {
    /// Stream assignment scheme for writes.
    pub scheme: Scheme,
    /// Number of streams to use, including stream 0; at most the drive's stream count.
    pub streams: u16,
    /// Fraction of the writes sent to a wrong stream.
    pub mistag: f64,
    /// Seed that selects the wrong streams.
    pub seed: u64,
    /// Timed phase at the end of the replay; `None` to fast-forward the whole replay.
    pub timed: Option<Timed>,
}

/// Results of a replay.
#[derive(Clone, Debug)]
pub struct ReplayOutcome {
    /// Counters at the start and end of the measured phase.
    pub before: DriveCounters,
    /// Counters at the end of the measured phase.
    pub after: DriveCounters,
    /// FDP statistics at the start and end of the measured phase.
    pub statistics: (FdpStatistics, FdpStatistics),
    /// Status of the data placement interface at the end; `None` if the drive has no such
    /// interface.
    pub data_placement: Option<DataPlacementStatus>,
    /// Bytes that the rules assigned to unavailable streams, by stream number; they went to the
    /// default stream.
    pub overflow: BTreeMap<u16, u64>,
    /// Blocks written by host and drive since the start of the replay.
    pub series: Vec<(u64, u64)>,
    /// Writes and write amplification by stream.
    pub ledger: Ledger,
    /// Latencies in the timed phase.
    pub reads: Histogram,
    /// Write latencies in the timed phase.
    pub writes: Histogram,
    /// Duration of the timed phase.
    pub timed_ns: u64,
    /// Bytes that the host wrote in the timed phase.
    pub timed_written_bytes: u64,
    /// Bucketing selected by the oracle.
    pub bucketing: Option<Bucketing>,
    pub(crate) interrupted: bool,
}

impl ReplayOutcome {
    /// Returns the bytes written to flash per host byte in the measured phase; `None` if the host
    /// wrote nothing.
    pub fn write_amplification(&self) -> Option<f64> {
        let host = self.after.host_write_bytes - self.before.host_write_bytes;
        let nand = self.after.nand_write_bytes - self.before.nand_write_bytes;
        (host > 0).then(|| nand as f64 / host as f64)
    }
}

/// Replays `trace` on a new drive created by `make`. `deaths` contains the trace's death times,
/// which only the oracle needs. The oracle tries its bucketings on separate drives and uses the
/// best.
///
/// The observer receives the completed fraction of the fast-forwarded phase. In the timed phase,
/// where the elapsed time is not 0, the observer receives the fraction of that phase because its
/// speed differs.
pub fn run<E>(
    make: &dyn Fn() -> Result<Ssd, E>,
    trace: &BlockTrace,
    deaths: &[u32],
    options: &ReplayOptions,
    observer: &mut dyn Observer,
) -> Result<ReplayOutcome, E> {
    if options.scheme != Scheme::Oracle || options.streams == 1 {
        return Ok(once(make()?, trace, deaths, Bucketing::Lifetimes, options, observer));
    }
    let mut best: Option<ReplayOutcome> = None;
    let first = make()?;
    let tried: Vec<_> = bucketings(&first, trace).collect();
    let again = options.timed.is_some() || options.mistag != 0.0;
    let mut observer = Passes { observer, done: 0, all: tried.len() + usize::from(again) };
    let observer = &mut observer;
    for bucketing in tried {
        let trial = ReplayOptions { timed: None, mistag: 0.0, ..*options };
        let mut outcome = once(make()?, trace, deaths, bucketing, &trial, observer);
        outcome.bucketing = Some(bucketing);
        if outcome.interrupted {
            return Ok(outcome);
        }
        observer.done += 1;
        let waf = |outcome: &ReplayOutcome| outcome.write_amplification().unwrap_or(1.0);
        if best.as_ref().is_none_or(|best| waf(&outcome) < waf(best)) {
            best = Some(outcome);
        }
    }
    match best {
        Some(best) if !again => Ok(best),
        best => {
            let bucketing = best.and_then(|best| best.bucketing).unwrap_or(Bucketing::Lifetimes);
            let mut outcome = once(first, trace, deaths, bucketing, options, observer);
            outcome.bucketing = Some(bucketing);
            Ok(outcome)
        }
    }
}

/// Candidate bucketings: epochs sized so that dead data in live units take at most the spare space;
/// powers from 1/2 to 1/256 of the capacity; and the streams of the trace, if it has any.
fn bucketings(ssd: &Ssd, trace: &BlockTrace) -> impl Iterator<Item = Bucketing> {
    let config = ssd.config();
    let capacity = config.user_capacity.0 / SLOT_BYTES;
    let spare = config.geometry.raw_bytes().0 / SLOT_BYTES - capacity;
    let blocks = move |blocks: u64| blocks.clamp(1, 1 << 31) as u32;
    let epochs = [1, 2, 4].map(|share| Bucketing::Epochs(blocks(spare * share / 2)));
    let powers = (1..9).map(move |bits| Bucketing::Powers(blocks(capacity >> bits)));
    let given = trace.requests.iter().any(|request| request.stream != 0);
    let given = given.then_some(Bucketing::Given);
    let fixed = [Bucketing::Lifetimes, Bucketing::LeastSpare];
    fixed.into_iter().chain(epochs).chain(powers).chain(given)
}

fn once(
    mut ssd: Ssd,
    trace: &BlockTrace,
    deaths: &[u32],
    bucketing: Bucketing,
    options: &ReplayOptions,
    observer: &mut dyn Observer,
) -> ReplayOutcome {
    let mut assigner = options.scheme.assigner(trace, options.streams, bucketing, deaths);
    if options.mistag > 0.0 {
        let (share, seed) = (options.mistag, options.seed);
        assigner = Box::new(MisTag::new(assigner, share, options.streams, seed));
    }
    let mut run = ReplayRun {
        assigner,
        ledger: Ledger::new(trace, options.streams),
        before: ssd.counters(),
        statistics: ssd.administration().statistics(),
        overflow: BTreeMap::new(),
        given: (options.scheme == Scheme::Rules).then_some(options.streams),
        pieces: Vec::new(),
        series: Vec::with_capacity(ROWS as usize + 1),
        row_blocks: trace.written_blocks.div_ceil(ROWS).max(1),
        next_row: 0,
        measure_from: trace.written_blocks / 2,
        measuring: false,
        nand_at_start: ssd.counters().nand_write_bytes,
    };
    let split = options.timed.as_ref().map_or(trace.requests.len(), |t| t.begin(trace));
    let (fast, slow) = trace.requests.split_at(split);
    let mut interrupted = run.fast(&mut ssd, fast, observer);
    ssd.end_fast_forward();
    let mut latencies = <(Histogram, Histogram)>::default();
    let (begin_ns, begin) = (ssd.now().0, ssd.counters());
    if let (Some(timed), false) = (&options.timed, interrupted) {
        (latencies, interrupted) = timed::run(&mut ssd, &mut run, slow, timed, options, observer);
    }
    run.row(&mut ssd);
    let is_whole = u64::from(run.ledger.clock) == trace.written_blocks;
    assert!(interrupted || is_whole, "{} of the trace's blocks are written", run.ledger.clock);
    let after = ssd.counters();
    ReplayOutcome {
        before: run.before,
        after,
        statistics: (run.statistics, ssd.administration().statistics()),
        data_placement: ssd.data_placement_status(),
        overflow: run.overflow,
        series: run.series,
        ledger: run.ledger.finished(),
        reads: latencies.0,
        writes: latencies.1,
        timed_ns: ssd.now().0 - begin_ns,
        timed_written_bytes: after.host_write_bytes - begin.host_write_bytes,
        bucketing: None,
        interrupted,
    }
}

/// State common to both modes.
struct ReplayRun<'a> {
    assigner: Box<dyn Assigner + 'a>,
    ledger: Ledger,
    pieces: Vec<Piece>,
    before: DriveCounters,
    statistics: FdpStatistics,
    overflow: BTreeMap<u16, u64>,
    /// Number of streams in the trace, if it assigns streams.
    given: Option<u16>,
    series: Vec<(u64, u64)>,
    row_blocks: u64,
    next_row: u64,
    measure_from: u64,
    measuring: bool,
    nand_at_start: u64,
}

impl ReplayRun<'_> {
    /// Records a request in the ledger; its pieces are in `self.pieces`.
    #[inline]
    fn book(&mut self, request: &BlockRequest, ssd: &mut Ssd) {
        let clock = self.ledger.clock;
        self.pieces.clear();
        if request.op == BlockOp::Trim {
            self.assigner.trim(request, clock);
            self.ledger.trim(request.block, request.count);
            self.pieces.push(Piece { count: request.count, stream: 0 });
            return;
        }
        if u64::from(clock) >= self.next_row {
            self.row(ssd);
        }
        if self.given.is_some_and(|streams| request.stream >= streams) {
            let bytes = u64::from(request.count) * SLOT_BYTES;
            *self.overflow.entry(request.stream).or_default() += bytes;
        }
        self.assigner.write(request, clock, &mut self.pieces);
        let mut block = request.block;
        for &piece in &self.pieces {
            self.ledger.write(block, piece, request.origin);
            block += piece.count;
        }
        debug_assert_eq!(block, request.block + request.count);
    }

    #[cold]
    fn row(&mut self, ssd: &mut Ssd) {
        let host = u64::from(self.ledger.clock);
        let nand = (ssd.counters().nand_write_bytes - self.nand_at_start) / SLOT_BYTES;
        self.series.push((host, nand));
        self.next_row = host + self.row_blocks;
        if host < self.measure_from {
            self.next_row = self.next_row.min(self.measure_from);
        } else if !self.measuring {
            self.measuring = true;
            self.before = ssd.counters();
            self.statistics = ssd.administration().statistics();
        }
    }

    /// Fast-forwards requests; returns `true` if the observer stopped the replay.
    fn fast(
        &mut self,
        ssd: &mut Ssd,
        requests: &[BlockRequest],
        observer: &mut dyn Observer,
    ) -> bool {
        for (index, request) in requests.iter().enumerate() {
            if let Some(coming) = requests.get(index + AHEAD) {
                ssd.announce(u64::from(coming.block) * SLOT_BYTES);
                self.ledger.announce(coming.block);
            }
            self.book(request, ssd);
            commands(request, &self.pieces, u32::MAX)
                .for_each(|command| ssd.fast_forward(&command));
            if index % LOOK_EVERY == LOOK_EVERY - 1
                && observer.look(&progress(ssd, 0, (index + 1, requests.len()))).is_break()
            {
                return true;
            }
        }
        false
    }
}

/// Combines an oracle's passes for the observer.
struct Passes<'a> {
    observer: &'a mut dyn Observer,
    done: usize,
    all: usize,
}

impl Observer for Passes<'_> {
    fn look(&mut self, live: &StepProgress) -> ControlFlow<()> {
        let mut live = *live;
        if live.elapsed_ns == 0 {
            live.fraction = (self.done as f64 + live.fraction) / self.all as f64;
        }
        self.observer.look(&live)
    }
}

/// Returns the progress of a part of which `done` of `whole` requests are issued.
fn progress(ssd: &Ssd, elapsed_ns: u64, (done, whole): (usize, usize)) -> StepProgress {
    let fraction = done as f64 / whole.max(1) as f64;
    let live = StepProgress::untimed(fraction, done as u64, &Counters::Ssd(ssd.counters()));
    StepProgress { elapsed_ns, ..live }
}

/// Maximum blocks per TRIM command, because lengths have 32 bits.
const TRIM_BLOCKS: u32 = 1 << 19;

/// Returns the commands of a request, whose blocks go to `pieces`; writes have at most
/// `write_blocks` each.
fn commands(
    request: &BlockRequest,
    pieces: &[Piece],
    write_blocks: u32,
) -> impl Iterator<Item = Command> {
    let (operation, most) = match request.op {
        BlockOp::Write => (Operation::Write, write_blocks),
        BlockOp::Trim => (Operation::Trim, TRIM_BLOCKS),
    };
    let mut next = request.block;
    pieces.iter().flat_map(move |&Piece { count, stream }| {
        let (first, end) = (next, next + count);
        next = end;
        (first..end).step_by(most as usize).map(move |block| {
            let length = most.min(end - block) * SLOT_BYTES as u32;
            let command = Command::new(operation, u64::from(block) * SLOT_BYTES, length);
            Command { stream: StreamId(stream), ..command }
        })
    })
}

#[cfg(test)]
mod tests;
