//! FIFO policy: selects the unit that was closed longest ago (Menon, "A performance comparison of
//! RAID-5 and log-structured arrays", HPDC 1995; the cyclic log of Desnoyers, SYSTOR 2012).
//!
//! FIFO also selects completely valid units because a cyclic log rotates through all units.

use writecliff_base::ReclaimUnitId;

use crate::UnitTable;
use crate::table::Among;

pub(super) fn choose(table: &UnitTable, among: &Among) -> Option<ReclaimUnitId> {
    table.candidates(among).min_by_key(|u| (table.closed_at[u.index()], u.0))
}
