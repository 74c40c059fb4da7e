//! Reclaim Unit Time Limit: the maximum time that a reclaim unit of an FDP configuration may stay
//! open (NVMe Base Specification 2.1, 8.1.10).
//!
//! Partly written flash retains its data less well, so a controller may close a unit that the host
//! has not filled in time. The handle then references another unit, and event 1h reports the
//! change. The limit is checked at writes and status requests instead of by a timer because the
//! host cannot observe a difference before then. The event has the time when the limit was reached.

use writecliff_base::{Nanos, ReclaimUnitId, saved};

use super::config::SECOND;

/// Time when each handle received its current unit.
#[derive(Clone, Debug)]
pub(crate) struct TimeLimit {
    limit: Nanos,
    /// Partly written unit of each reclaim unit handle, and the time when it was first written.
    open: Vec<Option<(ReclaimUnitId, Nanos)>>,
}

saved! { TimeLimit { [open] } }

impl TimeLimit {
    pub(crate) fn new(limit: Nanos, handles: u16) -> Self {
        Self { limit, open: vec![None; usize::from(handles)] }
    }

    pub(crate) fn seconds(&self) -> u32 {
        (self.limit.0 / SECOND) as u32
    }

    /// Returns the time when the first handle reaches the limit.
    pub(crate) fn deadline(&self) -> Nanos {
        let first = self.open.iter().flatten().map(|&(_, since)| since).min();
        first.map_or(Nanos::MAX, |since| since + self.limit)
    }

    /// Returns the first handle that has reached the limit by `now`, and the time when it did.
    pub(crate) fn due(&self, now: Nanos) -> Option<(u16, Nanos)> {
        let open = self.open.iter().enumerate();
        let since = open.filter_map(|(handle, open)| open.map(|(_, since)| (since, handle)));
        let (since, handle) = since.min()?;
        let at = since + self.limit;
        (at <= now).then_some((handle as u16, at))
    }

    /// Sets the current unit of a handle; `None` for an empty unit.
    pub(crate) fn note(&mut self, handle: u16, unit: Option<ReclaimUnitId>, now: Nanos) {
        let open = &mut self.open[usize::from(handle)];
        if open.map(|(unit, _)| unit) != unit {
            *open = unit.map(|unit| (unit, now));
        }
    }

    /// Returns the Estimated Active Reclaim Unit Time Remaining, in seconds, rounded up.
    pub(crate) fn remaining_s(&self, handle: u16, now: Nanos) -> u32 {
        let Some((_, since)) = self.open[usize::from(handle)] else { return self.seconds() };
        let left = (since + self.limit).0.saturating_sub(now.0);
        left.div_ceil(SECOND) as u32
    }
}
