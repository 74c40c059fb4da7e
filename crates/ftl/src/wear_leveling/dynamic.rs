//! Dynamic wear levelling: opens the least worn free unit; ties go to the unit freed first.

use std::collections::VecDeque;

use writecliff_base::ReclaimUnitId;
use writecliff_flash::Wear;

pub(super) fn least_worn(free: &VecDeque<ReclaimUnitId>, wear: &Wear) -> Option<usize> {
    (0..free.len()).min_by_key(|&i| (wear.of(free[i]), i))
}
