//! No wear levelling: first freed, first used.

use std::collections::VecDeque;

use writecliff_base::ReclaimUnitId;

pub(super) fn position(free: &VecDeque<ReclaimUnitId>) -> Option<usize> {
    (!free.is_empty()).then_some(0)
}
