//! Endurance throttling: section `[endurance]` of a device file.
//!
//! The plan spreads the rated erases evenly over the drive's life. A drive may be ahead of the plan
//! by a reserve; beyond that, host writes wait until the plan has caught up with what was
//! programmed, and continue at the rate of the plan. Writes on the fast-forward clock count as wear
//! too.

use writecliff_base::Nanos;
use writecliff_base::codec::CodecError;
use writecliff_base::counters;
use writecliff_base::located::{LocatedError, Table};

use crate::config::DeviceConfig;
use writecliff_base::words::{WordReader, WordWriter};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EnduranceConfig {
    /// Planned life, in which the rated erases are to be used up.
    pub life: Nanos,
    /// Share of the rated erases that the drive may be ahead of the plan.
    pub reserve: f64,
}

/// Reads the section; `throttle = false` has the same effect as no section.
///
/// # Errors
/// Returns an error at the key that is missing or invalid.
pub fn read(table: Table<'_>) -> Result<Option<EnduranceConfig>, LocatedError> {
    let throttle = table.or("throttle", true, Table::optional_flag)?;
    let life = table.required_time("life")?;
    if life == Nanos::ZERO {
        return Err(table.error("life", "it must be above zero", None));
    }
    let reserve = table.or("reserve", 10.0, |t, key| t.optional_percent(key, 0.0..=100.0))? / 100.0;
    table.finish()?;
    Ok(throttle.then_some(EnduranceConfig { life, reserve }))
}

/// Total time for which the plan has delayed writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldUp(pub Nanos);

counters! { |c: HeldUp|
    Integer "held_up_ns" Nanoseconds: c.0.0,
        "time for which endurance throttling delayed writes (`[endurance]`)";
}

/// Runtime state of the section.
#[derive(Clone, Debug)]
pub struct Endurance {
    config: EnduranceConfig,
    /// Bytes that can be programmed until the rated erases are used up.
    rated_bytes: f64,
    /// Whether an event is scheduled that admits writes again.
    pub(crate) wake_scheduled: bool,
    held_up: HeldUp,
}

impl Endurance {
    pub fn of(config: &DeviceConfig) -> Option<Self> {
        let rated = f64::from(config.ftl.rated_cycles) * config.raw_capacity().0 as f64;
        config.endurance.map(|section| Self {
            config: section,
            rated_bytes: rated,
            wake_scheduled: false,
            held_up: HeldUp::default(),
        })
    }

    /// When the next write may begin, if not now; `programmed` is the number of bytes programmed
    /// since the drive was new.
    pub fn opens_at(&self, now: Nanos, programmed: u64) -> Option<Nanos> {
        let ahead = programmed as f64 / self.rated_bytes - self.config.reserve;
        let opens = Nanos((ahead.max(0.0) * self.config.life.0 as f64) as u64);
        (opens > now).then_some(opens)
    }

    /// Records that writes wait from `now` until `opens`.
    pub fn hold_up(&mut self, now: Nanos, opens: Nanos) {
        self.wake_scheduled = true;
        self.held_up.0 += opens - now;
    }

    /// Time for which the plan has delayed writes since the drive was new.
    pub fn held_up(&self) -> HeldUp {
        self.held_up
    }

    pub(crate) fn save(&self, out: &mut WordWriter) {
        out.put(self.wake_scheduled);
        out.put(self.held_up.0.0);
    }

    pub(crate) fn restore(&mut self, input: &mut WordReader<'_>) -> Result<(), CodecError> {
        self.wake_scheduled = input.flag()?;
        self.held_up = HeldUp(Nanos(input.get()?));
        Ok(())
    }
}
