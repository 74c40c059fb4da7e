//! Per stream: relocated data stay in their stream. Streams never mix, not even after GC.

use crate::frontier::FrontierId;
use crate::table::Owner;

pub(super) fn frontier(owner: Owner, streams: u16) -> FrontierId {
    FrontierId(streams + owner.stream.0)
}
