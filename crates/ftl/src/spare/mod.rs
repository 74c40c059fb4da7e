//! Spare space between streams: which stream has to give up a unit next.
//!
//! A GC policy (`gc/`) knows which unit is the cheapest; it does not know which stream can
//! do with less spare space. The policies here answer that first, and let the GC policy
//! choose within the stream. This is the one kind of policy that learns: what it has learnt is part
//! of the drive's state, and is saved with it.

mod self_tuned;

use writecliff_base::{Prng, ReclaimUnitId, StreamId};

use crate::gc::GcPolicy;
use crate::table::{Among, UnitTable};

pub use self_tuned::StreamSpare;

use self_tuned::SelfTuned;

/// The policies by name, as device files have them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SparePolicy {
    /// None of its own: the GC policy chooses among all units, and spare space falls to the
    /// streams as it happens. Under greedy collection every stream ends at the same valid share of
    /// its victims, so separating random hot and cold data gains almost nothing by itself.
    Global,
    /// Spare space is split so that no other split would write less, as far as the drive can tell
    /// from what it measures itself. Wants streams kept apart (`GcDestination::PerStream`).
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

/// A spare policy and what it has learnt.
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

    /// The host has begun a unit of `stream`.
    pub(crate) fn host_opened(&mut self, stream: StreamId) {
        if let Self::SelfTuned(tuned) = self {
            tuned.host_opened(stream);
        }
    }

    /// The next victim, or `None` when no closed unit would free a slot.
    pub(crate) fn choose(
        &mut self,
        gc: GcPolicy,
        table: &UnitTable,
        now: u64,
        random: &mut Prng,
    ) -> Option<ReclaimUnitId> {
        match self {
            Self::Global => gc.choose(table, Among::All, now, random),
            Self::SelfTuned(tuned) => tuned.choose(gc, table, now, random),
        }
    }

    /// What is known of each stream; empty under a policy that learns nothing.
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

    /// Take over what `to_words` gave for the same policy and number of streams; false if the words
    /// cannot be that.
    pub(crate) fn set_words(&mut self, words: &[u64]) -> bool {
        match self {
            Self::Global => words.is_empty(),
            Self::SelfTuned(tuned) => tuned.set_words(words),
        }
    }
}
