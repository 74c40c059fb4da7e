//! Per handle: relocated data of isolated streams stay in their stream (FDP: persistently isolated
//! handles); those of all others go to one common unit (initially isolated handles).

use crate::frontier::FrontierId;
use crate::table::Owner;

/// A set of streams: bit n is stream n.
pub(super) fn frontier(owner: Owner, streams: u16, isolated: u128) -> FrontierId {
    if isolated >> owner.stream.0 & 1 == 1 {
        return super::per_stream::frontier(owner, streams);
    }
    // The common unit is accounted to the first stream that is not isolated.
    FrontierId(streams + isolated.trailing_ones() as u16)
}
