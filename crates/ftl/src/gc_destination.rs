//! GC destination policies, which select the frontier that receives relocated data.

use writecliff_base::StreamId;

use crate::FrontierId;
use crate::table::Owner;

/// GC destination policies, as named in device files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GcDestination {
    /// To separate units of their stream, so that streams never mix (FDP: persistently isolated).
    PerStream,
    /// To the unit that the host is writing in their stream. One open unit per stream is enough,
    /// but cold data are relocated again and again together with hot ones.
    HostUnit,
    /// One common unit for all streams (FDP: initially isolated); GC needs only one open unit.
    Shared,
    /// Like `PerStream` for the streams with a bit set in `isolated`, like `Shared` for others.
    #[allow(missing_docs, reason = "the variant defines it")]
    PerHandle { isolated: u128 },
}

impl GcDestination {
    pub(crate) fn frontier(self, owner: Owner, streams: u16) -> FrontierId {
        let stream = owner.stream.0;
        FrontierId(match self {
            Self::PerStream => streams + stream,
            Self::HostUnit => stream,
            Self::Shared => streams,
            Self::PerHandle { isolated } if isolated >> stream & 1 == 1 => streams + stream,
            // The common unit is attributed to the first stream that is not isolated.
            Self::PerHandle { isolated } => streams + isolated.trailing_ones() as u16,
        })
    }

    /// Returns the policy in device file notation, with its parameter.
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

    /// Returns `true` if data of a stream are never mixed with data of other streams.
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
            // Streams 0 and 2 are isolated; streams 1 and 3 share the unit of stream 1.
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
