//! What a drive takes of electrical power: the section `[power]` of a device file.
//!
//! Energy follows from times that are counted anyway: of dies by kind of operation, of channels, of
//! the link, of commands in flight. So it is exact at any moment, but for operations under way,
//! which count as they begin.

use writecliff_base::Nanos;
use writecliff_base::codec::CodecError;
use writecliff_base::counters;
use writecliff_base::located::{LocatedError, Table};
use writecliff_base::units::Physical;

use writecliff_base::words::{WordReader, WordWriter};

/// Watts, each on top of the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerConfig {
    /// Always: controller, DRAM, regulators, the link at rest.
    pub idle: f64,
    /// While the drive has commands.
    pub active: f64,
    /// Of each die that senses, programs, erases.
    pub read: f64,
    pub program: f64,
    pub erase: f64,
    /// Of each channel that carries commands or data.
    pub transfer: f64,
    /// While the link carries frames, each way.
    pub link: f64,
}

/// Read the section.
///
/// # Errors
/// Names the key where a value is missing or no power.
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

/// How long dies and channels have worked, summed over all of them, in nanoseconds.
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

/// Time with commands in flight.
#[derive(Clone, Copy, Debug)]
pub struct ActiveTime {
    past: Nanos,
    /// `Nanos::MAX` while there are none.
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

/// Joules since the drive was new.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Energy {
    /// Controller and everything else that is always on.
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

    /// What a drive has taken by `time` (since it was new).
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
