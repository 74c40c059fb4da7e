//! Self-tuned policy: divides spare space between streams according to its marginal benefit.
//!
//! Let `r` be the stream's fraction of the host's writes, `S` its spare (invalid) slots and `A` its
//! write amplification. Copying is minimal if `r dA/dS` is equal for all streams (Desnoyers,
//! "Analytic modeling of SSD write performance", SYSTOR 2012, divides the space of hot and cold
//! data in this way). A drive can measure `r`, and `A = 1 / (1 − v)` from the valid fraction `v` of
//! the stream's victims. The division also requires the slope `dA/dS`. For a stream that overwrites
//! `U` of its slots at random, `v = exp(−(U + S) / (U A))`. For any actual stream, exactly one `U`
//! yields the measured `v`; with this `U` and `a = U / (U + S) = −(1 − v) / ln v`,
//!
//! ```text
//! −r dA/dS = r g(v) / S        g(v) = v / (1 − v) · (1 − a) / (a − v)
//! ```
//!
//! so `S` is proportional to `r g(v)` at the optimum, and stream fractions, sizes and rates need
//! not be configured. A sequential stream has `v = 0` and gets no spare space beyond the unit that
//! it is overwriting. A stream that stops has `r = 0` and returns all its spare space.

use serde::{Deserialize, Serialize};
use writecliff_base::{Prng, ReclaimUnitId, StreamId, saved};

use crate::UnitTable;
use crate::gc_policy::GcPolicy;
use crate::table::Candidates;

/// Number of a stream's victims over which the valid fraction is averaged.
const VICTIMS: f64 = 64.0;
/// Averaging horizon of rates in host units, and of budgets in victims, as shares of the drive's
/// units. Both are slower than the turnover of units; else the control loop would oscillate.
const RATE_HORIZON: f64 = 0.25;
const BUDGET_HORIZON: f64 = 0.125;
/// Valid fraction above which the slope cannot be resolved.
const VALID_MAX: f64 = 0.999;
/// A victim is expensive if it yields less than 1/32 of the space of the best victim. Two of them
/// are never selected in a row, so writes do not stall while a stream returns spare space.
const EXPENSIVE: u32 = 32;

/// Measurements of one stream.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct StreamSpare {
    /// Fraction of the host's writes.
    pub rate: f64,
    /// Mean valid fraction of the stream's victims; negative before the first victim.
    pub valid: f64,
    /// Budget: fraction of the spare space that the stream may retain.
    pub budget: f64,
}

#[derive(Clone, Debug)]
pub(crate) struct SelfTuned {
    pub streams: Vec<StreamSpare>,
    /// `true` if the last victim was expensive.
    after_expensive: bool,
    rate_step: f64,
    budget_step: f64,
}

/// Result of a scan of the closed units.
struct Census {
    /// Number of invalid slots in each stream.
    spare: Vec<u64>,
    /// Highest number of invalid slots in any unit.
    best_gain: u32,
    /// First-closed unit without valid data.
    dead: Option<ReclaimUnitId>,
}

saved! { SelfTuned { [streams], after_expensive } check is_possible }

impl SelfTuned {
    pub(crate) fn new(streams: u16, units: u32) -> Self {
        let unknown = StreamSpare { rate: 0.0, valid: -1.0, budget: 0.0 };
        let step = |share: f64| 1.0 / (share * f64::from(units)).max(8.0);
        Self {
            streams: vec![unknown; streams as usize],
            after_expensive: false,
            rate_step: step(RATE_HORIZON),
            budget_step: step(BUDGET_HORIZON),
        }
    }

    pub(crate) fn host_opened(&mut self, stream: StreamId) {
        let step = self.rate_step;
        for (index, s) in self.streams.iter_mut().enumerate() {
            s.rate += step * (f64::from(u8::from(index == stream.index())) - s.rate);
            debug_assert!((-1e-9..=1.0 + 1e-9).contains(&s.rate), "a rate is a share");
        }
    }

    /// Selects the next victim; returns `None` if no closed unit would free a slot.
    pub(crate) fn choose(
        &mut self,
        gc: GcPolicy,
        among: &Candidates<'_>,
        now: u64,
        random: &mut Prng,
    ) -> Option<ReclaimUnitId> {
        let table = among.table;
        assert_eq!(among.units, 0..table.len(), "it divides the space of one group");
        let census = self.census(table);
        self.follow_targets();
        let victim = match census.dead {
            // A unit without valid data costs nothing to collect, and no stream can use its space.
            Some(dead) => dead,
            None => self.choose_alive(gc, among, now, random, &census)?,
        };
        debug_assert!(among.contains(victim), "not a closed unit");
        self.note(table, victim);
        Some(victim)
    }

