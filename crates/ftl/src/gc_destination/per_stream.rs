//! Per stream: relocated data stay in their stream, so streams never mix, even after GC.

use crate::frontier::FrontierId;
use crate::table::Owner;

pub(super) fn frontier(owner: Owner, streams: u16) -> FrontierId {
    FrontierId(streams + owner.stream.0)
}
