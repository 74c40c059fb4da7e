//! Energy and temperature of the drive as a whole.

use writecliff_base::Nanos;

use crate::attribution::Recorder;
use crate::event::{Lane, SsdEvent};
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
        self.thermal.as_ref().map(|thermal| thermal.counters(time, joules))
    }

    /// Called when a command starts: updates the temperature now and in each period from now on.
    pub(crate) fn resume_thermal(&mut self) {
        if self.thermal.as_ref().is_some_and(|thermal| !thermal.scheduled) {
            self.look_at_temperature();
        }
    }

    fn look_at_temperature(&mut self) {
        let now = self.backend.now;
        let joules = self.energy_until(now).map_or(0.0, |energy| energy.total());
        let Some(thermal) = &mut self.thermal else { return };
        thermal.look(now, joules);
        let until = thermal.period_end(now);
        let stop = thermal.stop_for(now, until);
        thermal.scheduled = true;
        self.backend.stop_channels(stop);
        self.backend.queue.push(Lane::DieLong, until, SsdEvent::ThermalPeriod);
    }

    /// Handles the end of a period. An idle host has no work to throttle, and the temperature at
    /// the next command follows from the energy consumed until then.
    pub(crate) fn thermal_period(&mut self) {
        if let Some(thermal) = &mut self.thermal {
            thermal.scheduled = false;
        }
        if self.commands.in_flight() > 0 {
            self.look_at_temperature();
        }
    }
}