    fn choose_alive(
        &mut self,
        gc: GcPolicy,
        all: &Candidates<'_>,
        now: u64,
        random: &mut Prng,
        census: &Census,
    ) -> Option<ReclaimUnitId> {
        let table = all.table;
        let stream = self.most_over_budget(census, table.unit_size)?;
        let of_stream = Candidates { stream: Some(stream), ..all.clone() };
        let victim = gc.choose(&of_stream, now, random)?;
        let gain = table.unit_size - table.valid[victim.index()];
        let expensive = gain.saturating_mul(EXPENSIVE) < census.best_gain;
        if expensive && self.after_expensive {
            self.after_expensive = false;
            return gc.choose(all, now, random);
        }
        self.after_expensive = expensive;
        Some(victim)
    }

    fn census(&self, table: &UnitTable) -> Census {
        let mut census = Census { spare: vec![0; self.streams.len()], best_gain: 0, dead: None };
        for unit in table.closed() {
            let index = unit.index();
            let gain = table.unit_size - table.valid[index];
            census.spare[table.owner[index].stream.index()] += u64::from(gain);
            census.best_gain = census.best_gain.max(gain);
            let closed_at = |unit: ReclaimUnitId| table.closed_at[unit.index()];
            let is_later = census.dead.is_some_and(|dead| closed_at(dead) <= closed_at(unit));
            if table.valid[index] == 0 && !is_later {
                census.dead = Some(unit);
            }
        }
        census
    }

    /// Returns the stream whose spare space exceeds its budget the most, among the streams with
    /// spare space. Every stream may retain one unit for the data that it is overwriting.
    fn most_over_budget(&self, census: &Census, unit_size: u32) -> Option<StreamId> {
        let holding = census.spare.iter().filter(|&&s| s > 0).count() as f64;
        let total = census.spare.iter().sum::<u64>() as f64;
        let floor = f64::from(unit_size).min(total / (2.0 * holding));
        let to_split = total - floor * holding;
        let mut best: Option<(f64, StreamId)> = None;
        for (index, (s, &spare)) in self.streams.iter().zip(&census.spare).enumerate() {
            let excess = spare as f64 - floor - s.budget * to_split;
            if spare > 0 && best.is_none_or(|(most, _)| excess > most) {
                best = Some((excess, StreamId(index as u16)));
            }
        }
        best.map(|(_, stream)| stream)
    }

    /// Moves budgets towards fractions proportional to `r g(v)`.
    fn follow_targets(&mut self) {
        let weight = |s: &StreamSpare| s.rate * slope(s.valid);
        let total: f64 = self.streams.iter().map(weight).sum();
        if total <= 0.0 {
            return;
        }
        let step = self.budget_step;
        for s in &mut self.streams {
            s.budget += step * (weight(s) / total - s.budget);
            debug_assert!((-1e-9..=1.0 + 1e-9).contains(&s.budget), "a budget is a share");
        }
    }

    fn note(&mut self, table: &UnitTable, victim: ReclaimUnitId) {
        let valid = f64::from(table.valid[victim.index()]) / f64::from(table.unit_size);
        debug_assert!(valid <= 1.0, "more is valid than the unit holds");
        let s = &mut self.streams[table.owner[victim.index()].stream.index()];
        s.valid = if s.valid < 0.0 { valid } else { s.valid + (valid - s.valid) / VICTIMS };
    }

    fn is_possible(&mut self) -> bool {
        self.streams.iter().all(|s| {
            (0.0..=1.0).contains(&s.rate)
                && (-1.0..=1.0).contains(&s.valid)
                && (0.0..=1.0).contains(&s.budget)
        })
    }

    /// Returns the state as words for digests.
    pub(crate) fn to_words(&self) -> Vec<u64> {
        let fields = self.streams.iter().flat_map(|s| [s.rate, s.valid, s.budget]);
        fields.map(f64::to_bits).chain([u64::from(self.after_expensive)]).collect()
    }
}

/// Returns `g(v)` of the module documentation; 0 for a stream without data in victims.
fn slope(valid: f64) -> f64 {
    if valid <= 0.0 {
        return 0.0;
    }
    let v = valid.min(VALID_MAX);
    let a = -(1.0 - v) / v.ln();
    v / (1.0 - v) * (1.0 - a) / (a - v)
}

#[cfg(test)]
mod tests {
    use super::*;
    use writecliff_base::fields::{Impossible, from_bytes, to_bytes};

    use crate::table::{Owner, UnitState};
    use crate::theory;

    /// Returns closed units of 100 slots with the given streams and valid slots.
    fn table(units: &[(u16, u32)]) -> UnitTable {
        let mut table = UnitTable::new(units.len() as u32, 100);
        for (index, &(stream, valid)) in units.iter().enumerate() {
            table.state[index] = UnitState::Closed;
            table.valid[index] = valid;
            table.owner[index] = Owner { stream: StreamId(stream), relocated: false };
            table.closed_at[index] = index as u64;
        }
        table
    }

