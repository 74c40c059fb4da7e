//! Placement policies: which frontier the data of a collected unit go to.

mod own;
mod shared;

use crate::frontier::FrontierId;
use crate::table::Owner;

/// The policies by name, as device files have them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlacementPolicy {
    /// Back into the stream they came from (FDP: persistently isolated).
    Own,
    /// Into one stream for all collected data (FDP: initially isolated).
    Shared,
}

impl PlacementPolicy {
    pub fn frontier(self, owner: Owner, streams: u16) -> FrontierId {
        match self {
            Self::Own => own::frontier(owner, streams),
            Self::Shared => shared::frontier(owner, streams),
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Shared => "shared",
        }
    }
}
