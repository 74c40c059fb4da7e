//! Power consumption: section `[power]` of a device file.
//!
//! Energy is computed from busy times that are counted in any case: of dies by operation type, of
//! channels, of the link, and of commands in flight. Energy is therefore exact at any time, except
//! that operations count in full when they start.

pub(crate) mod active_dies;

use serde::{Deserialize, Serialize};
use writecliff_base::keys::{Kind, NumberOrList, OfPhysical};
use writecliff_base::located::{Answer, Table};
use writecliff_base::units::Physical;
use writecliff_base::{Nanos, counters, section};

use crate::mechanisms::{Checked, Described, MechanismSection};
use crate::{Recorder, Ssd};

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
    /// current time. Operations in progress count in full. `None` without section `[power]`.
    pub(crate) fn taken<R: Recorder>(drive: &Ssd<R>, time: Nanos) -> Option<Self> {
        let config = drive.config.sections.power.as_ref()?;
        let busy = &drive.storage.backend.busy;
        let (active, link) = (drive.active.until(time), drive.commands.frontend.link_busy());
        let joules = |watts: f64, nanos: u64| watts * Nanos(nanos).as_secs_f64();
        Some(Self {
            controller: joules(config.idle, time.0) + joules(config.active, active.0),
            flash: joules(config.read, busy.read)
                + joules(config.program, busy.program)
                + joules(config.erase, busy.erase),
            transfer: joules(config.transfer, busy.transfer) + joules(config.link, link.0),
        })
    }
}

/// Maximum number of dies in a drive.
const DIES_MAX: f64 = 4096.0;
/// Maximum number of power states of an NVMe drive.
const STATES_MAX: usize = 32;

section! {
    /// Power in watts; all contributions are added.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PowerConfig {
        idle: required OfPhysical(Physical::Power),
            "constant power: controller, DRAM, regulators, idle link";
        active: default OfPhysical(Physical::Power) = 0.0,
            "additional power while the drive has commands";
        read: default OfPhysical(Physical::Power) = 0.0,
            "power per sensing die, or per sensing plane with `independent_plane_reads`";
        program: default OfPhysical(Physical::Power) = 0.0, "power per programming die";
        erase: default OfPhysical(Physical::Power) = 0.0, "power per erasing die";
        transfer: default OfPhysical(Physical::Power) = 0.0,
            "power per channel that transfers commands or data";
        link: default OfPhysical(Physical::Power) = 0.0,
            "power per link direction that transfers frames";
        max_active_dies: default ActiveDies = Vec::new(),
            "number of dies that may read, program or erase at the same time; a list has one \
             limit per power state";
    }
}

impl PowerConfig {
    /// Returns the power of a drive with this many active dies: the sum of all contributions.
    pub fn most(&self, dies: u32, channels: u32, directions: u32) -> f64 {
        let die = self.read.max(self.program).max(self.erase);
        let (dies, channels) = (f64::from(dies) * die, f64::from(channels) * self.transfer);
        self.idle + self.active + dies + channels + f64::from(directions) * self.link
    }
}

impl MechanismSection for PowerConfig {
    type Keys = Self;

    fn check(config: Self::Keys, table: &Table<'_>, drive: &mut Described<'_>) -> Checked<Self> {
        for &limit in &config.max_active_dies {
            let dies = f64::from(drive.geometry.dies);
            table.in_range("max_active_dies", f64::from(limit), &(1.0..=dies), "")?;
        }
        Ok(Some(config))
    }
}

/// Limits of the power states: one number, or a descending list with one number per state.
struct ActiveDies;

impl Kind for ActiveDies {
    type Value = Vec<u32>;

    fn read(&self, table: &Table<'_>, key: &str) -> Answer<Option<Vec<u32>>> {
        let Some(limits) = NumberOrList(1.0..=DIES_MAX).read(table, key)? else {
            return Ok(None);
        };
        let wrong = if limits.iter().any(|limit| limit.fract() != 0.0) {
            "dies are counted in whole numbers"
        } else if limits.windows(2).any(|pair| pair[1] >= pair[0]) {
            "each power state must have fewer active dies than the one before"
        } else if limits.len() > STATES_MAX {
            "a drive has 32 power states at most"
        } else {
            return Ok(Some(limits.iter().map(|&limit| limit as u32).collect()));
        };
        Err(table.error(key, wrong, None))
    }

    fn takes(&self) -> String {
        "whole number or list, 1 to the number of dies".to_owned()
    }

    fn shown(&self, _: &Vec<u32>) -> String {
        String::new()
    }
}
