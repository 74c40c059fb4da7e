//! A small log-structured merge (LSM) tree store as seen by the file system: a log, flushed tables,
//! and tables merged through three levels.
//!
//! The store is modelled on a levelled LSM tree (O'Neil et al., "The log-structured merge-tree",
//! 1996, in the levelled form of `LevelDB`). The log is as long as the in-memory table and is
//! deleted once that table is flushed. Four flushed tables are merged into level 1. When a level is
//! full, one of its tables is merged with the `FANOUT` overlapping tables of the next level. At any
//! time, one flush and one merge run concurrently with the log, so data of very different lifetimes
//! are interleaved on the drive. The model has table sizes but no keys.

use std::collections::VecDeque;

use writecliff_base::Prng;

use super::events::{Events, FileOp, TraceEvent};

/// Labels of the origins, in order of data lifetime.
pub const ORIGINS: [&str; 5] = ["log", "flush", "level 1", "level 2", "level 3"];

const FANOUT: usize = 8;
/// Number of tables flushed before they are merged.
const FLUSHED_MAX: usize = 4;
/// Capacity of levels 1 to 3, in tables.
const LEVELS: [usize; 3] = [8, 64, 512];
/// Maximum number of chunks that merges write per chunk of the log; about 20 are needed.
const MERGE_CHUNKS: usize = 32;

/// Parameters of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store {
    /// Size of a table and of its log.
    pub table_bytes: u64,
    /// Size of one write.
    pub chunk_bytes: u64,
    /// Bytes that the program writes to its log.
    pub logged_bytes: u64,
    /// Seed of the keys and file sizes.
    pub seed: u64,
}

struct Job {
    /// Tables that are still to be written.
    outputs: VecDeque<u32>,
    /// Level of the output tables; 0 for flushed tables.
    level: usize,
    done_bytes: u64,
    inputs: Vec<u32>,
    finished: Vec<u32>,
}

struct Run {
    store: Store,
    events: Events,
    next_file: u32,
    /// Tables of each level; level 0 holds the flushed tables.
    levels: [Vec<u32>; 4],
    flushes: VecDeque<Job>,
    merge: Option<Job>,
    random: Prng,
}

/// Generates the file operations of `store`; equal parameters give equal operations.
pub fn events(store: &Store) -> Events {
    let mut run = Run {
        store: *store,
        events: Events::default(),
        next_file: 0,
        levels: [const { Vec::new() }; 4],
        flushes: VecDeque::new(),
        merge: None,
        random: Prng::new(store.seed),
    };
    let mut log = run.create();
    let (mut in_log, mut logged) = (0, 0);
    while logged < store.logged_bytes {
        run.write(log, in_log, 0);
        run.event(FileOp::Sync, log, 0, 0, 0);
        in_log += store.chunk_bytes;
        logged += store.chunk_bytes;
        if in_log >= store.table_bytes {
            let table = run.create();
            run.flushes.push_back(Job::new(VecDeque::from([table]), 0, vec![log]));
            log = run.create();
            in_log = 0;
        }
        run.background();
    }
    run.events
}

impl Job {
    fn new(outputs: VecDeque<u32>, level: usize, inputs: Vec<u32>) -> Self {
        Self { outputs, level, done_bytes: 0, inputs, finished: Vec::new() }
    }
}

impl Run {
    fn event(&mut self, op: FileOp, file: u32, offset: u64, length: u64, origin: u16) {
        let stream = origin;
        let (folder, time_ms) = (0, 0);
        self.events.add(TraceEvent { op, file, offset, length, stream, origin, folder, time_ms });
    }

    fn create(&mut self) -> u32 {
        let file = self.next_file;
        self.next_file += 1;
        self.event(FileOp::Create, file, 0, 0, 0);
        file
    }

    fn write(&mut self, file: u32, offset: u64, origin: u16) {
        self.event(FileOp::Write, file, offset, self.store.chunk_bytes, origin);
    }

    /// Advances the jobs by up to two chunks of the flush and several chunks of the merge.
    fn background(&mut self) {
        if let Some(mut flush) = self.flushes.pop_front() {
            // At twice the speed of the log, a flush completes before the next flush starts.
            if !(self.step(&mut flush) || self.step(&mut flush)) {
                self.flushes.push_front(flush);
            }
        }
        for _ in 0..MERGE_CHUNKS {
            let Some(mut merge) = self.merge.take().or_else(|| self.next_merge()) else { return };
            if !self.step(&mut merge) {
                self.merge = Some(merge);
            }
        }
    }

    /// Writes one chunk; returns `true` when the job is complete and its input tables are deleted.
    fn step(&mut self, job: &mut Job) -> bool {
        if let Some(&table) = job.outputs.front() {
            self.write(table, job.done_bytes, job.level as u16 + 1);
            job.done_bytes += self.store.chunk_bytes;
            if job.done_bytes < self.store.table_bytes {
                return false;
            }
            self.event(FileOp::Sync, table, 0, 0, 0);
            job.done_bytes = 0;
            job.finished.extend(job.outputs.pop_front());
            if !job.outputs.is_empty() {
                return false;
            }
        }
        self.levels[job.level].append(&mut job.finished);
        for &file in &job.inputs {
            self.event(FileOp::Unlink, file, 0, 0, 0);
        }
        true
    }

    /// Starts the merge of the fullest level, if any level is full.
    fn next_merge(&mut self) -> Option<Job> {
        let fill = |(files, most): (&Vec<u32>, usize)| files.len() as f64 / most as f64;
        let most = [FLUSHED_MAX, LEVELS[0] + 1, LEVELS[1] + 1];
        let fills: Vec<f64> = self.levels.iter().zip(most).map(fill).collect();
        let level = (0..fills.len()).rev().max_by(|&a, &b| fills[a].total_cmp(&fills[b]))?;
        if fills[level] < 1.0 {
            return None;
        }
        if level == 0 {
            let mut inputs = std::mem::take(&mut self.levels[0]);
            inputs.append(&mut self.levels[1]);
            return Some(self.merge_of(inputs, 1, 0));
        }
        let mut inputs = vec![self.draw(level)];
        for _ in 0..FANOUT.min(self.levels[level + 1].len()) {
            inputs.push(self.draw(level + 1));
        }
        // The last level contains every key, so data merged into it replace older data.
        let settled = level == 2 && self.levels[3].len() + inputs.len() > LEVELS[2];
        Some(self.merge_of(inputs, level + 1, usize::from(settled)))
    }

    fn draw(&mut self, level: usize) -> u32 {
        let index = self.random.below(self.levels[level].len() as u64) as usize;
        self.levels[level].swap_remove(index)
    }

    fn merge_of(&mut self, inputs: Vec<u32>, level: usize, dropped: usize) -> Job {
        let outputs = (dropped..inputs.len()).map(|_| self.create()).collect();
        Job::new(outputs, level, inputs)
    }
}
