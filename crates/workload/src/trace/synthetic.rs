//! A small log-structured merge store, as it appears to a file system: a log, flushed tables,
//! tables merged through three levels.
//!
//! The shape is that of any leveled store (O'Neil et al., "The log-structured merge-tree", 1996, in
//! the leveled form of LevelDB): a log as long as the table in memory, dropped once that is
//! flushed; four flushed tables merged into level 1; a table of a full level merged with the
//! `FANOUT` tables that it overlaps in the next one. One flush and one merge go on beside the log
//! at a time, so that data of very different lifetimes reach the drive in turns. No keys, only
//! sizes.

use std::collections::VecDeque;

use writecliff_base::Prng;

use super::events::{Events, FileOp, TraceEvent};

/// Origins in the order of their lifetimes; the names of the labels.
pub const ORIGINS: [&str; 5] = ["log", "flush", "level 1", "level 2", "level 3"];

const FANOUT: usize = 8;
/// Tables flushed before they are merged.
const FLUSHED_MAX: usize = 4;
/// Tables that levels 1 to 3 hold.
const LEVELS: [usize; 3] = [8, 64, 512];
/// Chunks that a merge writes for each one appended to the log; merges need about 20.
const MERGE_CHUNKS: usize = 32;

/// What kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store {
    /// Of a table, and of the log that it comes from.
    pub table_bytes: u64,
    /// Of one write.
    pub chunk_bytes: u64,
    /// Bytes that the program writes to its log.
    pub logged_bytes: u64,
    pub seed: u64,
}

struct Job {
    /// Table to write and its level (0: flushed).
    outputs: VecDeque<u32>,
    level: usize,
    done_bytes: u64,
    inputs: Vec<u32>,
    finished: Vec<u32>,
}

struct Run {
    store: Store,
    events: Events,
    next_file: u32,
    /// Tables of each level; 0 are the flushed ones.
    levels: [Vec<u32>; 4],
    flushes: VecDeque<Job>,
    merge: Option<Job>,
    random: Prng,
}

/// The file operations of `store`. The same store gives the same events.
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
        let event = TraceEvent { op, file, offset, length, stream: origin, origin, folder: 0 };
        self.events.add(event);
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

    /// One chunk of the flush and several of the merge under way.
    fn background(&mut self) {
        if let Some(mut flush) = self.flushes.pop_front() {
            // Twice the speed of the log: the flush ends before the next begins.
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

    /// Write a chunk; true when the job is done and its inputs are gone.
    fn step(&mut self, job: &mut Job) -> bool {
        if let Some(&table) = job.outputs.front() {
            self.write(table, job.done_bytes, job.level as u16 + 1);
            job.done_bytes += self.store.chunk_bytes;
            if job.done_bytes < self.store.table_bytes {
                return false;
            }
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

    /// The merge that is due, if any: that of the fullest level.
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
        // The last level has every key: what is merged into it replaces what it had.
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
