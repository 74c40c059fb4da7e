//! Static wear levelling: blocks that sit under cold data are spared while others wear out, so cold
//! data are moved onto the most worn free unit, and the spared blocks go back into circulation
//! (the cold-data migration surveyed by Gal and Toledo, ACM Computing Surveys 37(2), 2005).

use std::collections::VecDeque;

use writecliff_base::ReclaimUnitId;
use writecliff_flash::Wear;

use crate::table::UnitTable;

/// At most one move for this many collections, which bounds what levelling may add to the write
/// amplification.
const ERASES_BETWEEN_MOVES: u64 = 16;

pub(super) fn most_worn(free: &VecDeque<ReclaimUnitId>, wear: &Wear) -> Option<usize> {
    (0..free.len()).max_by_key(|&i| (wear.of(free[i]), std::cmp::Reverse(i)))
}

pub(super) fn cold_unit(
    table: &UnitTable,
    wear: &Wear,
    threshold: u32,
    since_last: u64,
) -> Option<ReclaimUnitId> {
    if since_last < ERASES_BETWEEN_MOVES {
        return None;
    }
    let mean = wear.total() / u64::from(table.len());
    // The oldest data among the spared units: a spared unit that is written again and again is
    // already back in circulation and will catch up by itself.
    table
        .closed()
        .filter(|&u| u64::from(wear.of(u)) + u64::from(threshold) < mean)
        .min_by_key(|u| (table.closed_at[u.index()], u.0))
}
