//! Model of a trace's I/Os that lets a job generate similar I/Os (`writecliff trace synthesise`).
//!
//! The model and its seed determine the I/Os of one pass and their times; a job repeats them as an
//! open loop. The model has three components, with one file each:
//!
//! * `arrivals`: a Markov chain over states (stream, whether the I/O continues a run, time since
//!   the previous I/O), by phases and periods of demand;
//! * `places`: addresses of I/Os that do not continue a run, as groups of addresses with similar
//!   use;
//! * `runs`: sequential I/Os, which continue a run.
//!
//! Alternatively, `sweeps` models sequences of I/Os with their starts and ends, and demand over
//! time in intervals; `mixes` models the types of I/Os in sweeps; and `gaps` models the pages that
//! sweeps skip.
//!
//! Transitions, gap sizes and uses of addresses are drawn from bags without replacement, so a pass
//! has exactly as many of each as the model. Periods with one histogram each follow Tarasov et al.,
//! "Extracting flexible, replayable models from large block traces" (FAST '12). The shuffle that
//! preserves transition counts is from Altschul and Erickson (1985). Where a state has no
//! successors left, it jumps instead of choosing a last successor in advance.

#[macro_use]
mod toml;

mod arrivals;
mod free_places;
mod gaps;
mod mixes;
mod places;
mod runs;
mod sweeps;

use arrivals::Arrivals;
use mixes::Mixes;
use places::Starts;
use runs::Runs;
use serde::{Deserialize, Serialize};
use sweeps::{Demand, Sweeps};
pub use toml::read;
use writecliff_base::{Bytes, Prng, SECTOR_BYTES};

/// Maximum number of I/Os per pass, which are stored in memory.
const IOS_MAX: u64 = 100_000_000;
/// Maximum I/O length in bytes.
const LENGTH_MAX: u32 = 1 << 30;
/// Number of representative values per gap class.
pub(crate) const GAP_VALUES: usize = 8;
/// Time resolution within a pass.
pub(crate) const PASS: u64 = 1 << 24;
/// Valid Weibull shapes of the times between uses, in hundredths.
const SHAPES: std::ops::RangeInclusive<u32> = 10..=1000;
const CHAIN_LABEL: u64 = 0x10d_0001;
const PLACES_LABEL: u64 = 0x10d_0002;
const RUNS_LABEL: u64 = 0x10d_0003;
const SWEEPS_LABEL: u64 = 0x10d_0004;

type Check = Result<(), String>;

fn ensure(holds: bool, message: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(message()) }
}

fn whole_sectors(bytes: u64) -> Check {
    ensure(bytes.is_multiple_of(SECTOR_BYTES), || {
        format!("{} is not a multiple of {SECTOR_BYTES} bytes", Bytes(bytes))
    })
}

fn check_columns(table: &str, part: &impl toml::Part) -> Check {
    let lengths = part.lengths();
    ensure(lengths.iter().all(|length| *length == lengths[0]), || {
        format!("the columns of {table} differ in length")
    })
}

/// I/Os as columns of equal length: of a log, or of one pass of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IoLog {
    /// One letter per I/O: `r` read, `w` write, `t` trim, `f` flush.
    pub operations: String,
    /// Offsets of the first byte, relative to the start of the device; 0 for flushes.
    pub offsets: Vec<u64>,
    /// Lengths in bytes; 0 for flushes.
    pub lengths: Vec<u64>,
    /// Arrival times since the start, ascending; empty for as fast as possible.
    pub times_ns: Vec<u64>,
}

impl IoLog {
    /// Returns `true` if the log contains trims.
    pub fn trims(&self) -> bool {
        self.operations.contains('t')
    }
}

/// Model of a trace; all columns of a table have the same length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IoModel {
    /// Seed of the generated I/Os.
    pub(crate) seed: u64,
    /// Upper limit of the addresses, relative to the job's `offset`.
    pub range_bytes: u64,
    pub(crate) streams: Streams,
    pub(crate) gaps: Gaps,
    pub(crate) states: States,
    pub(crate) transitions: Transitions,
    pub(crate) periods: Periods,
    pub(crate) places: Places,
    /// Number of continuations of the most recently used run, the second most recently used run,
    /// and so on.
    pub(crate) read_ranks: Vec<u64>,
    pub(crate) write_ranks: Vec<u64>,
    /// Sweeps, mixes and demand replace the tables from `gaps` on, which are then empty.
    #[serde(default)]
    pub(crate) sweeps: Option<Sweeps>,
    #[serde(default)]
    pub(crate) mixes: Option<Mixes>,
    #[serde(default)]
    pub(crate) demand: Option<Demand>,
}

model_table! {
    /// I/O streams: operation and length.
    Streams {
        /// One letter per I/O: `r` read, `w` write, `t` trim, `f` flush.
        operations: String,
        /// 0 for flushes.
        lengths: Vec<u32>,
        /// 1 for a stream with I/Os of several sizes, whose length is their mean.
        several: Vec<u8>,
    }
}

