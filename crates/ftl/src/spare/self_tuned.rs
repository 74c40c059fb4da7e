//! Self-tuned: spare space goes to the streams in proportion to what more of it would save there.
//!
//! With `r` the stream's share of the host's writes, `S` its spare (invalid) slots and `A` its write
//! amplification, copying is least where `r dA/dS` is the same for all streams (Desnoyers, "Analytic
//! modeling of SSD write performance", SYSTOR 2012, splits the space of hot and cold data so). A
//! drive measures `r`, and `A = 1 / (1 − v)` from the valid share `v` of the stream's victims. What
//! it needs in addition is the slope. Of a stream that overwrites `U` of its slots at random,
//! `v = exp(−(U + S) / (U A))`. Whatever the stream really does, there is one `U` for which that
//! gives what was measured; taking it, with `a = U / (U + S) = −(1 − v) / ln v`,
//!
//! ```text
//! −r dA/dS = r g(v) / S        g(v) = v / (1 − v) · (1 − a) / (a − v)
//! ```
//!
//! so that at the optimum `S` is proportional to `r g(v)`: no shares, sizes or rates have to be
//! told. A sequential stream has `v = 0` and gets nothing beyond the unit that it is overwriting; a
//! stream that stops has `r = 0` and gives all back.

use writecliff_base::{Prng, ReclaimUnitId, StreamId};

use crate::gc::GcPolicy;
use crate::table::{Among, UnitTable};

/// Victims of a stream over which the valid share is averaged.
const VICTIMS: f64 = 64.0;
/// Host units over which the rates are averaged, and victims over which budgets follow their
/// targets, as shares of the drive's units: slower than the units turn over, or the loop swings.
const RATE_HORIZON: f64 = 0.25;
const BUDGET_HORIZON: f64 = 0.125;
/// Valid share above which the slope is not resolved any more.
const VALID_MAX: f64 = 0.999;
/// A victim that gains this much less than the best one on the drive is dear: two of them never
/// follow each other, so that writes do not stall while a stream gives its spare space back.
const DEAR: u32 = 32;

/// What the drive has learnt of one stream.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StreamSpare {
    /// Share of the host's writes.
    pub rate: f64,
    /// Mean valid share of its victims; negative before the first one.
    pub valid: f64,
    /// Share of the spare space that it may keep.
    pub budget: f64,
}

#[derive(Clone, Debug)]
pub(crate) struct SelfTuned {
    streams: Vec<StreamSpare>,
    /// The last victim was a dear one.
    after_dear: bool,
    rate_step: f64,
    budget_step: f64,
}

/// What one look over the closed units shows.
struct Census {
    /// Invalid slots of each stream.
    spare: Vec<u64>,
    /// Most invalid slots in one unit.
    best_gain: u32,
    /// The unit without valid data that closed first.
    dead: Option<ReclaimUnitId>,
}

impl SelfTuned {
    pub(super) fn new(streams: u16, units: u32) -> Self {
        let unknown = StreamSpare { rate: 0.0, valid: -1.0, budget: 0.0 };
        let step = |share: f64| 1.0 / (share * f64::from(units)).max(8.0);
        Self {
            streams: vec![unknown; streams as usize],
            after_dear: false,
            rate_step: step(RATE_HORIZON),
            budget_step: step(BUDGET_HORIZON),
        }
    }

    pub(super) fn streams(&self) -> &[StreamSpare] {
        &self.streams
    }

    pub(super) fn host_opened(&mut self, stream: StreamId) {
        let step = self.rate_step;
        for (index, s) in self.streams.iter_mut().enumerate() {
            s.rate += step * (f64::from(u8::from(index == stream.index())) - s.rate);
        }
    }

    pub(super) fn choose(
        &mut self,
        gc: GcPolicy,
        table: &UnitTable,
        now: u64,
        random: &mut Prng,
    ) -> Option<ReclaimUnitId> {
        let census = self.census(table);
        self.follow_targets();
        let victim = match census.dead {
            // Costs nothing, and no stream can use it.
            Some(dead) => dead,
            None => self.choose_alive(gc, table, now, random, &census)?,
        };
        self.note(table, victim);
        Some(victim)
    }

