//! Die failure: reads are served from the other dies of the stripe, and the firmware relocates the
//! failed die's data.

use writecliff_base::{Nanos, ReclaimUnitId, saved};

use super::DieParityCounters;
use crate::mechanisms::{Mechanism, Steps};
use crate::{DeviceConfig, Recorder, Ssd, Storage};

impl DieParityCounters {
    pub(crate) fn of<R: Recorder>(storage: &Storage<R>) -> Option<Self> {
        let counts = storage.backend.mechanisms.die_parity.as_ref()?.counts;
        Some(Self { counts, parity_slots: parity_slots(storage) })
    }
}

/// Returns the number of parity slots programmed so far.
fn parity_slots<R: Recorder>(storage: &Storage<R>) -> u64 {
    let unit = storage.backend.geometry.slots_per_program_unit;
    storage.ftl.parity_programs() * u64::from(unit)
}

/// Relocation of data from a lost die, one reclaim unit per interval. The state of the relocation
/// is in the dies.
pub(crate) struct Relocation;

saved! { Relocation {} }

impl Mechanism for Relocation {
    const STEPS: Steps = Steps { commands: true, ..Steps::NONE };

    fn of(config: &DeviceConfig) -> Option<Box<Self>> {
        config.sections.die_parity.map(|_| Box::new(Self))
    }

    fn next_work<R: Recorder>(&self, drive: &Ssd<R>, until: Nanos) -> Option<Nanos> {
        let parity = drive.storage.backend.mechanisms.die_parity.as_ref()?;
        parity.next.map(|(_, at)| at).filter(|&at| at <= until)
    }

    /// Relocates the lost die's data in the reclaim unit that is due.
    #[cold]
    fn work<R: Recorder>(&mut self, drive: &mut Ssd<R>) {
        let Storage { ftl, backend, .. } = &mut drive.storage;
        let Some(parity) = &mut backend.mechanisms.die_parity else { return };
        let (Some(die), Some((unit, at))) = (parity.lost, &mut parity.next) else { return };
        if backend.fills.outstanding().count() >= backend.geometry.dies as usize {
            // Relocation is no faster than the dies can program.
            *at += parity.config.relocate_interval;
            return;
        }
        let moved = ftl.relocate_from_die(ReclaimUnitId(*unit), die, backend);
        let units = backend.geometry.reclaim_units;
        if let Some(parity) = &mut backend.mechanisms.die_parity {
            parity.relocated(units, moved);
        }
    }

    fn own_slots<R: Recorder>(&self, drive: &Ssd<R>) -> u64 {
        parity_slots(&drive.storage)
    }
}
