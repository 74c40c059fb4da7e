//! Static wear levelling, because blocks with cold data are not erased while other blocks wear out.
//! Cold data are therefore relocated to the most worn free unit, and the less worn blocks return to
//! circulation (the cold-data migration surveyed by Gal and Toledo, ACM Computing Surveys 37(2),
//! 2005).

use std::collections::VecDeque;

use writecliff_base::ReclaimUnitId;
use writecliff_flash::Wear;

use crate::UnitTable;
use crate::table::Among;

/// Minimum number of erases between relocations, which limits the write amplification that wear
/// levelling adds.
const ERASES_BETWEEN_MOVES: u64 = 16;

pub(super) fn most_worn(free: &VecDeque<ReclaimUnitId>, wear: &Wear) -> Option<usize> {
    (0..free.len()).max_by_key(|&i| (wear.of(free[i]), std::cmp::Reverse(i)))
}

pub(super) fn cold_unit(
    table: &UnitTable,
    among: &Among,
    wear: &Wear,
    threshold: u32,
    since_last: u64,
) -> Option<ReclaimUnitId> {
    if since_last < ERASES_BETWEEN_MOVES {
        return None;
    }
    let counts = &wear.erases[among.units.start as usize..among.units.end as usize];
    let mean = counts.iter().map(|&n| u64::from(n)).sum::<u64>() / counts.len() as u64;
    // Select the oldest data among the less worn units. A unit that is rewritten frequently is
    // already in circulation and catches up without wear levelling.
    table
        .candidates(among)
        .filter(|&u| u64::from(wear.of(u)) + u64::from(threshold) < mean)
        .min_by_key(|u| (table.closed_at[u.index()], u.0))
}