    fn tuned(streams: &[(f64, f64, f64)]) -> SelfTuned {
        let mut tuned = SelfTuned::new(streams.len() as u16, 64);
        for (s, &(rate, valid, budget)) in tuned.streams.iter_mut().zip(streams) {
            *s = StreamSpare { rate, valid, budget };
        }
        tuned
    }

    fn greedy(tuned: &mut SelfTuned, table: &UnitTable) -> Option<u32> {
        let all = Candidates { table, units: 0..table.len(), stream: None };
        tuned.choose(GcPolicy::Greedy, &all, 1000, &mut Prng::new(1)).map(|unit| unit.0)
    }

    /// Tests that `g(v) / S` equals the slope of the closed form at every point.
    #[test]
    fn the_slope_is_that_of_theory() {
        for op in [0.03, 0.07, 0.3, 1.0, 3.0] {
            let waf = |spare: f64| theory::fifo(1.0 / (1.0 + spare));
            let step = 1e-5;
            let numeric = (waf(op - step) - waf(op + step)) / (2.0 * step);
            let formula = slope(1.0 - 1.0 / waf(op)) / op;
            assert!((formula / numeric - 1.0).abs() < 1e-3, "{op}: {formula} v {numeric}");
        }
        assert!(slope(-1.0).abs() < 1e-12 && slope(0.0).abs() < 1e-12);
        assert!(slope(1.0).is_finite());
    }

    #[test]
    fn the_stream_above_its_budget_gives_up_a_unit() {
        // Both streams have 300 spare slots, and the victim with the fewest valid slots is in
        // stream 0.
        let units = [
            (0, 30),
            (0, 30),
            (0, 40),
            (0, 100),
            (1, 70),
            (1, 70),
            (1, 70),
            (1, 70),
            (1, 70),
            (1, 70),
            (1, 70),
            (1, 70),
            (1, 70),
            (1, 70),
        ];
        let table = table(&units);
        let mut for_the_hot = tuned(&[(0.9, 0.5, 0.9), (0.1, 0.8, 0.1)]);
        assert_eq!(greedy(&mut for_the_hot, &table), Some(4));
        let mut for_the_cold = tuned(&[(0.1, 0.5, 0.1), (0.9, 0.8, 0.9)]);
        assert_eq!(greedy(&mut for_the_cold, &table), Some(0));
    }

    #[test]
    fn an_empty_unit_goes_first_and_a_full_drive_has_no_victim() {
        let mut spare = tuned(&[(0.5, 0.5, 1.0), (0.5, 0.5, 0.0)]);
        assert_eq!(greedy(&mut spare, &table(&[(1, 50), (0, 0), (0, 0)])), Some(1));
        assert_eq!(greedy(&mut spare, &table(&[(1, 100), (0, 100)])), None);
    }

    #[test]
    fn expensive_victims_are_never_chosen_in_a_row() {
        // Stream 1 has stopped: its units, which are one slot short of full, exceed its budget of
        // 0.
        let mut units = vec![(0, 20), (0, 20)];
        units.extend([(1, 98); 900]);
        let table = table(&units);
        let mut stopped = tuned(&[(1.0, 0.2, 1.0), (0.0, 0.9, 0.0)]);
        let streams: Vec<bool> =
            (0..6).map(|_| greedy(&mut stopped, &table).unwrap() >= 2).collect();
        assert_eq!(streams, [true, false, true, false, true, false]);
    }

    #[test]
    fn budgets_follow_measurements() {
        let mut tuned = SelfTuned::new(3, 64);
        for n in 0..2000 {
            tuned.host_opened(StreamId(n % 3));
        }
        assert!(tuned.streams.iter().all(|s| (s.rate - 1.0 / 3.0).abs() < 0.05));
        // Stream 0 is random, stream 1 is sequential (its victims are empty), and stream 2 has
        // never had a victim.
        tuned.streams[0].valid = 0.6;
        tuned.streams[1].valid = 0.0;
        (0..200).for_each(|_| tuned.follow_targets());
        let budgets: Vec<f64> = tuned.streams.iter().map(|s| s.budget).collect();
        assert!(budgets[0] > 0.99 && budgets[1] < 0.01 && budgets[2] < 0.01, "{budgets:?}");
        assert!(budgets.iter().sum::<f64>() <= 1.0 + 1e-9);
    }

    #[test]
    fn shares_above_one_are_refused() {
        let before = tuned(&[(0.5, -1.0, 0.5), (0.5, 0.25, 1.0)]);
        let mut after = SelfTuned::new(2, 64);
        from_bytes(&to_bytes(&before), &mut after).unwrap();
        assert_eq!(after.to_words(), before.to_words());
        for bad in [(1.5, 0.0, 0.0), (0.0, 1.5, 0.0), (0.0, 0.0, -0.5), (0.0, f64::NAN, 0.0)] {
            let bytes = to_bytes(&tuned(&[(0.5, 0.5, 0.5), bad]));
            assert_eq!(from_bytes(&bytes, &mut after), Err(Impossible), "{bad:?}");
        }
    }
}
