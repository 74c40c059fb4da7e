//! Wear-levelling policies: selection of the free unit to open, and relocation of cold data.

mod static_;

use std::collections::VecDeque;

use writecliff_base::ReclaimUnitId;
use writecliff_flash::Wear;

use crate::UnitTable;
use crate::table::Among;

/// Wear-levelling policies, as named in device files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WearPolicy {
    /// No wear levelling: opens the unit that has been free longest.
    None,
    /// Opens the least worn free unit; ties go to the unit freed first.
    Dynamic,
    /// Like dynamic wear levelling. In addition, if the erase count of a closed unit lags the mean
    /// by more than `threshold`, relocates the unit's (cold) data to the most worn free unit.
    #[allow(missing_docs, reason = "the variant defines it")]
    Static { threshold: u32 },
}

impl WearPolicy {
    /// Removes a unit from `free`, which is sorted by the time when units became free. `cold` is
    /// `true` for cold data.
    pub fn take(
        self,
        free: &mut VecDeque<ReclaimUnitId>,
        wear: &Wear,
        cold: bool,
    ) -> Option<ReclaimUnitId> {
        let position = match self {
            Self::None => (!free.is_empty()).then_some(0),
            Self::Static { .. } if cold => static_::most_worn(free, wear),
            Self::Dynamic | Self::Static { .. } => {
                (0..free.len()).min_by_key(|&i| (wear.of(free[i]), i))
            }
        }?;
        free.remove(position)
    }

    /// Returns a closed unit of `among` whose data should be relocated because its blocks lag in
    /// wear. `since_last` is the number of reclaim unit erases since the last relocation for wear
    /// levelling.
    pub fn cold_unit(
        self,
        table: &UnitTable,
        among: &Among,
        wear: &Wear,
        since_last: u64,
    ) -> Option<ReclaimUnitId> {
        match self {
            Self::None | Self::Dynamic => None,
            Self::Static { threshold } => {
                let cold = static_::cold_unit(table, among, wear, threshold, since_last);
                debug_assert!(cold.is_none_or(|unit| table.is_candidate(unit, among)));
                cold
            }
        }
    }

    /// Returns the policy in device file notation, with its parameter.
    pub fn name(self) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::Dynamic => "dynamic".to_owned(),
            Self::Static { threshold } => format!("static({threshold})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
            assert_eq!(taken, Some(ReclaimUnitId(expected)), "{} cold={cold}", policy.name());
            assert_eq!(pool.len(), 3);
        }
        assert_eq!(WearPolicy::Dynamic.take(&mut free(&[]), &wear, false), None);
    }

    #[test]
    fn cold_data_are_relocated_only_beyond_the_threshold_and_at_a_limited_rate() {
        let mut table = UnitTable::new(4, 8);
        table.state = vec![UnitState::Closed; 4];
        let all = Among { units: 0..4, stream: None };
        let policy = WearPolicy::Static { threshold: 10 };
        let even = Wear::from_counts(vec![20, 21, 19, 20], 1000);
        assert_eq!(policy.cold_unit(&table, &all, &even, 1000), None);
        let spared = Wear::from_counts(vec![20, 21, 2, 20], 1000);
        assert_eq!(policy.cold_unit(&table, &all, &spared, 1000), Some(ReclaimUnitId(2)));
        assert_eq!(policy.cold_unit(&table, &all, &spared, 1), None);
        table.state[2] = UnitState::Open;
        assert_eq!(policy.cold_unit(&table, &all, &spared, 1000), None);
    }
}
