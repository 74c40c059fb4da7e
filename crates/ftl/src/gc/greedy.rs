//! Greedy: the closed unit with the fewest valid slots; the lowest number among equals.
//!
//! Optimal for uniform traffic (Hu et al., "Write amplification analysis in flash-based solid state
//! drives", SYSTOR 2009). A completely valid unit is no victim: moving it frees nothing.

use writecliff_base::ReclaimUnitId;

use crate::table::{UnitState, UnitTable};

pub(super) fn choose(table: &UnitTable) -> Option<ReclaimUnitId> {
    let mut best = table.slots_per_unit;
    let mut victim = None;
    for (index, (&valid, &state)) in table.valid.iter().zip(&table.state).enumerate() {
        if valid < best && state == UnitState::Closed {
            (best, victim) = (valid, Some(ReclaimUnitId(index as u32)));
        }
    }
    victim
}
