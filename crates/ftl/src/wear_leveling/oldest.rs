//! No wear levelling: opens the unit that was freed first.

use std::collections::VecDeque;

use writecliff_base::ReclaimUnitId;

pub(super) fn position(free: &VecDeque<ReclaimUnitId>) -> Option<usize> {
    (!free.is_empty()).then_some(0)
}
