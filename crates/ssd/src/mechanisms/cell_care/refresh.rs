//! Data refresh, before the data have more errors than the code corrects.

use writecliff_base::{Nanos, saved};
use writecliff_ftl::FrontierId;

use crate::mechanisms::{Mechanism, Steps};
use crate::{DeviceConfig, Front, Recorder, Ssd, Storage};

/// Refresh of data, one reclaim unit per interval. The refresh state is in the mechanism of
/// `[ecc]`.
pub(crate) struct Refreshing;

saved! { Refreshing {} }

impl Mechanism for Refreshing {
    const STEPS: Steps = Steps { commands: true, ..Steps::NONE };

    fn of(config: &DeviceConfig) -> Option<Box<Self>> {
        config.sections.cell_care.and_then(|care| care.refresh).map(|_| Box::new(Self))
    }

    fn next_work<R: Recorder>(&self, drive: &Ssd<R>, until: Nanos) -> Option<Nanos> {
        let ecc = drive.storage.backend.mechanisms.ecc.as_ref()?;
        ecc.care.as_ref().and_then(|care| care.due(until))
    }

    /// Relocates the reclaim unit with the most errors, if it has too many.
    #[cold]
    fn work<R: Recorder>(&mut self, drive: &mut Ssd<R>) {
        let Storage { ftl, backend, front, .. } = &mut drive.storage;
        let streams = ftl.config().streams;
        let frontiers = || (0..streams).map(FrontierId);
        let open: Vec<_> = frontiers().filter_map(|frontier| ftl.host_unit(frontier)).collect();
        let now = backend.now;
        let Some(ecc) = &mut backend.mechanisms.ecc else { return };
        let Some(unit) = ecc.begin_refresh(ftl.table(), &open, now) else { return };
        // If the host is idle, data in an open unit would never be refreshed.
        if let Some(frontier) = frontiers().find(|&f| ftl.host_unit(f) == Some(unit)) {
            ftl.abandon(frontier, backend);
        }
        let is_refreshed = ftl.relocate_unit(unit, &mut front.sink(backend));
        if let Some(care) = backend.mechanisms.ecc.as_mut().and_then(|ecc| ecc.care.as_mut()) {
            care.refreshed_units += u64::from(is_refreshed);
        }
    }
}
