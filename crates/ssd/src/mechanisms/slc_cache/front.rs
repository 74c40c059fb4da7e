//! SLC cache as the front of the FTL.

use writecliff_base::{Lpn, Ppa};
use writecliff_ftl::{FrontierId, Ftl, Unwritten};

use super::{EMPTY, InFront, SlcCache};
use crate::front::{Placed, PlacementSink, Write};

impl SlcCache {
    /// Writes to the log while the log has space, and bypasses it otherwise.
    pub(crate) fn place<S: PlacementSink>(
        &mut self,
        write: Write<'_>,
        ftl: &mut Ftl,
        sink: &mut S,
    ) -> Placed {
        let folds = self.counters.folds;
        for (lpn, bytes) in write.slots() {
            let cached = self.admit(ftl, sink);
            if sink.awaits() {
                let mut frontier = self.frontier;
                if !cached {
                    frontier = ftl.host_frontier(write.stream);
                    ftl.prepare(frontier, &mut InFront::of(Some(self), sink));
                }
                sink.await_unit(frontier);
            }
            if cached {
                self.write(lpn, write.stream, bytes, ftl, sink);
            } else {
                self.write_past(lpn, write.stream, bytes, ftl, sink);
            }
        }
        // Folded data pass through the buffer like host data.
        Placed { extra_slots: (self.counters.folds - folds) as i64, ..Placed::default() }
    }

    pub(crate) fn location(&self, lpn: Lpn) -> Ppa {
        self.position_of(lpn).map_or(Ppa::NONE, |position| self.address(position))
    }

    pub(crate) fn find(&self, lpn: Lpn) -> Option<(u32, bool)> {
        let position = self.position_of(lpn)?;
        Some((self.unit_at(position), self.is_filling(position)))
    }

    pub(crate) fn trim(&mut self, lpn: Lpn) {
        self.counters.trimmed += u64::from(self.kill(lpn));
    }

    /// Discards all data but preserves the counters.
    pub(crate) fn purge(&mut self) -> u64 {
        (self.tail, self.fetched, self.owed, self.direct, self.since) = (0, 0, 0, 0, 0);
        self.erased_to = self.ring();
        self.entries.clear();
        self.newest.clear();
        self.cached.fill(0);
        self.blocks
    }

    pub(crate) fn programmed_slots(&self) -> u64 {
        self.counters.writes + self.counters.padding
    }

    pub(crate) fn erases(&self) -> u64 {
        debug_assert!(self.erased_to >= self.ring(), "the log was erased when new");
        (self.erased_to - self.ring()) / self.block_slots
    }

    pub(crate) fn host_bytes(&self, of_ftl: u64) -> u64 {
        of_ftl - self.counters.folds * super::SLOT + self.host_bytes
    }

    pub(crate) fn filled(&self) -> u32 {
        (self.head() % self.unit_slots) as u32
    }

    pub(crate) fn pad<S: PlacementSink>(&mut self, sink: &mut S) {
        let filled = self.filled();
        if filled == 0 {
            return;
        }
        let unit = self.unit_at(self.head());
        let padding = self.unit_slots as usize - filled as usize;
        self.entries.extend(std::iter::repeat_n(EMPTY, padding));
        debug_assert_eq!(self.filled(), 0, "a padded unit is full");
        self.counters.padding += padding as u64;
        sink.program_slc(unit, filled, self.since);
    }

    /// Returns `true` for streams that have bypassed the cache. Open units of other streams hold
    /// only folded data, whose copies are still in the cache.
    pub(crate) fn is_open(&self, stream: u16) -> bool {
        self.direct >> stream & 1 != 0
    }

    pub(crate) fn wants_idle_time(&self) -> bool {
        !self.newest.is_empty() || self.wants_erase()
    }

    /// Folds data, and erases a block in advance when all data are folded.
    pub(crate) fn idle_work<S: PlacementSink>(
        &mut self,
        burst: i64,
        ftl: &mut Ftl,
        sink: &mut S,
    ) -> Option<i64> {
        let mut folded = 0;
        while folded < burst && self.fold(ftl, sink) {
            folded += 1;
        }
        (folded > 0 || self.erase_ahead(ftl, sink)).then_some(folded)
    }

    pub(crate) fn units_in_open_block(&self) -> u64 {
        self.head() % self.block_slots / self.unit_slots
    }

    pub(crate) fn unerase(&mut self, count: u64) {
        self.erased_to -= count * self.block_slots;
    }

    pub(crate) fn return_to(&mut self, change: &Unwritten, ftl: &mut Ftl) {
        let Unwritten { lpn, at, before, .. } = *change;
        let in_log = |ppa: Ppa| self.addresses().contains(&ppa.0);
        let (was_in_log, is_in_log) = (in_log(before), in_log(at));
        let logged = if is_in_log { self.lose(lpn) } else { None };
        if !was_in_log {
            return ftl.return_to(lpn, before);
        }
        // Folded data belong to the stream that they were folded into.
        let unit = (!is_in_log && !at.is_none()).then(|| ftl.geometry().reclaim_unit_of(at));
        let passed_on = unit.map(|unit| ftl.table().owner[unit.index()].stream);
        ftl.return_to(lpn, Ppa::NONE);
        self.revive(lpn, before, logged.or(passed_on));
    }

    /// Erases a block of the empty cache ahead of writes, once the folded data are on flash.
    fn erase_ahead<S: PlacementSink>(&mut self, ftl: &mut Ftl, sink: &mut S) -> bool {
        if !self.wants_erase() {
            return false;
        }
        let mut has_closed = false;
        for stream in 0..ftl.config().streams {
            has_closed |= ftl.pad(FrontierId(stream), sink);
        }
        // A power loss could restore these data, so the erase waits until all of them are on flash.
        if !(has_closed && self.is_volatile) {
            self.erase_next(ftl, sink);
        }
        true
    }
}