model_table! {
    /// Times since the previous I/O, in classes.
    Gaps {
        /// Eight values per class: the means of its octiles.
        values_ns: Vec<u64>,
        /// Minimum length of gaps that are lengthened to give each period its length.
        idle_ns: u64,
    }
}

model_table! {
    /// States of the Markov chain of arrivals.
    States {
        stream: Vec<u32>,
        /// 1 if the I/O continues a run, 0 if it starts a run.
        continues: Vec<u8>,
        /// Distance in bytes by which a continuing I/O starts before the end of its run.
        back: Vec<u32>,
        /// Class of the gap before the I/O.
        gap: Vec<u32>,
    }
}

model_table! {
    /// Number of times that one state follows another in each phase.
    Transitions {
        phase: Vec<u32>,
        before: Vec<u32>,
        after: Vec<u32>,
        count: Vec<u64>,
    }
}

model_table! {
    /// Demand over time.
    Periods {
        phase: Vec<u32>,
        ios: Vec<u64>,
        /// Time from the last I/O of the previous period to the last I/O of this period.
        length_ns: Vec<u64>,
        /// Longest time between two I/Os of the period.
        longest_ns: Vec<u64>,
    }
}

model_table! {
    /// Groups of addresses with similar use.
    Places {
        stream: Vec<u32>,
        /// Start and duration of the time window in which addresses of the group are first used, in
        /// 2^-24 of the stream's run-starting I/Os.
        begin: Vec<u64>,
        within: Vec<u64>,
        /// Time from the first to the last use of an address.
        life: Vec<u64>,
        /// Shape of the Weibull distribution of the times between uses of an address, in
        /// hundredths: 100 is random, higher values are more evenly spread, and lower values are
        /// clustered.
        shape: Vec<u32>,
        /// Number of addresses in the group.
        count: Vec<u64>,
        /// Number of uses of all these addresses.
        uses: Vec<u64>,
        /// Number of bytes in the run that starts with a use.
        run_bytes: Vec<u64>,
        /// First address, and the distance between neighbouring addresses.
        offset: Vec<u64>,
        stride: Vec<u64>,
    }
}

impl IoModel {
    /// Returns the number of I/Os of a pass, including flushes.
    pub fn ios(&self) -> u64 {
        if let Some(sweeps) = &self.sweeps {
            return sweeps.total();
        }
        self.periods.ios.iter().fold(0, |sum, ios| sum.saturating_add(*ios))
    }

    pub(crate) fn operation(&self, stream: usize) -> u8 {
        self.streams.operations.as_bytes()[stream]
    }

    /// Returns `true` if the model contains trims.
    pub fn trims(&self) -> bool {
        self.streams.operations.contains('t')
    }

    /// Returns the I/Os of one pass, at addresses starting at `offset`.
    pub fn expand(&self, offset: u64) -> IoLog {
        let random = |label| Prng::derive(self.seed, label);
        if let (Some(sweeps), Some(mixes), Some(demand)) = (&self.sweeps, &self.mixes, &self.demand)
        {
            return sweeps.expand(self, mixes, demand, offset, &mut random(SWEEPS_LABEL));
        }
        let mut arrivals = Arrivals::new(self, random(CHAIN_LABEL));
        let mut starts = Starts::new(self, &mut random(PLACES_LABEL));
        let mut runs = Runs::new(self, random(RUNS_LABEL));
        let rows = self.ios() as usize;
        let mut log = IoLog {
            operations: String::with_capacity(rows),
            offsets: Vec::with_capacity(rows),
            lengths: Vec::with_capacity(rows),
            times_ns: Vec::with_capacity(rows),
        };
        assert!(rows > 0, "the check rejects empty models");
        for period in 0..self.periods.ios.len() {
            for (time_ns, state) in arrivals.period(period) {
                let stream = self.states.stream[state] as usize;
                let (operation, length) = (self.operation(stream), self.streams.lengths[stream]);
                let continues =
                    (self.states.continues[state] == 1).then(|| self.states.back[state]);
                let at = match operation {
                    b'f' => 0,
                    _ => offset + runs.next(operation, length, continues, stream, &mut starts),
                };
                log.operations.push(char::from(operation));
                log.offsets.push(at);
                log.lengths.push(length.into());
                log.times_ns.push(time_ns);
            }
        }
        assert_eq!(log.times_ns.len(), rows, "I/Os of all periods");
        assert!(log.times_ns.is_sorted(), "arrivals of a pass go back");
        log
    }

    /// Validates the model; the error is a message for the user.
    pub fn check(&self) -> Check {
        whole_sectors(self.range_bytes)?;
        if self.sweeps.is_some() || self.mixes.is_some() || self.demand.is_some() {
            return self.check_swept();
        }
        check_columns("streams", &self.streams)?;
        check_columns("states", &self.states)?;
        check_columns("transitions", &self.transitions)?;
        check_columns("periods", &self.periods)?;
        check_columns("places", &self.places)?;
        self.check_streams()?;
        self.check_chain()?;
        self.check_places()
    }

