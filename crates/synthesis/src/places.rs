//! Addresses of I/Os that do not continue a run.
//!
//! The address uses of a stream are sorted by their times within the pass. The uses of an address
//! lie within its lifetime, whose start is drawn at random from the group. The i-th run-starting
//! I/O of the stream takes the i-th use, so each address has its number of uses within its
//! lifetime.

use writecliff_base::{Permutation, Prng};

use crate::{IoModel, PASS};

/// Number of later uses that may be moved forward, so that no use continues a run by chance.
const AHEAD: usize = 64;

/// A use of an address, and the number of bytes in the run that starts there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub(super) offset: u64,
    pub(super) run_bytes: u64,
}

pub(super) struct Starts {
    /// Uses by stream, in order.
    uses: Vec<Vec<Use>>,
    next: Vec<usize>,
}

impl Starts {
    pub(super) fn new(model: &IoModel, random: &mut Prng) -> Self {
        let streams = model.streams.lengths.len();
        let mut timed: Vec<Vec<(u64, Use)>> = vec![Vec::new(); streams];
        for group in 0..model.places.stream.len() {
            let length = u64::from(model.streams.lengths[model.places.stream[group] as usize]);
            let to = &mut timed[model.places.stream[group] as usize];
            add(model, group, length, random, to);
        }
        let ordered = |mut of: Vec<(u64, Use)>| {
            of.sort_by_key(|entry| entry.0);
            of.into_iter().map(|entry| entry.1).collect()
        };
        Self { uses: timed.into_iter().map(ordered).collect(), next: vec![0; streams] }
    }

    /// Returns `true` if the next use of a stream starts a run; the stream must have uses left.
    pub(super) fn begins_run(&self, stream: usize, length: u64) -> bool {
        self.uses[stream].get(self.next[stream]).is_some_and(|usage| usage.run_bytes > length)
    }

    /// Returns the next use of a stream. If `continues` is `true` for the use's address, the use
    /// would continue a run. A later use that would not is then moved forward, if one exists.
    pub(super) fn next(&mut self, stream: usize, continues: impl Fn(u64) -> bool) -> Use {
        let (uses, next) = (&mut self.uses[stream], &mut self.next[stream]);
        debug_assert!(!uses.is_empty(), "the check rejects streams without places");
        let at = *next % uses.len();
        *next = at + 1;
        let end = (at + AHEAD).min(uses.len());
        if let Some(other) = (at..end).find(|n| !continues(uses[*n].offset)) {
            uses[at..=other].rotate_right(1);
        }
        uses[at]
    }
}

/// Adds the uses of a group, with their times.
fn add(model: &IoModel, group: usize, length: u64, random: &mut Prng, to: &mut Vec<(u64, Use)>) {
    let places = &model.places;
    let (count, uses, life) = (places.count[group], places.uses[group], places.life[group]);
    let order = Permutation::new(count);
    for place in 0..count {
        let begin = places.begin[group]
            + (u128::from(place) * u128::from(places.within[group]) / u128::from(count)) as u64
            + random.below(places.within[group] / count + 1);
        let begin = begin.min(PASS - life);
        let of_place = uses / count + u64::from(place < uses % count);
        let offset = places.offset[group] + order.apply(place) * places.stride[group];
        let usage = Use { offset, run_bytes: places.run_bytes[group].max(length) };
        // The first use and the last use lie at the ends of the lifetime.
        let shape = f64::from(places.shape[group]) / 100.0;
        to.extend(spread(of_place, life, shape, random).map(|within| (begin + within, usage)));
    }
}

/// Returns the times of the uses of an address, from 0 to `life`. The times between uses have a
/// Weibull distribution, scaled to the lifetime.
pub(super) fn spread(
    uses: u64,
    life: u64,
    shape: f64,
    random: &mut Prng,
) -> impl Iterator<Item = u64> {
    debug_assert!(shape > 0.0, "a Weibull distribution of the shape {shape}");
    let gaps = uses.saturating_sub(1) as usize;
    // `unit` is in [0, 1), so the argument of the logarithm is in (0, 1].
    let drawn: Vec<f64> =
        (0..gaps).map(|_| (-(1.0 - random.unit()).ln()).powf(1.0 / shape)).collect();
    let scale = life as f64 / drawn.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let mut at = 0.0;
    std::iter::once(0).chain(drawn.into_iter().map(move |gap| {
        at += gap * scale;
        (at as u64).min(life)
    }))
}
