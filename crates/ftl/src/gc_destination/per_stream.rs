//! Own: collected data stay in their stream. Streams never mix, not even after collection.

use crate::frontier::FrontierId;
use crate::table::Owner;

pub(super) fn frontier(owner: Owner, streams: u16) -> FrontierId {
    FrontierId(streams + owner.stream.0)
}
