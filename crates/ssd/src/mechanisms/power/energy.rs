//! Energy and temperature of the drive as a whole.

use writecliff_base::Nanos;

use crate::attribution::Recorder;
use crate::mechanisms::power::Energy;
use crate::mechanisms::thermal::ThermalCounters;
use crate::ssd::Ssd;

impl<R: Recorder> Ssd<R> {
    /// Energy consumed until `time`, which must be close to now. Operations in progress count in
    /// full.
    pub fn energy_until(&self, time: Nanos) -> Option<Energy> {
        let config = self.config.sections.power.as_ref()?;
        let (active, link) = (self.active.until(time), self.frontend.link_busy());
        Some(Energy::of(config, &self.backend.busy, active, link, time))
    }

    /// Temperature at `time`, which must be close to now, and throttling until then.
    pub fn thermal_at(&self, time: Nanos) -> Option<ThermalCounters> {
        let joules = self.energy_until(time)?.total();
        self.mechanisms.thermal.as_ref().map(|thermal| thermal.counters(time, joules))
    }
}
