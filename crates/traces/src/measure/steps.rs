//! Time steps of an I/O capture: I/Os by I/O stream and process, with their response times.
//!
//! A capture is divided into steps of equal length. The default length is the shortest of several
//! common lengths that results in at most 300 steps; a day has 288 steps of 5 minutes. Each length
//! is a multiple of the previous length, so steps can be merged and one pass suffices.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::StepLength;
use super::histogram::WeightedHistogram;
use super::json::KINDS;
use crate::record::{NO_RESPONSE, Record};

const NS_PER_S: u64 = 1_000_000_000;
/// Common step lengths in seconds; each length divides the next.
const LENGTHS_S: [u64; 7] = [1, 5, 10, 30, 60, 300, 600];
const STEPS_WANTED: u64 = 300;
/// Maximum number of steps; I/Os after the last step are only counted.
const STEPS_MAX: u64 = 4096;
/// Maximum number of streams and of processes counted individually in a step.
const STREAMS_MAX: usize = 256;
const PROCESSES_MAX: usize = 64;
const STREAMS_SHOWN: usize = 64;
const PROCESSES_SHOWN: usize = 8;
/// Minimum number of I/Os for a 99.999th percentile.
const FIVE_NINES_LEAST: f64 = 100_000.0;

/// A stream: I/O type (as in `KINDS`) and size.
type Stream = (u8, u64);

/// Results of the other metrics for an I/O.
pub(crate) struct Seen {
    pub(crate) time_ns: u64,
    pub(crate) kind: Option<usize>,
    pub(crate) depth: Option<usize>,
}

#[derive(Debug, Default)]
struct Step {
    ios: [u64; 4],
    bytes: [u64; 4],
    streams: BTreeMap<Stream, u64>,
    /// Reads and writes of streams that did not fit into the map.
    other: u64,
    processes: BTreeMap<u32, u64>,
    /// Sum and count of the queue depths at I/O arrivals.
    depths: (u64, u64),
    response: Option<Box<WeightedHistogram>>,
}

impl Step {
    fn merge(&mut self, later: &Self) {
        for operation in 0..4 {
            self.ios[operation] += later.ios[operation];
            self.bytes[operation] += later.bytes[operation];
        }
        for (stream, ios) in &later.streams {
            self.count(*stream, *ios);
        }
        self.other += later.other;
        for (process, ios) in &later.processes {
            bounded(&mut self.processes, *process, *ios, PROCESSES_MAX);
        }
        self.depths = (self.depths.0 + later.depths.0, self.depths.1 + later.depths.1);
        if let Some(response) = &later.response {
            self.response.get_or_insert_default().merge(response);
        }
    }

    fn count(&mut self, stream: Stream, ios: u64) {
        if !bounded(&mut self.streams, stream, ios, STREAMS_MAX) {
            self.other += ios;
        }
    }
}

/// Adds to a map of at most `most` keys; returns `false` if the map has no room for the key.
fn bounded<K: Ord>(to: &mut BTreeMap<K, u64>, key: K, ios: u64, most: usize) -> bool {
    if to.len() >= most && !to.contains_key(&key) {
        return false;
    }
    *to.entry(key).or_default() += ios;
    true
}

#[derive(Debug)]
pub(crate) struct Steps {
    /// Index of the length in `LENGTHS_S`; `None` if the user specified the length.
    usual: Option<usize>,
    length_s: u64,
    rows: Vec<Step>,
    /// Number of I/Os after the last step.
    beyond: u64,
}

impl Steps {
    pub(crate) fn new(length: StepLength) -> Self {
        let (usual, length_s) = match length {
            StepLength::Given { seconds } => (None, seconds.max(1)),
            StepLength::ByDuration => (Some(0), LENGTHS_S[0]),
        };
        Self { usual, length_s, rows: Vec::new(), beyond: 0 }
    }

    #[inline]
    pub(crate) fn add(&mut self, record: &Record, seen: &Seen) {
        let mut n = seen.time_ns / (self.length_s * NS_PER_S);
        while n >= STEPS_WANTED && self.lengthen() {
            n = seen.time_ns / (self.length_s * NS_PER_S);
        }
        if n >= STEPS_MAX {
            self.beyond += 1;
            return;
        }
        let n = n as usize;
        if n >= self.rows.len() {
            self.rows.resize_with(n + 1, Step::default);
        }
        let step = &mut self.rows[n];
        let operation = record.operation as usize;
        step.ios[operation] += 1;
        step.bytes[operation] += record.length_bytes;
        let Some(kind) = seen.kind else { return };
        step.count((kind as u8, record.length_bytes), 1);
        if record.process != 0 {
            bounded(&mut step.processes, record.process, 1, PROCESSES_MAX);
        }
        if let Some(depth) = seen.depth {
            step.depths = (step.depths.0 + depth as u64, step.depths.1 + 1);
        }
        if record.response_ns != NO_RESPONSE {
            let response = step.response.get_or_insert_default();
            response.add(record.response_ns.unsigned_abs(), 1.0);
        }
    }

