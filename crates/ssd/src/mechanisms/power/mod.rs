//! Power consumption: section `[power]` of a device file.
//!
//! Energy is computed from busy times that are counted in any case: of dies by operation type, of
//! channels, of the link, and of commands in flight. Energy is therefore exact at any time, except
//! that operations count in full when they start.

use serde::{Deserialize, Serialize};
use writecliff_base::{Nanos, counters};

use crate::{Recorder, Ssd};

pub(crate) mod active_dies;
mod section;

pub use section::PowerConfig;

/// Busy times of dies and channels in nanoseconds, summed over all dies and channels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BusyTimes {
    /// Array times of reads.
    pub read: u64,
    pub(crate) program: u64,
    pub(crate) erase: u64,
    pub(crate) transfer: u64,
}

/// Total time with commands in flight.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ActiveTime {
    past: Nanos,
    /// Start of the current busy period; `Nanos::MAX` while the drive is idle.
    since: Nanos,
}

impl ActiveTime {
    pub(crate) const NONE: Self = Self { past: Nanos::ZERO, since: Nanos::MAX };

    #[inline]
    pub(crate) fn begin(&mut self, now: Nanos) {
        self.since = self.since.min(now);
    }

    pub(crate) fn end(&mut self, now: Nanos) {
        self.past += now.saturating_sub(self.since);
        self.since = Nanos::MAX;
    }

    pub(crate) fn until(&self, time: Nanos) -> Nanos {
        self.past + time.saturating_sub(self.since)
    }
}

/// Energy in joules since the drive was new.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Energy {
    /// Energy of the controller and other constant consumers.
    pub controller: f64,
    /// Flash operations.
    pub flash: f64,
    /// Energy of channels and link.
    pub transfer: f64,
}

counters! { |c: Energy| Real "energy_j" Joules: c.total(), "energy consumed (`[power]`)"; }

impl Energy {
    /// Returns the sum of all consumers.
    pub fn total(&self) -> f64 {
        self.controller + self.flash + self.transfer
    }

    /// Returns the energy that a drive has consumed until `time`, which must be close to the
    /// current time. Operations in progress count in full. The result is `None` if the device file
    /// has no power section.
    pub(crate) fn taken<R: Recorder>(drive: &Ssd<R>, time: Nanos) -> Option<Self> {
        let config = drive.config.sections.power.as_ref()?;
        let (active, link) = (drive.active.until(time), drive.commands.frontend.link_busy());
        Some(Self::of(config, &drive.storage.backend.busy, active, link, time))
    }

    /// Returns the energy consumed from new until `time`.
    pub fn of(
        config: &PowerConfig,
        busy: &BusyTimes,
        active: Nanos,
        link: Nanos,
        time: Nanos,
    ) -> Self {
        let joules = |watts: f64, nanos: u64| watts * Nanos(nanos).as_secs_f64();
        Self {
            controller: joules(config.idle, time.0) + joules(config.active, active.0),
            flash: joules(config.read, busy.read)
                + joules(config.program, busy.program)
                + joules(config.erase, busy.erase),
            transfer: joules(config.transfer, busy.transfer) + joules(config.link, link.0),
        }
    }
}
