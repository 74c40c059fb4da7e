//! Per handle: data of the isolated streams stay in their stream (FDP: persistently isolated
//! handles); what is collected of all others goes to one common unit (initially isolated ones).

use crate::frontier::FrontierId;
use crate::table::Owner;

/// Streams as a set: bit n is stream n.
pub(super) fn frontier(owner: Owner, streams: u16, isolated: u128) -> FrontierId {
    if isolated >> owner.stream.0 & 1 == 1 {
        return super::per_stream::frontier(owner, streams);
    }
    // The common unit is accounted to the first stream that is not isolated.
    FrontierId(streams + isolated.trailing_ones() as u16)
}
