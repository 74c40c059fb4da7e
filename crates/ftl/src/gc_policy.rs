//! Victim selection policies for garbage collection.
//!
//! A policy is a pure function of the unit table and has no state to save. The policy scans the
//! table. A drive has a few thousand reclaim units and selects a victim once in thousands of
//! writes, so a scan is cheaper than keeping buckets sorted on every write.

use writecliff_base::{Prng, ReclaimUnitId};

use crate::table::{Candidates, UnitState};

/// Maximum number of rejected draws before a scan, reached only if almost no unit is closed.
const TRIES: u32 = 64;

/// Victim selection policies, as named in device files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GcPolicy {
    /// Unit with the fewest valid slots.
    Greedy,
    /// Unit that was closed longest ago (Menon, "A performance comparison of RAID-5 and
    /// log-structured arrays", HPDC 1995; the cyclic log of Desnoyers, SYSTOR 2012). It may be
    /// completely valid because a cyclic log rotates through all units.
    Fifo,
    /// Unit with the fewest valid slots among `d` randomly sampled units; `d` = 1 is random GC.
    #[allow(missing_docs, reason = "the variant defines it")]
    DChoices { d: u32 },
    /// Unit that yields the most space per copied slot, weighted by age.
    CostBenefit,
    /// Unit with the fewest valid slots among the `window` units that were closed longest ago.
    #[allow(missing_docs, reason = "the variant defines it")]
    WindowedGreedy { window: u32 },
}

impl GcPolicy {
    /// Selects the next victim from `among`; `None` if no closed unit of it would free a slot.
    pub(crate) fn choose(
        self,
        among: &Candidates<'_>,
        now: u64,
        random: &mut Prng,
    ) -> Option<ReclaimUnitId> {
        let victim = match self {
            Self::Greedy => greedy(among),
            Self::Fifo => among.iter().min_by_key(|&unit| among.age_order(unit)),
            Self::DChoices { d } => d_choices(among, d, random),
            Self::CostBenefit => cost_benefit(among, now),
            Self::WindowedGreedy { window } => windowed_greedy(among, window),
        }?;
        debug_assert!(among.contains(victim), "a victim of another group");
        Some(victim)
    }
}

/// Selects the closed unit with the fewest valid slots, and of several the one closed first, so
/// that equally empty units take turns and wear evenly.
///
/// Greedy is optimal for uniform traffic (Hu et al., "Write amplification analysis in flash-based
/// solid state drives", SYSTOR 2009). A completely valid unit is never selected because relocating
/// it yields no space.
fn greedy(among: &Candidates<'_>) -> Option<ReclaimUnitId> {
    let table = among.table;
    let mut best = (table.unit_size, 0);
    let mut victim = None;
    let pool = among.units.start as usize..among.units.end as usize;
    let units = table.valid[pool.clone()].iter().zip(&table.state[pool.clone()]);
    for (index, (&valid, &state)) in pool.zip(units) {
        if valid > best.0 || state != UnitState::Closed || valid == table.unit_size {
            continue;
        }
        if !among.holds(table.owner[index]) {
            continue;
        }
        let key = (valid, table.closed_at[index]);
        if victim.is_none() || key < best {
            (best, victim) = (key, Some(ReclaimUnitId(index as u32)));
        }
    }
    victim
}

/// Samples `d` closed units with replacement and selects the unit with the fewest valid slots (Van
/// Houdt, "A mean field model for a class of garbage collection algorithms in flash-based solid
/// state drives", SIGMETRICS 2013).
fn d_choices(among: &Candidates<'_>, d: u32, random: &mut Prng) -> Option<ReclaimUnitId> {
    debug_assert!(d > 0, "a choice among no units");
    let mut best: Option<ReclaimUnitId> = None;
    for _ in 0..d {
        let drawn = draw(among, random)?;
        if best.is_none_or(|b| among.table.valid[drawn.index()] < among.table.valid[b.index()]) {
            best = Some(drawn);
        }
    }
    best
}

fn draw(among: &Candidates<'_>, random: &mut Prng) -> Option<ReclaimUnitId> {
    debug_assert!(!among.units.is_empty(), "a group without units");
    for _ in 0..TRIES {
        let nth = random.below(among.units.len() as u64) as u32;
        let unit = ReclaimUnitId(among.units.start + nth);
        if among.contains(unit) {
            return Some(unit);
        }
    }
    let closed: Vec<ReclaimUnitId> = among.iter().collect();
    (!closed.is_empty()).then(|| closed[random.below(closed.len() as u64) as usize])
}

