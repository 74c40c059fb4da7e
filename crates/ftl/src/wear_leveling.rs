//! Wear-levelling policies: selection of the free unit to open, and relocation of cold data.

use std::cmp::Reverse;
use std::collections::VecDeque;

use writecliff_base::ReclaimUnitId;
use writecliff_flash::Wear;

use crate::table::Candidates;

/// Least erases between relocations, which bounds the write amplification that they add.
const ERASES_BETWEEN_MOVES: u64 = 16;

/// Wear-levelling policies, as named in device files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WearPolicy {
    /// No wear levelling: opens the unit that has been free longest.
    None,
    /// Opens the least worn free unit; ties go to the unit freed first.
    Dynamic,
    /// Like dynamic wear levelling. In addition, if the erase count of a closed unit lags the mean
    /// by more than `threshold`, relocates the unit's cold data to the most worn free unit. Blocks
    /// with cold data would not be erased while other blocks wear out (the cold-data migration
    /// surveyed by Gal and Toledo, ACM Computing Surveys 37(2), 2005).
    #[allow(missing_docs, reason = "the variant defines it")]
    Static { threshold: u32 },
}

impl WearPolicy {
    /// Takes a unit from `free`, in order of becoming free; `cold` is `true` for cold data.
    pub(crate) fn take(
        self,
        free: &mut VecDeque<ReclaimUnitId>,
        wear: &Wear,
        cold: bool,
    ) -> Option<ReclaimUnitId> {
        let places = 0..free.len();
        let position = match self {
            Self::None => places.min(),
            Self::Static { .. } if cold => places.max_by_key(|&i| (wear.of(free[i]), Reverse(i))),
            Self::Dynamic | Self::Static { .. } => places.min_by_key(|&i| (wear.of(free[i]), i)),
        }?;
        free.remove(position)
    }

    /// Returns a closed unit of `among` whose data should be relocated because its blocks lag in
    /// wear. `since_last` is the number of unit erases since the last such relocation.
    pub(crate) fn cold_unit(
        self,
        among: &Candidates<'_>,
        wear: &Wear,
        since_last: u64,
    ) -> Option<ReclaimUnitId> {
        let Self::Static { threshold } = self else { return None };
        if since_last < ERASES_BETWEEN_MOVES {
            return None;
        }
        let counts = &wear.erases[among.units.start as usize..among.units.end as usize];
        let mean = counts.iter().map(|&n| u64::from(n)).sum::<u64>() / counts.len() as u64;
        // Select the oldest data among the less worn units: a unit that is rewritten frequently is
        // already in circulation and will catch up by itself.
        let cold = among
            .iter()
            .filter(|&unit| u64::from(wear.of(unit)) + u64::from(threshold) < mean)
            .min_by_key(|&unit| among.age_order(unit));
        debug_assert!(cold.is_none_or(|unit| among.contains(unit)));
        cold
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UnitTable;
    use crate::table::UnitState;

    fn free(units: &[u32]) -> VecDeque<ReclaimUnitId> {
        units.iter().map(|&u| ReclaimUnitId(u)).collect()
    }

    #[test]
    fn each_policy_chooses_the_unit_to_open() {
        let wear = Wear::from_counts(vec![5, 3, 9, 3], 1000);
        let fixed = WearPolicy::Static { threshold: 10 };
        let rows = [
            (WearPolicy::None, false, 2),
            (WearPolicy::Dynamic, false, 3),
            (WearPolicy::Dynamic, true, 3),
            (fixed, false, 3),
            (fixed, true, 2),
        ];
        for (policy, cold, expected) in rows {
            let mut pool = free(&[2, 3, 1, 0]);
            let taken = policy.take(&mut pool, &wear, cold);
            assert_eq!(taken, Some(ReclaimUnitId(expected)), "{policy:?} cold={cold}");
            assert_eq!(pool.len(), 3);
        }
        assert_eq!(WearPolicy::Dynamic.take(&mut free(&[]), &wear, false), None);
    }

    fn all(table: &UnitTable) -> Candidates<'_> {
        Candidates { table, units: 0..4, stream: None }
    }

    #[test]
    fn cold_data_are_relocated_only_beyond_the_threshold_and_at_a_limited_rate() {
        let mut table = UnitTable::new(4, 8);
        table.state = vec![UnitState::Closed; 4];
        let policy = WearPolicy::Static { threshold: 10 };
        let even = Wear::from_counts(vec![20, 21, 19, 20], 1000);
        assert_eq!(policy.cold_unit(&all(&table), &even, 1000), None);
        let spared = Wear::from_counts(vec![20, 21, 2, 20], 1000);
        assert_eq!(policy.cold_unit(&all(&table), &spared, 1000), Some(ReclaimUnitId(2)));
        assert_eq!(policy.cold_unit(&all(&table), &spared, 1), None);
        table.state[2] = UnitState::Open;
        assert_eq!(policy.cold_unit(&all(&table), &spared, 1000), None);
    }
}
