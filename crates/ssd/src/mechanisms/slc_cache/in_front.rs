//! Sink of an FTL with an SLC cache in front.

use writecliff_base::{Lpn, Ppa, ReclaimUnitId};
use writecliff_ftl::{FlashSink, FrontierId, ProgramUnit};

use super::SlcCache;
use crate::front::PlacementSink;

/// Origin of the data that the FTL receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The data come from the FTL or the host, and do not replace data in the log.
    Main,
    /// The data come from the host, and replace data in the log.
    Replaced(Ppa),
    /// The log.
    Folded(Ppa),
}

/// Forwards the FTL's operations, with the previous addresses of data from the log. If a reclaim
/// unit may hold data that the log has replaced, the log closes the unit being filled before the
/// erase, as the FTL does with its own program units.
pub(crate) struct InFront<'a, S> {
    pub log: Option<&'a mut SlcCache>,
    pub sink: &'a mut S,
    pub origin: Origin,
}

impl<'a, S> InFront<'a, S> {
    pub(crate) fn of(log: Option<&'a mut SlcCache>, sink: &'a mut S) -> Self {
        Self { log, sink, origin: Origin::Main }
    }
}

impl<S: PlacementSink> InFront<'_, S> {
    /// Closes the log's unit if it may replace data of a reclaim unit freed at `freed_at`.
    fn pad_filled_since(&mut self, freed_at: u64) {
        if let Some(log) = &mut self.log
            && log.is_volatile
            && log.since <= freed_at
        {
            log.pad(self.sink);
        }
    }
}

impl<S: PlacementSink> FlashSink for InFront<'_, S> {
    #[inline]
    fn read_for(&mut self, frontier: FrontierId, from: Ppa, slots: u32) {
        self.sink.read_for(frontier, from, slots);
    }

    #[inline]
    fn program(&mut self, frontier: FrontierId, unit: ProgramUnit) {
        self.sink.program(frontier, unit);
    }

    fn erase(&mut self, frontier: FrontierId, unit: ReclaimUnitId, freed_at: u64) {
        self.pad_filled_since(freed_at);
        self.sink.erase(frontier, unit, freed_at);
    }

    fn hold(&mut self, frontier: FrontierId, unit: ReclaimUnitId, freed_at: u64) {
        self.pad_filled_since(freed_at);
        self.sink.hold(frontier, unit, freed_at);
    }

    fn block_replaced(&mut self, die: u32, rows: u32) {
        self.sink.block_replaced(die, rows);
    }

    #[inline]
    fn placed(&mut self, lpn: Lpn, at: Ppa, before: Ppa) {
        match self.origin {
            Origin::Main => self.sink.placed(lpn, at, before),
            Origin::Replaced(before) => self.sink.placed(lpn, at, before),
            Origin::Folded(before) => self.sink.moved(lpn, at, before),
        }
    }

    #[inline]
    fn moved(&mut self, lpn: Lpn, at: Ppa, before: Ppa) {
        self.sink.moved(lpn, at, before);
    }
}
