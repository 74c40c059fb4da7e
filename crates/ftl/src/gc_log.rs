//! Log of GC actions on host units, which the data placement interface converts into events.
//! Entries are recorded only if logging is enabled, and only when a unit is freed or filled, so
//! logging adds no cost per slot.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use writecliff_base::{StreamId, saved};

/// Limit on the events stored until they are taken; older events are only counted.
const KEPT: usize = 1024;

/// A GC action on a host unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum GcEvent {
    /// A unit that the host wrote in `stream` was emptied, which relocated `slots` slots.
    #[allow(missing_docs, reason = "the variant defines both")]
    Moved { stream: StreamId, slots: u32 },
    /// Relocated data filled the last slot of the unit that the host writes in `stream`.
    #[allow(missing_docs, reason = "the variant defines it")]
    RolledOver { stream: StreamId },
}

/// Counts of each action in one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Number of [`GcEvent::Moved`] events.
    pub moved: u64,
    /// Number of [`GcEvent::RolledOver`] events.
    pub rolled_over: u64,
}

/// GC actions since the last call to `take`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GcLog {
    /// Most recent events, oldest first.
    pub events: VecDeque<GcEvent>,
    /// Counts of all events by stream; empty if logging is disabled.
    pub counts: Vec<Counts>,
}

saved! { GcLog { events, [counts] } check is_possible }

impl GcLog {
    fn is_possible(&mut self) -> bool {
        self.events.len() <= KEPT
            && self.events.iter().all(|event| match event {
                GcEvent::Moved { stream, .. } | GcEvent::RolledOver { stream } => {
                    stream.index() < self.counts.len()
                }
            })
    }

    /// Enables logging.
    pub fn listen(&mut self, streams: u16) {
        self.counts = vec![Counts::default(); usize::from(streams)];
    }

    #[inline]
    pub(crate) fn is_listening(&self) -> bool {
        !self.counts.is_empty()
    }

    #[cold]
    pub(crate) fn record(&mut self, event: GcEvent) {
        debug_assert!(self.is_listening(), "logging is disabled");
        match event {
            GcEvent::Moved { stream, .. } => self.counts[stream.index()].moved += 1,
            GcEvent::RolledOver { stream } => self.counts[stream.index()].rolled_over += 1,
        }
        if self.events.len() == KEPT {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    /// Returns and removes the logged events; logging continues.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let streams = self.counts.len() as u16;
        let taken = std::mem::take(self);
        self.listen(streams);
        taken
    }
}
