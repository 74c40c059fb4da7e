//! Stream resources, which map the host's identifiers (NVMe, SCSI) to FTL streams.
//!
//! A resource is an FTL stream with its open unit. When an identifier is released, the unit stays
//! open, and the next identifier that gets the resource continues to fill the unit. Closing the
//! unit would waste its remaining space at every release, and neither standard requires it.

use serde::{Deserialize, Serialize};
use writecliff_base::{StreamId, saved};

/// Route of an identifier without a resource.
pub(crate) const UNROUTED: u16 = u16::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Open {
    id: u16,
    /// Sequence number of the open operation; the oldest stream is released first.
    order: u64,
}

/// Streams of a drive, excluding the default stream.
#[derive(Clone, Debug)]
pub(crate) struct Resources {
    /// Open streams by resource; resource n is FTL stream n + 1.
    open: Vec<Option<Open>>,
    openings: u64,
}

saved! { Resources { openings, [open] } }

impl Resources {
    pub(crate) fn new(limit: u16) -> Self {
        Self { open: vec![None; usize::from(limit)], openings: 0 }
    }

    /// Returns the maximum number of open streams.
    pub(crate) fn limit(&self) -> u16 {
        self.open.len() as u16
    }

    pub(crate) fn count(&self) -> u16 {
        self.open.iter().flatten().count() as u16
    }

    fn find(&self, id: u16) -> Option<usize> {
        self.open.iter().position(|open| open.is_some_and(|open| open.id == id))
    }

    pub(crate) fn is_open(&self, id: u16) -> bool {
        self.find(id).is_some()
    }

    /// Returns the open identifiers in ascending order, as in both standards.
    pub(crate) fn ids(&self) -> Vec<u16> {
        let mut ids: Vec<u16> = self.open.iter().flatten().map(|open| open.id).collect();
        ids.sort_unstable();
        ids
    }

    /// Opens `id`, which must not be open, in the first free resource; `None` without one.
    pub(crate) fn open(&mut self, route: &mut [u16], id: u16) -> Option<StreamId> {
        debug_assert!(id > 0, "stream 0 is the default stream");
        debug_assert_eq!(route[usize::from(id)], UNROUTED, "a stream is opened once");
        let free = self.open.iter().position(Option::is_none)?;
        self.open[free] = Some(Open { id, order: self.openings });
        self.openings += 1;
        route[usize::from(id)] = free as u16 + 1;
        Some(StreamId(free as u16 + 1))
    }

    /// Closes `id`; returns `false` if it was not open.
    pub(crate) fn close(&mut self, route: &mut [u16], id: u16) -> bool {
        let Some(slot) = self.find(id) else { return false };
        debug_assert_eq!(usize::from(route[usize::from(id)]), slot + 1, "routed elsewhere");
        self.open[slot] = None;
        route[usize::from(id)] = UNROUTED;
        true
    }

    /// Routes the restored stream identifiers. Returns `false` if the identifiers are invalid.
    pub(crate) fn reroute(&self, route: &mut [u16]) -> bool {
        route.fill(UNROUTED);
        route[0] = 0;
        (1..).zip(&self.open).all(|(stream, open)| {
            let Some(Open { id, .. }) = *open else { return true };
            std::mem::replace(&mut route[usize::from(id)], stream) == UNROUTED
        })
    }

    pub(crate) fn close_all(&mut self, route: &mut [u16]) {
        self.ids().into_iter().for_each(|id| {
            self.close(route, id);
        });
    }

    pub(crate) fn oldest(&self) -> Option<u16> {
        self.open.iter().flatten().min_by_key(|open| open.order).map(|open| open.id)
    }
}
