//! Power consumption: section `[power]` of a device file.
//!
//! Energy is computed from busy times that are counted anyway: of dies by kind of operation, of
//! channels, of the link, and of commands in flight. It is therefore exact at any time, except that
//! operations in progress count in full when they begin.

use writecliff_base::Nanos;
use writecliff_base::codec::CodecError;
use writecliff_base::counters;
use writecliff_base::located::{LocatedError, Table};
use writecliff_base::units::Physical;

use writecliff_base::words::{WordReader, WordWriter};

/// Power in watts; all contributions add up.
#[derive(Clone, Copy, Debug, PartialEq)]
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
}

/// Reads the section.
///
/// # Errors
/// Returns an error at the key that is missing or not a power.
pub fn read(table: Table<'_>) -> Result<PowerConfig, LocatedError> {
    let watts = |key| table.or(key, 0.0, |t, key| t.optional_physical(key, Physical::Power));
    let config = PowerConfig {
        idle: table.required_physical("idle", Physical::Power)?,
        active: watts("active")?,
        read: watts("read")?,
        program: watts("program")?,
        erase: watts("erase")?,
        transfer: watts("transfer")?,
        link: watts("link")?,
    };
    table.finish()?;
    Ok(config)
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
