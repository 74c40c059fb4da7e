//! Power consumption: section `[power]` of a device file.
//!
//! Energy is computed from busy times that are counted anyway: of dies by kind of operation, of
//! channels, of the link, and of commands in flight. It is therefore exact at any time, except that
//! operations in progress count in full when they begin.

pub(crate) mod active_dies;
mod energy;

use writecliff_base::Nanos;
use writecliff_base::codec::CodecError;
use writecliff_base::counters;
use writecliff_base::located::{LocatedError, Table};
use writecliff_base::units::Physical;

use writecliff_base::words::{WordReader, WordWriter};

/// Power in watts; all contributions add up.
#[derive(Clone, Debug, PartialEq)]
pub struct PowerConfig {
    /// Constant power: controller, DRAM, regulators, idle link.
    pub idle: f64,
    /// Additional power while commands are in flight.
    pub active: f64,
    /// Power per die that is sensing, programming or erasing.
    pub read: f64,
    pub program: f64,
    pub erase: f64,
    /// Power per channel that transfers commands or data.
    pub transfer: f64,
    /// Power while the link transfers frames, per direction.
    pub link: f64,
    /// Dies that may read, program or erase at once, by power state; empty: all, in the only one.
    pub max_active_dies: Vec<u32>,
}

/// Power states of an NVMe drive at most.
const STATES_MAX: usize = 32;

impl PowerConfig {
    /// The most power that a drive draws with so many dies at work: all contributions at once.
    pub fn most(&self, dies: u32, channels: u32, directions: u32) -> f64 {
        let die = self.read.max(self.program).max(self.erase);
        let (dies, channels) = (f64::from(dies) * die, f64::from(channels) * self.transfer);
        self.idle + self.active + dies + channels + f64::from(directions) * self.link
    }
}

/// Reads the section.
///
/// # Errors
/// Returns an error at the key that is missing or not a power.
pub fn read(table: Table<'_>, dies: u32) -> Result<PowerConfig, LocatedError> {
    let watts = |key| table.or(key, 0.0, |t, key| t.optional_physical(key, Physical::Power));
    let config = PowerConfig {
        idle: table.required_physical("idle", Physical::Power)?,
        active: watts("active")?,
        read: watts("read")?,
        program: watts("program")?,
        erase: watts("erase")?,
        transfer: watts("transfer")?,
        link: watts("link")?,
        max_active_dies: max_active_dies(&table, dies)?,
    };
    table.finish()?;
    Ok(config)
}

/// The limits of the power states: one number, or one for each state, each below the one before.
fn max_active_dies(table: &Table<'_>, dies: u32) -> Result<Vec<u32>, LocatedError> {
    const KEY: &str = "max_active_dies";
    let limits: Vec<f64> =
        table.optional_one_or_more(KEY, 1.0..=f64::from(dies))?.unwrap_or_default();
    let limits = limits.iter();
    let wrong = if limits.clone().any(|limit| limit.fract() != 0.0) {
        "dies are counted in whole numbers"
    } else if limits.clone().zip(limits.clone().skip(1)).any(|(before, next)| next >= before) {
        "each power state must have fewer active dies than the one before"
    } else if limits.len() > STATES_MAX {
        "a drive has 32 power states at most"
    } else {
        return Ok(limits.map(|&limit| limit as u32).collect());
    };
    Err(table.error(KEY, wrong, None))
}

/// Busy times of dies and channels, summed over all of them, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusyTimes {
    pub read: u64,
    pub program: u64,
    pub erase: u64,
    pub transfer: u64,
}

impl BusyTimes {
    pub(crate) fn save(&self, out: &mut WordWriter) {
        for time in [self.read, self.program, self.erase, self.transfer] {
            out.put(time);
        }
    }

    pub(crate) fn restore(input: &mut WordReader<'_>) -> Result<Self, CodecError> {
        Ok(Self {
            read: input.get()?,
            program: input.get()?,
            erase: input.get()?,
            transfer: input.get()?,
        })
    }
}

/// Total time with commands in flight.
#[derive(Clone, Copy, Debug)]
pub struct ActiveTime {
    past: Nanos,
    /// Start of the current busy period; `Nanos::MAX` if there is none.
    since: Nanos,
}

impl ActiveTime {
    pub const NONE: Self = Self { past: Nanos::ZERO, since: Nanos::MAX };

    #[inline]
    pub fn begin(&mut self, now: Nanos) {
        self.since = self.since.min(now);
    }

    pub fn end(&mut self, now: Nanos) {
        self.past += now.saturating_sub(self.since);
        self.since = Nanos::MAX;
    }

    pub fn until(&self, time: Nanos) -> Nanos {
        self.past + time.saturating_sub(self.since)
    }

    pub(crate) fn save(&self, out: &mut WordWriter) {
        out.put(self.past.0);
        out.put(self.since.0);
    }

    pub(crate) fn restore(input: &mut WordReader<'_>) -> Result<Self, CodecError> {
        Ok(Self { past: Nanos(input.get()?), since: Nanos(input.get()?) })
    }
}

/// Energy in joules since the drive was new.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Energy {
    /// Controller and other constant consumers.
    pub controller: f64,
    pub flash: f64,
    /// Channels and link.
    pub transfer: f64,
}

counters! { |c: Energy| Real "energy_j" Joules: c.total(), "energy taken (`[power]`)"; }

impl Energy {
    pub fn total(&self) -> f64 {
        self.controller + self.flash + self.transfer
    }

    /// Energy consumed from new until `time`.
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
