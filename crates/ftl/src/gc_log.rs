//! What GC did to units that the host fills or has filled: the data placement interface
//! makes events of it. Nothing is recorded unless somebody listens, and only when a unit is freed
//! or filled, so no slot costs more.

use std::collections::VecDeque;

use writecliff_base::StreamId;

/// Most events that are kept until they are taken; older ones are only counted.
const KEPT: usize = 1024;

/// What GC did to a unit of the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GcEvent {
    /// A unit that the host had written in `stream` was emptied: `slots` of it were moved.
    Moved { stream: StreamId, slots: u32 },
    /// Moved data took the last slot of the unit that the host writes in `stream`.
    RolledOver { stream: StreamId },
}

/// How often each has happened in one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub moved: u64,
    pub rolled_over: u64,
}

/// What has happened since it was last taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GcLog {
    /// The newest, the oldest of them first.
    pub kept: VecDeque<GcEvent>,
    /// All, by stream; empty if nobody listens.
    pub counts: Vec<Counts>,
}

impl GcLog {
    /// Record from now on.
    pub fn listen(&mut self, streams: u16) {
        self.counts = vec![Counts::default(); usize::from(streams)];
    }

    #[inline]
    pub(crate) fn is_listening(&self) -> bool {
        !self.counts.is_empty()
    }

    #[cold]
    pub(crate) fn record(&mut self, event: GcEvent) {
        match event {
            GcEvent::Moved { stream, .. } => self.counts[stream.index()].moved += 1,
            GcEvent::RolledOver { stream } => self.counts[stream.index()].rolled_over += 1,
        }
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(event);
    }

    /// Hand over what has happened, and go on listening.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let streams = self.counts.len() as u16;
        let taken = std::mem::take(self);
        self.listen(streams);
        taken
    }
}
