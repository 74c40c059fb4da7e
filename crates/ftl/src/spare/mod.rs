//! Spare policies: division of spare space between streams.
//!
//! A GC policy (`gc/`) selects the cheapest unit, but not the stream that can do with less spare
//! space. The policies here select the stream first and let the GC policy select the unit within
//! it. This is the only kind of policy that measures the workload; its measurements are part of the
//! drive's state and are saved with it.

mod self_tuned;

use writecliff_base::{Prng, ReclaimUnitId, StreamId};

use crate::gc::GcPolicy;
use crate::table::{Among, UnitTable};

pub use self_tuned::StreamSpare;

use self_tuned::SelfTuned;

/// The policies, as named in device files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SparePolicy {
    /// The GC policy selects from all units, and the division of spare space follows from that.
    /// With greedy GC, the victims of all streams end up with the same valid share, so separating
    /// random hot and cold data gains almost nothing by itself.
    Global,
    /// Divides spare space so that no other division would reduce writes, as far as the drive can
    /// estimate from its own measurements. Requires separate streams (`GcDestination::PerStream`).
    SelfTuned,
}

impl SparePolicy {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::SelfTuned => "self-tuned",
        }
    }
}

/// A spare policy and its measurements.
#[derive(Clone, Debug)]
pub(crate) enum Spare {
    Global,
    SelfTuned(SelfTuned),
}

impl Spare {
    pub(crate) fn new(policy: SparePolicy, streams: u16, units: u32) -> Self {
        match policy {
            SparePolicy::Global => Self::Global,
            SparePolicy::SelfTuned => Self::SelfTuned(SelfTuned::new(streams, units)),
        }
    }

    /// Records that the host has opened a unit of `stream`.
    pub(crate) fn host_opened(&mut self, stream: StreamId) {
        if let Self::SelfTuned(tuned) = self {
            tuned.host_opened(stream);
        }
    }

    /// Selects the next victim from `among`, or `None` if no closed unit would free a slot.
    pub(crate) fn choose(
        &mut self,
        gc: GcPolicy,
        table: &UnitTable,
        among: &Among,
        now: u64,
        random: &mut Prng,
    ) -> Option<ReclaimUnitId> {
        match self {
            Self::Global => gc.choose(table, among, now, random),
            Self::SelfTuned(tuned) => {
                debug_assert_eq!(among.units, 0..table.len(), "it divides the space of one group");
                tuned.choose(gc, table, now, random)
            }
        }
    }

    /// Measurements of each stream; empty with a policy that measures nothing.
    pub(crate) fn streams(&self) -> &[StreamSpare] {
        match self {
            Self::Global => &[],
            Self::SelfTuned(tuned) => tuned.streams(),
        }
    }

    /// The state as words, for saving and for digests.
    pub(crate) fn to_words(&self) -> Vec<u64> {
        match self {
            Self::Global => Vec::new(),
            Self::SelfTuned(tuned) => tuned.to_words(),
        }
    }

    /// Restores the state from `to_words` of the same policy and number of streams; returns false
    /// if the words are invalid.
    pub(crate) fn set_words(&mut self, words: &[u64]) -> bool {
        match self {
            Self::Global => words.is_empty(),
            Self::SelfTuned(tuned) => tuned.set_words(words),
        }
    }
}
