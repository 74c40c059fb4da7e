//! Greedy policy: selects the closed unit with the fewest valid slots. Ties are resolved in favour
//! of the unit that was closed first, so that equally empty units take turns and wear evenly.
//!
//! Greedy is optimal for uniform traffic (Hu et al., "Write amplification analysis in flash-based
//! solid state drives", SYSTOR 2009). A completely valid unit is never selected because relocating
//! it yields no space.

use writecliff_base::ReclaimUnitId;

use crate::UnitTable;
use crate::table::{Among, UnitState};

pub(super) fn choose(table: &UnitTable, among: &Among) -> Option<ReclaimUnitId> {
    let mut best = (table.alloc_units_per_reclaim_unit, 0);
    let mut victim = None;
    let pool = among.units.start as usize..among.units.end as usize;
    let units = table.valid[pool.clone()].iter().zip(&table.state[pool.clone()]);
    for (index, (&valid, &state)) in pool.zip(units) {
        if valid > best.0
            || state != UnitState::Closed
            || valid == table.alloc_units_per_reclaim_unit
        {
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
