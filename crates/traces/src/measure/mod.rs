//! Analyses the workload of a trace in one pass and in bounded memory.

mod arrival;
mod blocks;
mod depth;
mod heat;
mod histogram;
mod hll;
mod json;
mod reuse;
mod runs;
mod sizes;
mod steps;
mod volume;

use arrival::{Arrivals, Timeline};
use blocks::{Blocks, hash_of};
use depth::Depths;
use histogram::WeightedHistogram;
use hll::Distinct;
use reuse::Reuse;
pub use runs::{RunsOf, runs_of};
use sizes::Sizes;
use steps::{Seen, Steps};
use volume::{Count, Volume};
use writecliff_base::SLOT_BYTES;

use crate::record::{NO_RESPONSE, Operation, Record};

/// Memory limits of a trace analysis.
#[derive(Clone, Copy, Debug)]
pub struct MeasureLimits {
    /// Number of 4 KiB blocks up to which the counts are exact; more blocks are sampled.
    pub blocks: usize,
    /// Number of blocks in the sample.
    pub sample_blocks: usize,
    /// Limit on the number of blocks for reuse distances, which need more memory per block.
    pub reuse_blocks: usize,
    /// Length of the time steps in an I/O capture; `None` if time steps are not counted.
    pub steps: Option<StepLength>,
}

/// Length of the time steps.
#[derive(Clone, Copy, Debug)]
pub enum StepLength {
    /// A fixed length.
    Given {
        /// Length in seconds; at least 1.
        seconds: u64,
    },
    /// A length from 1 s to 10 min that results in at most a few hundred steps.
    ByDuration,
}

impl Default for MeasureLimits {
    fn default() -> Self {
        Self { blocks: 1 << 17, sample_blocks: 1 << 16, reuse_blocks: 1 << 13, steps: None }
    }
}

/// Number of counted alignments, from 512 B to 1 MiB.
const ALIGNMENTS: usize = 12;
const SECTOR_BITS: usize = 9;

/// Metrics of a trace.
pub struct Measures {
    volumes: Vec<Volume>,
    volume_names: Vec<String>,
    processes: Vec<[u64; 2]>,
    process_names: Vec<String>,
    counts: [Count; 4],
    sizes: Sizes,
    response: [WeightedHistogram; 4],
    depths: Depths,
    arrivals: Arrivals,
    timeline: Timeline,
    blocks: Blocks,
    reuse: Reuse,
    /// Reads and writes with an address and length that are multiples of 512 B << n.
    aligned: [u64; ALIGNMENTS],
    /// 4 KiB blocks accessed by reads and writes.
    block_reads: u64,
    block_writes: u64,
    content: Distinct,
    content_writes: u64,
    last_ns: i64,
    /// Number of I/Os whose time is before a previous I/O.
    late: u64,
    steps: Option<Steps>,
}

impl Measures {
    /// Starts an analysis without I/Os.
    pub fn new(limits: MeasureLimits) -> Self {
        Self {
            volumes: Vec::new(),
            volume_names: Vec::new(),
            processes: Vec::new(),
            process_names: Vec::new(),
            counts: Default::default(),
            sizes: Sizes::default(),
            response: Default::default(),
            depths: Depths::default(),
            arrivals: Arrivals::default(),
            timeline: Timeline::default(),
            blocks: Blocks::new(limits.blocks.max(16), limits.sample_blocks.max(16)),
            reuse: Reuse::new(limits.reuse_blocks.max(16)),
            aligned: [0; ALIGNMENTS],
            block_reads: 0,
            block_writes: 0,
            content: Distinct::default(),
            content_writes: 0,
            last_ns: 0,
            late: 0,
            steps: limits.steps.map(Steps::new),
        }
    }

    /// Returns the number of I/Os so far.
    pub fn ios(&self) -> u64 {
        self.counts.iter().map(|count| count.ios).sum()
    }

    /// Measures I/Os. `volumes` and `processes` contain the names for all numbers so far.
    pub fn add(&mut self, batch: &[Record], volumes: &[String], processes: &[String]) {
        for (names, given) in
            [(&mut self.volume_names, volumes), (&mut self.process_names, processes)]
        {
            let held = names.len().min(given.len());
            names.extend_from_slice(&given[held..]);
        }
        let highest = batch.iter().map(|record| record.volume).max().unwrap_or(0) as usize;
        for number in self.volumes.len()..=highest {
            self.volumes.push(Volume::new(number));
        }
        let highest = batch.iter().map(|record| record.process).max().unwrap_or(0) as usize;
        if highest >= self.processes.len() {
            self.processes.resize(highest + 1, [0; 2]);
        }
        for record in batch {
            self.record(record);
        }
    }

    #[inline]
    fn record(&mut self, record: &Record) {
        if record.time_ns < self.last_ns {
            self.late += 1;
        }
        self.last_ns = self.last_ns.max(record.time_ns);
        let time_ns = record.time_ns.max(0).unsigned_abs();
        let operation = record.operation as usize;
        self.counts[operation].add(record.length_bytes);
        let interval = self.timeline.at(time_ns);
        interval.ios[operation] += 1;
        interval.bytes[operation] += record.length_bytes;
        self.arrivals.add(record, time_ns);
        let mut depth = None;
        if record.response_ns != NO_RESPONSE {
            self.response[operation].add(record.response_ns.unsigned_abs(), 1.0);
            depth = Some(self.depths.add(record.time_ns, record.response_ns));
        }
        let process = &mut self.processes[record.process as usize];
        process[0] += 1;
        process[1] += record.length_bytes;
        let volume = &mut self.volumes[record.volume as usize];
        let kind = volume.add(record, time_ns, &mut self.sizes);
        if let Some(steps) = &mut self.steps {
            steps.add(record, &Seen { time_ns, kind, depth });
        }
        if record.operation.moves() {
            self.data(record, time_ns);
        }
    }

    /// Analyses the blocks of a read or write.
    #[inline]
    fn data(&mut self, record: &Record, time_ns: u64) {
        let (offset, length) = (record.offset_bytes, record.length_bytes);
        let zeros = (offset | length).trailing_zeros() as usize;
        if let Some(n) = zeros.checked_sub(SECTOR_BITS) {
            self.aligned[n.min(ALIGNMENTS - 1)] += 1;
        }
        let write = record.operation == Operation::Write;
        if write && record.content != 0 {
            self.content_writes += 1;
            self.content.add(blocks::mixed(record.content));
        }
        debug_assert!(length > 0, "the check rejects I/Os without data");
        let (first, last) = (offset / SLOT_BYTES, (offset + length - 1) / SLOT_BYTES);
        *(if write { &mut self.block_writes } else { &mut self.block_reads }) += last - first + 1;
        let interval = self.timeline.at(time_ns);
        let written = self.counts[Operation::Write as usize].bytes;
        for block in first..=last {
            let hash = hash_of(record.volume, block);
            interval.blocks.add(hash);
            self.blocks.touch(hash, record.volume, write, record.time_ns, written);
            self.reuse.touch(hash);
        }
    }
}