    /// Switches to the next common length; returns `false` if there is none.
    #[cold]
    fn lengthen(&mut self) -> bool {
        let Some(at) = self.usual.filter(|at| at + 1 < LENGTHS_S.len()) else { return false };
        debug_assert!(LENGTHS_S[at + 1].is_multiple_of(LENGTHS_S[at]), "steps are joined whole");
        let each = LENGTHS_S[at + 1] / LENGTHS_S[at];
        self.usual = Some(at + 1);
        self.length_s = LENGTHS_S[at + 1];
        let mut merged: Vec<Step> = Vec::new();
        for (n, step) in std::mem::take(&mut self.rows).into_iter().enumerate() {
            match merged.last_mut() {
                Some(last) if !(n as u64).is_multiple_of(each) => last.merge(&step),
                _ => merged.push(step),
            }
        }
        self.rows = merged;
        true
    }

    /// Returns all steps as JSON; the last step may be shorter than the others.
    pub(crate) fn result(&self, duration_ns: u64, process_names: &[String]) -> Value {
        let mut all: BTreeMap<Stream, u64> = BTreeMap::new();
        for (stream, ios) in self.rows.iter().flat_map(|step| &step.streams) {
            *all.entry(*stream).or_default() += ios;
        }
        let mut ranked: Vec<(Stream, u64)> = all.into_iter().collect();
        ranked.sort_by_key(|&((kind, size), ios)| (std::cmp::Reverse(ios), size, kind));
        let number: BTreeMap<Stream, usize> = ranked
            .iter()
            .take(STREAMS_SHOWN)
            .enumerate()
            .map(|(n, stream)| (stream.0, n))
            .collect();
        let stream = |&((kind, size), ios): &(Stream, u64)| {
            let (operation, access) = KINDS[usize::from(kind) & 3];
            json!({"access": access, "operation": operation, "size_bytes": size, "ios": ios})
        };
        let length_ns = self.length_s * NS_PER_S;
        let step = |(n, step): (usize, &Step)| {
            let begin_ns = n as u64 * length_ns;
            let long_ns = duration_ns.saturating_sub(begin_ns).clamp(1, length_ns);
            step.result(begin_ns, long_ns, &number, process_names)
        };
        json!({
            "length_s": self.length_s,
            "streams": ranked.iter().take(STREAMS_SHOWN).map(stream).collect::<Vec<_>>(),
            "rows": self.rows.iter().enumerate().map(step).collect::<Vec<_>>(),
            "ios_beyond": self.beyond,
        })
    }
}

impl Step {
    fn result(
        &self,
        begin_ns: u64,
        length_ns: u64,
        number: &BTreeMap<Stream, usize>,
        process_names: &[String],
    ) -> Value {
        let shown = |(stream, ios): (&Stream, &u64)| Some((*number.get(stream)?, *ios));
        let mut streams: Vec<(usize, u64)> = self.streams.iter().filter_map(shown).collect();
        streams.sort_by_key(|&(n, ios)| (std::cmp::Reverse(ios), n));
        let of_streams: u64 = streams.iter().map(|stream| stream.1).sum();
        let counted = self.streams.values().sum::<u64>() + self.other;
        assert_eq!(counted, self.ios[0] + self.ios[1], "I/Os of a step by stream");
        let mut processes: Vec<(&u32, &u64)> = self.processes.iter().collect();
        processes.sort_by_key(|&(process, ios)| (std::cmp::Reverse(*ios), *process));
        let name = |(process, ios): &(&u32, &u64)| {
            let name = process_names.get(**process as usize).map_or("", String::as_str);
            json!([name, ios])
        };
        let depth = (self.depths.1 > 0).then(|| self.depths.0 as f64 / self.depths.1 as f64);
        let response = self.response.as_deref();
        let five_nines = response
            .filter(|times| times.total >= FIVE_NINES_LEAST)
            .and_then(|times| times.quantile(0.99999));
        json!({
            "begin_s": begin_ns as f64 / NS_PER_S as f64,
            "length_s": length_ns as f64 / NS_PER_S as f64,
            "reads": self.ios[0],
            "writes": self.ios[1],
            "flushes": self.ios[2],
            "discards": self.ios[3],
            "read_bytes": self.bytes[0],
            "write_bytes": self.bytes[1],
            "streams": streams,
            "other_ios": self.ios[0] + self.ios[1] - of_streams,
            "queue_depth": depth,
            "response_mean_ns": response.and_then(WeightedHistogram::mean),
            "response_p99999_ns": five_nines,
            "response_max_ns": response.map(|times| times.max),
            "processes": processes.iter().take(PROCESSES_SHOWN).map(name).collect::<Vec<_>>(),
        })
    }
}
