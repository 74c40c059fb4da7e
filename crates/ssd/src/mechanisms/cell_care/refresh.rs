//! Refreshing data before they have more errors than the code corrects.

use writecliff_base::Nanos;
use writecliff_ftl::frontier::FrontierId;

use crate::attribution::Recorder;
use crate::front::Front;
use crate::ssd::Ssd;

impl<R: Recorder> Ssd<R> {
    /// Runs the refreshes that are due until now, one reclaim unit per interval.
    #[inline]
    pub(crate) fn refresh(&mut self) {
        let now = self.backend.now;
        while self.refresh_due(now).is_some() {
            self.refresh_one();
        }
    }

    /// When the next refresh is due, if not after `until`.
    #[inline]
    pub(crate) fn refresh_due(&self, until: Nanos) -> Option<Nanos> {
        self.backend.ecc.as_ref().and_then(|ecc| ecc.refresh_due(until))
    }

    /// Relocates the reclaim unit with the most errors, if it has too many.
    #[cold]
    pub(crate) fn refresh_one(&mut self) {
        let now = self.backend.now;
        let frontiers = || (0..self.config.ftl.streams).map(FrontierId);
        let open: Vec<_> =
            frontiers().filter_map(|frontier| self.ftl.host_unit(frontier)).collect();
        let Some(ecc) = &mut self.backend.ecc else { return };
        let Some(unit) = ecc.begin_refresh(self.ftl.table(), &open, now) else { return };
        // Data in an open unit of an idle host would never be refreshed.
        if let Some(frontier) = frontiers().find(|&f| self.ftl.host_unit(f) == Some(unit)) {
            self.ftl.abandon(frontier, &mut self.backend);
        }
        let sink = &mut self.front.sink(&mut self.backend);
        let is_refreshed = self.ftl.relocate_unit(unit, sink);
        if let (true, Some(ecc)) = (is_refreshed, &mut self.backend.ecc) {
            ecc.refreshed();
        }
    }
}
