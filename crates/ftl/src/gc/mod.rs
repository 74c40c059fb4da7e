//! Victim selection policies for garbage collection.
//!
//! A policy is a pure function of the unit table and has no state to save. The policy scans the
//! table. A drive has a few thousand reclaim units and selects a victim once in thousands of
//! writes, so a scan is cheaper than keeping buckets sorted on every write.

mod cost_benefit;
mod d_choices;
mod fifo;
mod greedy;
mod windowed_greedy;

use writecliff_base::{Prng, ReclaimUnitId};

use crate::UnitTable;
use crate::table::Among;

/// Victim selection policies, as named in device files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GcPolicy {
    /// Unit with the fewest valid slots.
    Greedy,
    /// Unit that was closed longest ago.
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
    /// Selects the next victim from `among`; returns `None` if no unit in the set is closed and
    /// would free a slot.
    pub fn choose(
        self,
        table: &UnitTable,
        among: &Among,
        now: u64,
        random: &mut Prng,
    ) -> Option<ReclaimUnitId> {
        let victim = match self {
            Self::Greedy => greedy::choose(table, among),
            Self::Fifo => fifo::choose(table, among),
            Self::DChoices { d } => d_choices::choose(table, among, d, random),
            Self::CostBenefit => cost_benefit::choose(table, among, now),
            Self::WindowedGreedy { window } => windowed_greedy::choose(table, among, window),
        }?;
        debug_assert!(table.is_candidate(victim, among));
        debug_assert!(among.units.contains(&victim.0), "a victim of another group");
        Some(victim)
    }

    /// Returns the policy in device file notation, with its parameter.
    pub fn name(self) -> String {
        match self {
            Self::Greedy => "greedy".to_owned(),
            Self::Fifo => "fifo".to_owned(),
            Self::DChoices { d: 1 } => "random".to_owned(),
            Self::DChoices { d } => format!("d-choices({d})"),
            Self::CostBenefit => "cost-benefit".to_owned(),
            Self::WindowedGreedy { window } => format!("windowed-greedy({window})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::UnitState;

    const ALL: Among = Among { units: 0..5, stream: None };

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
            let chosen = policy.choose(&table, &ALL, 50, &mut random);
            assert_eq!(chosen, Some(ReclaimUnitId(victim)), "{}", policy.name());
        }
        // At time 1000, unit 4 is almost as old as unit 3 but costs more, so unit 3 is still
        // selected.
        let mut aged = table.clone();
        aged.closed_at[3] = 995;
        let chosen = GcPolicy::CostBenefit.choose(&aged, &ALL, 1000, &mut random);
        assert_eq!(chosen, Some(ReclaimUnitId(4)));
    }

    #[test]
    fn open_units_are_never_chosen_and_no_closed_units_give_no_victim() {
        let mut table = table();
        table.state.fill(UnitState::Open);
        let mut random = Prng::new(1);
        let all =
            [GcPolicy::Greedy, GcPolicy::Fifo, GcPolicy::DChoices { d: 2 }, GcPolicy::CostBenefit];
        for policy in all {
            assert_eq!(policy.choose(&table, &ALL, 50, &mut random), None);
        }
    }

    #[test]
    fn random_gc_reaches_every_closed_unit() {
        let (table, mut random) = (table(), Prng::new(3));
        let mut seen = [0; 5];
        for _ in 0..4000 {
            let victim = GcPolicy::DChoices { d: 1 }.choose(&table, &ALL, 0, &mut random).unwrap();
            seen[victim.index()] += 1;
        }
        assert_eq!(seen[0], 0);
        assert!(seen[1..].iter().all(|&n| (850..1150).contains(&n)), "{seen:?}");
    }
}
