//! The time that a reclaim unit may stay open: the Reclaim Unit Time Limit of an FDP configuration
//! (NVMe Base Specification 2.1, 8.1.10).
//!
//! Flash that is written in part keeps its data less well, so a controller may end a unit that the
//! host has not filled in time: the handle then references another, and event 1h says so. Time is
//! looked at when a write comes or somebody asks, not by a clock of its own: until then nothing can
//! have changed for the host. Such an event carries the time at which the limit was reached.

use writecliff_base::codec::CodecError;
use writecliff_base::{Nanos, ReclaimUnitId};

use writecliff_base::words::{WordReader, WordWriter, damaged};

const NANOS_PER_S: u64 = 1_000_000_000;

/// Since when each handle has had its unit.
#[derive(Clone, Debug)]
pub(crate) struct TimeLimit {
    limit: Nanos,
    /// By reclaim unit handle: a unit that has been written in part, and when that began.
    open: Vec<Option<(ReclaimUnitId, Nanos)>>,
}

impl TimeLimit {
    pub(crate) fn new(limit: Nanos, handles: u16) -> Self {
        Self { limit, open: vec![None; usize::from(handles)] }
    }

    pub(crate) fn seconds(&self) -> u32 {
        (self.limit.0 / NANOS_PER_S) as u32
    }

    /// When the first of the handles reaches the limit.
    pub(crate) fn deadline(&self) -> Nanos {
        let first = self.open.iter().flatten().map(|&(_, since)| since).min();
        first.map_or(Nanos::MAX, |since| since + self.limit)
    }

    /// The handle that has reached the limit by `now`, the earliest first, and when.
    pub(crate) fn due(&self, now: Nanos) -> Option<(u16, Nanos)> {
        let open = self.open.iter().enumerate();
        let since = open.filter_map(|(handle, open)| open.map(|(_, since)| (since, handle)));
        let (since, handle) = since.min()?;
        let at = since + self.limit;
        (at <= now).then_some((handle as u16, at))
    }

    /// Say which unit a handle has now; `None`: one that nothing is written in.
    pub(crate) fn note(&mut self, handle: u16, unit: Option<ReclaimUnitId>, now: Nanos) {
        let open = &mut self.open[usize::from(handle)];
        if open.map(|(unit, _)| unit) != unit {
            *open = unit.map(|unit| (unit, now));
        }
    }

    /// Estimated Active Reclaim Unit Time Remaining, in seconds begun: the whole limit for a unit
    /// that nothing is written in.
    pub(crate) fn remaining_s(&self, handle: u16, now: Nanos) -> u32 {
        let Some((_, since)) = self.open[usize::from(handle)] else { return self.seconds() };
        let left = (since + self.limit).0.saturating_sub(now.0);
        left.div_ceil(NANOS_PER_S) as u32
    }

    pub(crate) fn save(&self, out: &mut WordWriter) {
        out.list(self.open.iter(), |out, open| {
            out.put(open.map_or(u64::MAX, |(unit, _)| u64::from(unit.0)));
            out.put(open.map_or(0, |(_, since)| since.0));
        });
    }

    pub(crate) fn restore(&mut self, input: &mut WordReader<'_>) -> Result<(), CodecError> {
        let open: Vec<_> = input.list(|input| {
            let (unit, since) = (input.get()?, Nanos(input.get()?));
            Ok(u32::try_from(unit).ok().map(|unit| (ReclaimUnitId(unit), since)))
        })?;
        if open.len() != self.open.len() {
            return Err(damaged());
        }
        self.open = open;
        Ok(())
    }
}