    fn choose_alive(
        &mut self,
        gc: GcPolicy,
        table: &UnitTable,
        now: u64,
        random: &mut Prng,
        census: &Census,
    ) -> Option<ReclaimUnitId> {
        let stream = self.most_over_budget(census, table.slots_per_unit)?;
        let victim = gc.choose(table, Among::Stream(stream), now, random)?;
        let gain = table.slots_per_unit - table.valid[victim.index()];
        let dear = gain.saturating_mul(DEAR) < census.best_gain;
        if dear && self.after_dear {
            self.after_dear = false;
            return gc.choose(table, Among::All, now, random);
        }
        self.after_dear = dear;
        Some(victim)
    }

    fn census(&self, table: &UnitTable) -> Census {
        let mut census =
            Census { spare: vec![0; self.streams.len()], best_gain: 0, dead: None };
        for unit in table.closed() {
            let index = unit.index();
            let gain = table.slots_per_unit - table.valid[index];
            census.spare[table.owner[index].stream.index()] += u64::from(gain);
            census.best_gain = census.best_gain.max(gain);
            if table.valid[index] == 0 {
                let earlier = |d: ReclaimUnitId| table.closed_at[d.index()] <= table.closed_at[index];
                if !census.dead.is_some_and(earlier) {
                    census.dead = Some(unit);
                }
            }
        }
        census
    }

    /// The stream whose spare space is furthest above its budget, among those that have any. Every
    /// stream may keep one unit's worth, for the unit that it is overwriting.
    fn most_over_budget(&self, census: &Census, slots_per_unit: u32) -> Option<StreamId> {
        let holding = census.spare.iter().filter(|&&s| s > 0).count() as f64;
        let total = census.spare.iter().sum::<u64>() as f64;
        let floor = f64::from(slots_per_unit).min(total / (2.0 * holding));
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

    /// Budgets move towards shares in proportion to `r g(v)`.
    fn follow_targets(&mut self) {
        let weight = |s: &StreamSpare| s.rate * slope(s.valid);
        let total: f64 = self.streams.iter().map(weight).sum();
        if total <= 0.0 {
            return;
        }
        let step = self.budget_step;
        for s in &mut self.streams {
            s.budget += step * (weight(s) / total - s.budget);
        }
    }

    fn note(&mut self, table: &UnitTable, victim: ReclaimUnitId) {
        let valid =
            f64::from(table.valid[victim.index()]) / f64::from(table.slots_per_unit);
        let s = &mut self.streams[table.owner[victim.index()].stream.index()];
        s.valid = if s.valid < 0.0 { valid } else { s.valid + (valid - s.valid) / VICTIMS };
    }

    pub(super) fn to_words(&self) -> Vec<u64> {
        let fields = self.streams.iter().flat_map(|s| [s.rate, s.valid, s.budget]);
        fields.map(f64::to_bits).chain([u64::from(self.after_dear)]).collect()
    }

    pub(super) fn set_words(&mut self, words: &[u64]) -> bool {
        let Some((&flag, fields)) = words.split_last() else { return false };
        let share = |bits: u64| f64::from_bits(bits);
        let possible = fields.chunks_exact(3).all(|f| {
            let (rate, valid, budget) = (share(f[0]), share(f[1]), share(f[2]));
            (0.0..=1.0).contains(&rate)
                && (-1.0..=1.0).contains(&valid)
                && (0.0..=1.0).contains(&budget)
        });
        if flag > 1 || fields.len() != 3 * self.streams.len() || !possible {
            return false;
        }
        for (s, f) in self.streams.iter_mut().zip(fields.chunks_exact(3)) {
            *s = StreamSpare { rate: share(f[0]), valid: share(f[1]), budget: share(f[2]) };
        }
        self.after_dear = flag == 1;
        true
    }
}

/// `g(v)` of the module text; 0 for a stream that has had no victims or only dead ones.
fn slope(valid: f64) -> f64 {
    if valid <= 0.0 {
        return 0.0;
    }
    let v = valid.min(VALID_MAX);
    let a = -(1.0 - v) / v.ln();
    v / (1.0 - v) * (1.0 - a) / (a - v)
}
