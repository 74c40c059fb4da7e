//! Cost-benefit policy: selects the unit with the greatest `age × (1 − u) / u`, where `u` is the
//! unit's valid fraction (Rosenblum and Ousterhout's cleaner, ACM TOCS 10(1), 1992, without the
//! reading cost, as Kawaguchi et al. use it for flash, USENIX 1995). Age is measured in host writes
//! since the unit was closed.

use writecliff_base::ReclaimUnitId;

use crate::UnitTable;
use crate::table::Among;

pub(super) fn choose(table: &UnitTable, among: &Among, now: u64) -> Option<ReclaimUnitId> {
    let mut best: Option<(f64, ReclaimUnitId)> = None;
    for unit in table.candidates(among) {
        let valid = f64::from(table.valid[unit.index()]);
        let invalid = f64::from(table.alloc_units_per_reclaim_unit) - valid;
        let age = (now - table.closed_at[unit.index()]) as f64 + 1.0;
        // An empty unit costs nothing, so its score is infinite. A full unit yields no space.
        let score = if invalid == 0.0 { continue } else { age * invalid / valid };
        if best.is_none_or(|(highest, _)| score > highest) {
            best = Some((score, unit));
        }
    }
    best.map(|(_, unit)| unit)
}