    fn check_swept(&self) -> Check {
        let (Some(sweeps), Some(mixes), Some(demand)) = (&self.sweeps, &self.mixes, &self.demand)
        else {
            return ensure(false, || "sweeps, mixes and demand must be given together".to_owned());
        };
        let chain = self.states.stream.len() + self.periods.ios.len() + self.places.stream.len();
        ensure(chain == 0, || "sweeps cannot be combined with states and places".to_owned())?;
        check_columns("streams", &self.streams)?;
        self.check_streams()?;
        sweeps.check(self, mixes, demand)
    }

    fn check_streams(&self) -> Check {
        let several = &self.streams.several;
        ensure(several.iter().all(|flag| *flag <= 1), || "several must be 0 or 1".to_owned())?;
        let letters = self.streams.operations.bytes();
        ensure(letters.clone().all(|letter| b"rwtf".contains(&letter)), || {
            "an operation is not r, w, t or f".to_owned()
        })?;
        for (letter, length) in letters.zip(&self.streams.lengths) {
            whole_sectors(u64::from(*length))?;
            ensure(letter == b'f' || (1..=LENGTH_MAX).contains(length), || {
                format!("a stream has I/Os of {length} bytes")
            })?;
            ensure(letter == b'f' || u64::from(*length) <= self.range_bytes, || {
                format!("an I/O of {length} bytes is larger than the range")
            })?;
        }
        ensure((1..=IOS_MAX).contains(&self.ios()), || {
            format!("a pass has {} I/Os; it must have 1 to {IOS_MAX}", self.ios())
        })
    }

    fn check_chain(&self) -> Check {
        let (classes, streams) =
            (self.gaps.values_ns.len() / GAP_VALUES, self.streams.lengths.len());
        let whole = self.gaps.values_ns.len().is_multiple_of(GAP_VALUES);
        ensure(classes > 0 && whole, || "gaps must have eight values per class".to_owned())?;
        let (of, by) = (&self.states, &self.transitions);
        let below =
            |column: &[u32], end: usize| column.iter().all(|number| (*number as usize) < end);
        let is_within = below(&of.stream, streams)
            && below(&of.gap, classes)
            && below(&by.before, of.stream.len())
            && below(&by.after, of.stream.len());
        ensure(is_within, || "a number of a stream, gap or state is too large".to_owned())?;
        ensure(of.continues.iter().all(|flag| *flag <= 1), || {
            "continues must be 0 or 1".to_owned()
        })?;
        for back in &of.back {
            whole_sectors(u64::from(*back))?;
        }
        ensure(by.count.iter().all(|count| (1..=IOS_MAX).contains(count)), || {
            format!("the count of a transition is outside 1 to {IOS_MAX}")
        })?;
        let of_phase = |phase: &u32| by.phase.contains(phase);
        ensure(self.periods.phase.iter().all(of_phase), || {
            "the phase of a period has no transitions".to_owned()
        })?;
        let moves = |state: &u32| self.operation(of.stream[*state as usize] as usize) != b'f';
        ensure(by.after.iter().any(moves), || "the model has no I/Os".to_owned())
    }

    fn check_places(&self) -> Check {
        let places = &self.places;
        for n in 0..places.stream.len() {
            let (stream, count, uses) =
                (places.stream[n] as usize, places.count[n], places.uses[n]);
            ensure(stream < self.streams.lengths.len(), || {
                format!("the table places names stream {stream}, which does not exist")
            })?;
            let times = [places.begin[n], places.within[n], places.life[n]];
            ensure(times.iter().all(|time| *time <= PASS), || {
                format!("group {n} of places has a time out of range")
            })?;
            ensure(SHAPES.contains(&places.shape[n]), || {
                format!("group {n} of places has the shape {}, out of range", places.shape[n])
            })?;
            ensure(count > 0 && uses >= count && uses <= IOS_MAX, || {
                format!("{count} places with {uses} uses")
            })?;
            for bytes in [places.run_bytes[n], places.offset[n], places.stride[n]] {
                whole_sectors(bytes)?;
            }
            let length = u64::from(self.streams.lengths[stream]);
            let last = (count - 1).checked_mul(places.stride[n]);
            let end = last.and_then(|last| last.checked_add(places.offset[n]));
            let end = end.and_then(|last| last.checked_add(length));
            ensure(end.is_some_and(|end| end <= self.range_bytes), || {
                format!("group {n} of places ends beyond the range")
            })?;
        }
        let mut with_states = self.states.stream.iter().map(|stream| *stream as usize);
        let lost = with_states.find(|stream| {
            self.operation(*stream) != b'f' && !places.stream.contains(&(*stream as u32))
        });
        ensure(lost.is_none(), || format!("stream {} has no places", lost.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests;
