//! d-choices policy: samples `d` closed units with replacement and selects the unit with the fewest
//! valid slots (Van Houdt, "A mean field model for a class of garbage collection algorithms in
//! flash-based solid state drives", SIGMETRICS 2013). `d` = 1 is random GC.

use writecliff_base::{Prng, ReclaimUnitId};

use crate::UnitTable;
use crate::table::Among;

/// Maximum number of rejected draws before a scan, reached only if almost no unit is closed.
const TRIES: u32 = 64;

pub(super) fn choose(
    table: &UnitTable,
    among: &Among,
    d: u32,
    random: &mut Prng,
) -> Option<ReclaimUnitId> {
    debug_assert!(d > 0, "a choice among no units");
    let mut best: Option<ReclaimUnitId> = None;
    for _ in 0..d {
        let drawn = draw(table, among, random)?;
        if best.is_none_or(|b| table.valid[drawn.index()] < table.valid[b.index()]) {
            best = Some(drawn);
        }
    }
    best
}

fn draw(table: &UnitTable, among: &Among, random: &mut Prng) -> Option<ReclaimUnitId> {
    debug_assert!(!among.units.is_empty(), "a group without units");
    for _ in 0..TRIES {
        let nth = random.below(among.units.len() as u64) as u32;
        let unit = ReclaimUnitId(among.units.start + nth);
        if table.is_candidate(unit, among) {
            return Some(unit);
        }
    }
    let closed: Vec<ReclaimUnitId> = table.candidates(among).collect();
    (!closed.is_empty()).then(|| closed[random.below(closed.len() as u64) as usize])
}