/// Selects the unit with the greatest `age × (1 − u) / u`, where `u` is the unit's valid fraction
/// (Rosenblum and Ousterhout's cleaner, ACM TOCS 10(1), 1992, without the reading cost, as in
/// Kawaguchi et al., USENIX 1995). Age is measured in host writes since the unit was closed.
fn cost_benefit(among: &Candidates<'_>, now: u64) -> Option<ReclaimUnitId> {
    let table = among.table;
    let mut best: Option<(f64, ReclaimUnitId)> = None;
    for unit in among.iter() {
        let valid = f64::from(table.valid[unit.index()]);
        let invalid = f64::from(table.unit_size) - valid;
        let age = (now - table.closed_at[unit.index()]) as f64 + 1.0;
        // An empty unit costs nothing, so its score is infinite. A full unit yields no space.
        let score = if invalid == 0.0 { continue } else { age * invalid / valid };
        if best.is_none_or(|(highest, _)| score > highest) {
            best = Some((score, unit));
        }
    }
    best.map(|(_, unit)| unit)
}

/// Selects the unit with the fewest valid slots among the `window` units that were closed longest
/// ago (Hu et al., "Write amplification analysis in flash-based solid state drives", SYSTOR 2009).
///
/// A window of one unit is equivalent to FIFO. A window of all closed units is equivalent to
/// greedy, except that a completely valid unit is relocated if no other unit is left.
fn windowed_greedy(among: &Candidates<'_>, window: u32) -> Option<ReclaimUnitId> {
    let mut units: Vec<ReclaimUnitId> = among.iter().collect();
    if units.len() > window as usize {
        units.select_nth_unstable_by_key(window as usize, |&unit| among.age_order(unit));
        units.truncate(window as usize);
    }
    let key = |&unit: &ReclaimUnitId| (among.table.valid[unit.index()], among.age_order(unit));
    units.into_iter().min_by_key(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UnitTable;

    fn all(table: &UnitTable) -> Candidates<'_> {
        Candidates { table, units: 0..5, stream: None }
    }

    /// Returns five units of 8 slots: unit 0 is open; units 1 to 4 were closed at times 40, 10, 30,
    /// 20 with 6, 7, 2, 4 valid slots.
    fn table() -> UnitTable {
        let mut table = UnitTable::new(5, 8);
        table.state = vec![UnitState::Closed; 5];
        table.state[0] = UnitState::Open;
        table.valid = vec![0, 6, 7, 2, 4];
        table.closed_at = vec![0, 40, 10, 30, 20];
        table
    }

    #[test]
    fn each_policy_chooses_its_victim() {
        let (table, mut random) = (table(), Prng::new(1));
        let rows = [
            (GcPolicy::Greedy, 3),
            (GcPolicy::Fifo, 2),
            (GcPolicy::DChoices { d: 64 }, 3),
            // Benefit divided by cost at time 50: u1 10*.25/.75, u2 40*.125/.875, u3 20*.75/.25, u4
            // 30*.5/.5
            (GcPolicy::CostBenefit, 3),
            (GcPolicy::WindowedGreedy { window: 1 }, 2),
            (GcPolicy::WindowedGreedy { window: 2 }, 4),
            (GcPolicy::WindowedGreedy { window: 64 }, 3),
        ];
        for (policy, victim) in rows {
            let chosen = policy.choose(&all(&table), 50, &mut random);
            assert_eq!(chosen, Some(ReclaimUnitId(victim)), "{policy:?}");
        }
        // At time 1000, unit 4 is almost as old as unit 3 but costs more, so unit 3 is still
        // selected.
        let mut aged = table.clone();
        aged.closed_at[3] = 995;
        let chosen = GcPolicy::CostBenefit.choose(&all(&aged), 1000, &mut random);
        assert_eq!(chosen, Some(ReclaimUnitId(4)));
    }

    #[test]
    fn open_units_are_never_chosen_and_no_closed_units_give_no_victim() {
        let mut table = table();
        table.state.fill(UnitState::Open);
        let mut random = Prng::new(1);
        let policies =
            [GcPolicy::Greedy, GcPolicy::Fifo, GcPolicy::DChoices { d: 2 }, GcPolicy::CostBenefit];
        for policy in policies {
            assert_eq!(policy.choose(&all(&table), 50, &mut random), None);
        }
    }

    #[test]
    fn random_gc_reaches_every_closed_unit() {
        let (table, mut random) = (table(), Prng::new(3));
        let mut seen = [0; 5];
        for _ in 0..4000 {
            let victim = GcPolicy::DChoices { d: 1 }.choose(&all(&table), 0, &mut random).unwrap();
            seen[victim.index()] += 1;
        }
        assert_eq!(seen[0], 0);
        assert!(seen[1..].iter().all(|&n| (850..1150).contains(&n)), "{seen:?}");
    }
}
