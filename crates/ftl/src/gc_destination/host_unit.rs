//! Host unit: relocated data go to the unit that the host is filling in their stream. One open unit
//! per stream is enough, but new and relocated data share it, so cold data are relocated again and
//! again together with hot ones.

use crate::frontier::FrontierId;
use crate::table::Owner;

pub(super) fn frontier(owner: Owner) -> FrontierId {
    FrontierId(owner.stream.0)
}
