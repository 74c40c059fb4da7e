//! A dynamic SLC cache: it uses flash of the drive that holds no data, at one bit a cell, and gives
//! it back as the drive fills.

use writecliff_ftl::Ftl;

use super::{LogSink, SlcCache};

/// How much such a cache may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Borrowed {
    /// Bits of a cell of the main flash: slots of it that one slot of the cache takes.
    pub bits: u64,
    /// Slots that it may always hold, in flash of its own.
    pub least: usize,
}

impl Borrowed {
    /// Slots that the cache may hold now, at most `most`.
    pub(crate) fn limit(self, ftl: &Ftl, most: usize) -> usize {
        let user = u64::from(ftl.user_slots());
        let free = user.saturating_sub(ftl.mapped_slots());
        ((free / self.bits) as usize).clamp(self.least.min(most), most)
    }
}

impl SlcCache {
    /// `SlcCache::admit` for a dynamic cache. It returns flash as the main flash needs it: what is
    /// written past a full cache takes space from it, too.
    ///
    /// A cache that is passed by folds a program unit at a time. Slot by slot, folded data would
    /// alternate with the host's in every page, and a read in order would find a part of what it
    /// wants in each page that it fetches.
    #[cold]
    pub(crate) fn admit_borrowing<S: LogSink>(&mut self, ftl: &mut Ftl, sink: &mut S) -> bool {
        let Some(borrowed) = self.borrowed else { return true };
        let mut room = borrowed.limit(ftl, self.capacity);
        if self.entries.len() < room {
            return true;
        }
        // A full cache that is passed by stays full, until it holds a program unit too much.
        let unit = ftl.geometry().slots_per_program_unit as usize;
        let is_due = !self.bypass || self.entries.len() >= room + unit.min(room);
        let keeps = usize::from(self.bypass);
        while is_due && self.entries.len() + 1 > room + keeps && self.fold(ftl, sink) {
            self.drop_dead();
            room = borrowed.limit(ftl, self.capacity);
        }
        !self.bypass && room > 0
    }
}
