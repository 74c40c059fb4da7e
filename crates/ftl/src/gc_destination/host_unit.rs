//! Host unit: relocated data go back into the unit that the host is filling in their stream. One
//! open unit per stream is enough; fresh and surviving data share it, so that cold data keep being
//! moved with hot ones.

use crate::frontier::FrontierId;
use crate::table::Owner;

pub(super) fn frontier(owner: Owner) -> FrontierId {
    FrontierId(owner.stream.0)
}
