//! GC destination policies: the frontier that relocated data go to.

mod host_unit;
mod per_handle;
mod per_stream;
mod shared;

use writecliff_base::StreamId;

use crate::frontier::FrontierId;
use crate::table::Owner;

/// The policies, as named in device files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GcDestination {
    /// To units of their own in their stream (FDP: persistently isolated).
    PerStream,
    /// To the unit that the host is writing in their stream.
    HostUnit,
    /// To one common unit for all streams (FDP: initially isolated).
    Shared,
    /// As `PerStream` for the streams whose bit is set in `isolated`, as `Shared` for the others.
    PerHandle { isolated: u128 },
}

impl GcDestination {
    pub fn frontier(self, owner: Owner, streams: u16) -> FrontierId {
        match self {
            Self::PerStream => per_stream::frontier(owner, streams),
            Self::HostUnit => host_unit::frontier(owner),
            Self::Shared => shared::frontier(owner, streams),
            Self::PerHandle { isolated } => per_handle::frontier(owner, streams, isolated),
        }
    }

    pub fn name(self) -> String {
        match self {
            Self::PerStream => "per-stream".to_owned(),
            Self::HostUnit => "host-unit".to_owned(),
            Self::Shared => "shared".to_owned(),
            Self::PerHandle { isolated } => {
                let set = (0..128).filter(|&n| isolated >> n & 1 == 1);
                let set: Vec<String> = set.map(|n| n.to_string()).collect();
                format!("per-handle({})", set.join(","))
            }
        }
    }

    /// Whether data of this stream are never mixed with those of others.
    pub fn isolates(self, stream: StreamId) -> bool {
        match self {
            Self::PerStream | Self::HostUnit => true,
            Self::Shared => false,
            Self::PerHandle { isolated } => isolated >> stream.0 & 1 == 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_relocates_data_to_its_frontier() {
        let per_handle = GcDestination::PerHandle { isolated: 0b101 };
        let rows = [
            (GcDestination::PerStream, [8, 9, 10, 11]),
            (GcDestination::HostUnit, [0, 1, 2, 3]),
            (GcDestination::Shared, [8, 8, 8, 8]),
            // Streams 0 and 2 are isolated; 1 and 3 share the unit of stream 1.
            (per_handle, [8, 9, 10, 9]),
        ];
        for (policy, frontiers) in rows {
            for (stream, expected) in frontiers.into_iter().enumerate() {
                let owner = Owner { stream: StreamId(stream as u16), relocated: false };
                assert_eq!(policy.frontier(owner, 8), FrontierId(expected), "{}", policy.name());
            }
        }
        assert_eq!(per_handle.name(), "per-handle(0,2)");
    }
}
