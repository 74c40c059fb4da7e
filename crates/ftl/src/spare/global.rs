//! Global: the choice of the GC policy among all units, whatever their stream.
//!
//! Under greedy GC every stream ends at the same valid share of its victims, so separating
//! random hot and cold data gains almost nothing by itself.

use writecliff_base::{Prng, ReclaimUnitId};

use crate::gc::GcPolicy;
use crate::table::{Among, UnitTable};

pub(super) fn choose(
    gc: GcPolicy,
    table: &UnitTable,
    now: u64,
    random: &mut Prng,
) -> Option<ReclaimUnitId> {
    gc.choose(table, Among::All, now, random)
}
