//! Windowed greedy policy: selects the unit with the fewest valid slots among the `window` units
//! that were closed longest ago (Hu et al., "Write amplification analysis in flash-based solid
//! state drives", SYSTOR 2009).
//!
//! A window of one unit is equivalent to FIFO. A window of all closed units is equivalent to
//! greedy, except that a completely valid unit is relocated if no other unit is left.

use writecliff_base::ReclaimUnitId;

use crate::UnitTable;
use crate::table::Among;

pub(super) fn choose(table: &UnitTable, among: &Among, window: u32) -> Option<ReclaimUnitId> {
    let age = |unit: &ReclaimUnitId| (table.closed_at[unit.index()], unit.0);
    let mut units: Vec<ReclaimUnitId> = table.candidates(among).collect();
    if units.len() > window as usize {
        units.select_nth_unstable_by_key(window as usize, age);
        units.truncate(window as usize);
    }
    units.into_iter().min_by_key(|unit| (table.valid[unit.index()], age(unit)))
}
