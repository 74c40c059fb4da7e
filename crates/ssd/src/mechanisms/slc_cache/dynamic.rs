//! Dynamic SLC cache: free flash with one bit per cell, returned as the drive fills.

use writecliff_ftl::Ftl;

use super::SlcCache;
use crate::front::PlacementSink;

/// Size limits of a dynamic cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Borrowed {
    /// Bits per cell of the main flash: the slots of it that one slot of the cache occupies.
    pub bits: u64,
    /// Number of slots that the cache may always hold, in its own flash.
    pub least: usize,
}

impl Borrowed {
    /// Returns the number of slots that the cache may currently hold, at most `most`.
    fn limit(self, ftl: &Ftl, most: usize) -> usize {
        let user = u64::from(ftl.user_slots());
        let free = user.saturating_sub(ftl.mapped_slots());
        ((free / self.bits) as usize).clamp(self.least.min(most), most)
    }

    /// Implements `SlcCache::admit` for a dynamic cache. The cache returns flash as the main flash
    /// needs it: writes that bypass a full cache also take space from the cache.
    ///
    /// A bypassed cache folds one program unit at a time. If data were folded slot by slot, they
    /// would alternate with the host's data in every page, and each page of a sequential read would
    /// hold only some of the requested data.
    #[cold]
    pub(super) fn admit<S: PlacementSink>(
        self,
        log: &mut SlcCache,
        ftl: &mut Ftl,
        sink: &mut S,
    ) -> bool {
        let mut room = self.limit(ftl, log.capacity);
        if log.entries.len() < room {
            return true;
        }
        // A bypassed cache stays full until it exceeds its limit by a program unit.
        let unit = ftl.geometry().slots_per_program_unit as usize;
        let is_due = !log.bypass || log.entries.len() >= room + unit.min(room);
        let keeps = usize::from(log.bypass);
        while is_due && log.entries.len() + 1 > room + keeps && log.fold(ftl, sink) {
            log.drop_dead();
            room = self.limit(ftl, log.capacity);
        }
        !log.bypass && room > 0
    }
}
