//! Dynamic wear levelling: the least worn of the free units; the one freed first among equals.

use std::collections::VecDeque;

use writecliff_base::ReclaimUnitId;
use writecliff_flash::Wear;

pub(super) fn least_worn(free: &VecDeque<ReclaimUnitId>, wear: &Wear) -> Option<usize> {
    (0..free.len()).min_by_key(|&i| (wear.of(free[i]), i))
}
