//! Order and times of the I/Os, from a random walk through the states of a model.

use std::collections::BTreeMap;

use writecliff_base::Prng;

use crate::{GAP_VALUES, IoModel};

/// Maximum factor by which idle gaps are lengthened.
const STRETCH_MAX: f64 = 4.0;
/// Maximum factor by which idle gaps are shortened.
const SHRINK_MAX: f64 = 4.0;
const STRETCHES: usize = 4;

/// Remaining successors of a state.
#[derive(Clone, Debug, Default)]
struct Bag {
    to: Vec<(u32, u64)>,
    left: u64,
}

#[derive(Clone, Debug, Default)]
struct Phase {
    bags: BTreeMap<u32, Bag>,
    left: u64,
}

impl Phase {
    fn add(&mut self, from: u32, to: u32, count: u64) {
        let bag = self.bags.entry(from).or_default();
        bag.to.push((to, count));
        bag.left += count;
        self.left += count;
    }

    /// Returns the state after `from`: one of its remaining successors, or a remaining successor of
    /// any state.
    fn take(&mut self, from: u32, random: &mut Prng) -> u32 {
        let has_bag = self.bags.get(&from).is_some_and(|bag| bag.left > 0);
        let from = if has_bag { from } else { self.jump(random) };
        debug_assert!(self.left > 0, "all transitions of the phase are taken");
        self.left -= 1;
        let bag = self.bags.get_mut(&from).expect("a state with successors was chosen");
        let mut at = random.below(bag.left);
        bag.left -= 1;
        for (to, count) in &mut bag.to {
            if at < *count {
                *count -= 1;
                return *to;
            }
            at -= *count;
        }
        unreachable!("the counts of a bag are as many as are left");
    }

    fn jump(&self, random: &mut Prng) -> u32 {
        let mut at = random.below(self.left);
        for (state, bag) in &self.bags {
            if at < bag.left {
                return *state;
            }
            at -= bag.left;
        }
        unreachable!("the bags of a phase have as many as are left");
    }
}

/// Values of a gap class, each selected once in eight draws.
#[derive(Clone, Debug)]
struct Values {
    of: [u64; GAP_VALUES],
    left: usize,
}

impl Values {
    fn draw(&mut self, random: &mut Prng) -> u64 {
        if self.left == 0 {
            self.left = GAP_VALUES;
        }
        let at = random.below(self.left as u64) as usize;
        self.left -= 1;
        self.of.swap(at, self.left);
        self.of[self.left]
    }
}

pub(super) struct Arrivals<'a> {
    model: &'a IoModel,
    random: Prng,
    full: BTreeMap<u32, Phase>,
    phases: BTreeMap<u32, Phase>,
    gaps: Vec<Values>,
    state: u32,
    time_ns: u64,
    /// Planned end of the periods so far.
    end_ns: u64,
}

impl<'a> Arrivals<'a> {
    pub(super) fn new(model: &'a IoModel, random: Prng) -> Self {
        let by = &model.transitions;
        let mut full: BTreeMap<u32, Phase> = BTreeMap::new();
        for n in 0..by.before.len() {
            full.entry(by.phase[n]).or_default().add(by.before[n], by.after[n], by.count[n]);
        }
        let values = |of: &[u64]| Values { of: of.try_into().expect("eight values"), left: 0 };
        Self {
            model,
            random,
            phases: full.clone(),
            full,
            gaps: model.gaps.values_ns.chunks_exact(GAP_VALUES).map(values).collect(),
            state: u32::MAX,
            time_ns: 0,
            end_ns: 0,
        }
    }

    /// Returns the times and states of the I/Os of a period. The first I/O of a pass is at time 0.
    pub(super) fn period(&mut self, number: usize) -> Vec<(u64, usize)> {
        let periods = &self.model.periods;
        let key = periods.phase[number];
        let mut drawn = Vec::with_capacity(periods.ios[number] as usize);
        for _ in 0..periods.ios[number] {
            let phase = self.phases.get_mut(&key).expect("the model was checked");
            if phase.left == 0 {
                phase.clone_from(&self.full[&key]);
            }
            let begins = self.state == u32::MAX;
            self.state = phase.take(self.state, &mut self.random);
            let class = self.model.states.gap[self.state as usize] as usize;
            let gap = self.gaps[class].draw(&mut self.random);
            drawn.push((if begins { 0 } else { gap }, self.state as usize));
        }
        self.end_ns += periods.length_ns[number];
        let length_ns = self.end_ns.saturating_sub(self.time_ns);
        fit(&mut drawn, length_ns, periods.longest_ns[number], self.model.gaps.idle_ns);
        for (time_ns, _) in &mut drawn {
            self.time_ns += *time_ns;
            *time_ns = self.time_ns;
        }
        drawn
    }
}

/// Adjusts the gaps of a period to a total length of `length_ns`. The longest gap is as long as in
/// the trace; idle gaps are lengthened up to that length, or shortened. If much time is still
/// missing, the longest gap is extended; if the total is still too long, bursts are also shortened.
/// Later periods compensate for the remaining difference.
fn fit(drawn: &mut [(u64, usize)], length_ns: u64, longest_ns: u64, idle_ns: u64) {
    let Some(longest) = (0..drawn.len()).max_by_key(|n| drawn[*n].0) else { return };
    for gap in &mut *drawn {
        gap.0 = gap.0.min(longest_ns);
    }
    drawn[longest].0 = longest_ns;
    let total = |drawn: &[(u64, usize)]| drawn.iter().map(|gap| gap.0).sum::<u64>();
    let is_idle = |n: usize, gap: u64| n != longest && gap >= idle_ns;
    // Gaps that reach the maximum leave their excess to the other gaps.
    for _ in 0..STRETCHES {
        let idle: u64 =
            drawn.iter().enumerate().filter(|gap| is_idle(gap.0, gap.1.0)).map(|gap| gap.1.0).sum();
        let left = (length_ns + idle).saturating_sub(total(drawn));
        if idle == 0 || left == idle {
            break;
        }
        let share = (left as f64 / idle as f64).clamp(1.0 / SHRINK_MAX, STRETCH_MAX);
        for (_, gap) in drawn.iter_mut().enumerate().filter(|gap| is_idle(gap.0, gap.1.0)) {
            gap.0 = ((gap.0 as f64 * share) as u64).min(longest_ns);
        }
    }
    let missing = length_ns.saturating_sub(total(drawn));
    if missing >= idle_ns {
        drawn[longest].0 += missing;
    }
    // Gaps within bursts are shortened last, because all periods share the classes of these gaps.
    let others = total(drawn) - drawn[longest].0;
    let room = length_ns.saturating_sub(drawn[longest].0);
    if others > room {
        let share = (room as f64 / others as f64).max(1.0 / SHRINK_MAX);
        for (_, gap) in drawn.iter_mut().enumerate().filter(|gap| gap.0 != longest) {
            gap.0 = (gap.0 as f64 * share) as u64;
        }
    }
}
