//! Temperature and thermal throttling: section `[thermal]` of a device file.
//!
//! The drive is modelled as one body with a heat capacity and a thermal resistance to its
//! surroundings, heated by the power of section `[power]`. The computed temperature is exact if
//! power is constant between two updates. The temperature is updated in each period while commands
//! are in flight, and when commands resume after idle time. From `throttle_at` until the
//! temperature has fallen to `recover_at`, the controller blocks its channels for a fraction of
//! each period. All work then takes `throttle_factor` times as long and consumes less power.
//! Several stages at rising temperatures throttle progressively.

use writecliff_base::keys::{NumberOrList, OfPhysical, OfPhysicals, PositivePhysical, Time};
use writecliff_base::located::{Answer, Change, Table};
use writecliff_base::units::Physical;
use writecliff_base::{Nanos, counters, reject, saved, section};

use crate::device_file::scaled::change;
use crate::mechanisms::power::Energy;
use crate::mechanisms::{
    Checked, Described, Mechanism, MechanismSection, Numbered, Resizing, steps,
};
use crate::{DeviceConfig, Lane, Recorder, Ssd};

const PERIOD: Nanos = Nanos(100_000_000);

/// Thermal model and throttling.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThermalConfig {
    /// Ambient temperature in degrees Celsius, which is also the initial drive temperature.
    pub ambient: f64,
    /// Thermal resistance in degrees Celsius per watt.
    pub resistance: f64,
    /// Heat capacity in joules per degree Celsius.
    pub capacity: f64,
    /// Throttling stages, by ascending temperature.
    pub stages: Vec<Throttle>,
    /// Interval between temperature measurements.
    pub period: Nanos,
}

/// Throttling stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throttle {
    /// Temperature in degrees Celsius at which the stage starts.
    pub at: f64,
    /// Temperature in degrees Celsius below which the stage ends.
    pub recover_at: f64,
    /// Factor on flash times and controller times while the stage is active.
    pub factor: f64,
}

/// Temperature counters of a drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThermalCounters {
    /// Temperature in degrees Celsius.
    pub celsius: f64,
    /// Throttled time since the drive was new.
    pub throttled: Nanos,
    /// Time spent in the last of several stages.
    pub throttled_most: Nanos,
}

counters! { |c: ThermalCounters|
    Real "temperature_c" DegreesCelsius level of_any_size: c.celsius,
        "drive temperature (`[thermal]`)";
    Integer "throttled_ns" Nanoseconds: c.throttled.0,
        "time with thermal throttling (`[thermal]`)";
    Integer "throttled_most_ns" Nanoseconds: c.throttled_most.0,
        "time in the last of several thermal throttling stages (`[thermal]`)";
}

section! {
    pub(crate) struct Keys {
        ambient: required OfPhysical(Physical::Temperature),
            "ambient temperature, which is also the drive temperature at the start";
        resistance: required PositivePhysical(Physical::ThermalResistance),
            "thermal resistance: degrees above ambient per watt in steady state";
        capacity: required PositivePhysical(Physical::HeatCapacity),
            "heat capacity in joules per degree; resistance × capacity is the time constant";
        throttle_at: optional OfPhysicals(Physical::Temperature),
            "temperature above which channels are stopped for a fraction of each period, per stage";
        recover_at: optional OfPhysicals(Physical::Temperature),
            "temperature at which throttling ends, below `throttle_at`; required with \
             `throttle_at`";
        throttle_factor: optional NumberOrList(1.0..=1000.0),
            "factor on the duration of flash operations during throttling; required with \
             `throttle_at`";
        period: default Time = PERIOD,
            "interval of temperature checks, and period of the stops; at least 1 ms";
    }
}

impl MechanismSection for ThermalConfig {
    type Keys = Keys;

    fn check(keys: Self::Keys, table: &Table<'_>, _: &mut Described<'_>) -> Checked<Self> {
        let Keys { ambient, resistance, capacity, period, .. } = keys;
        reject! { table, "period" if period < Nanos(1_000_000) => "it must be 1 ms or more"; }
        Ok(Some(Self { ambient, resistance, capacity, stages: stages(table, keys)?, period }))
    }

    fn scaled(&self, drive: &Resizing<'_>) -> Vec<Change> {
        let joules = format!("{:?} J/C", self.capacity / drive.scale);
        vec![change("thermal.capacity", joules)]
    }
}

/// Reads the throttling stages; each key is a value, or a list with one value per stage.
fn stages(table: &Table<'_>, keys: Keys) -> Answer<Vec<Throttle>> {
    let refusal = "it has no effect without throttle_at; set throttle_at or remove this key";
    let is_on = keys.throttle_at.is_some();
    let recover_at = table.needed_if(is_on, "recover_at", keys.recover_at, refusal)?;
    let factors = table.needed_if(is_on, "throttle_factor", keys.throttle_factor, refusal)?;
    let (Some(at), Some(recover_at), Some(factors)) = (keys.throttle_at, recover_at, factors)
    else {
        return Ok(Vec::new());
    };
    for (key, count) in [("recover_at", recover_at.len()), ("throttle_factor", factors.len())] {
        reject! { table,
            key if count != at.len() =>
                "{count} values for the {} of throttle_at" ["give one for each stage"], at.len();
        }
    }
    let rises = |values: &[f64]| values.windows(2).all(|pair| pair[0] < pair[1]);
    for (key, values) in
        [("throttle_at", &at), ("recover_at", &recover_at), ("throttle_factor", &factors)]
    {
        reject! { table, key if !rises(values) => "each stage must be above the one before"; }
    }
    let values = at.iter().zip(&recover_at).zip(&factors);
    values
        .map(|((&at, &recover_at), &factor)| {
            reject! { table,
                "recover_at" if recover_at >= at =>
                    "{recover_at} C is not below throttle_at ({at} C)";
            }
            Ok(Throttle { at, recover_at, factor })
        })
        .collect()
}

/// Runtime state of the section.
#[derive(Clone, Debug, Default)]
pub struct Thermal {
    config: ThermalConfig,
    celsius: f64,
    /// Time of the last temperature update. `joules` is the energy consumed until the update.
    at: Nanos,
    joules: f64,
    /// Number of active stages, counting from the first stage.
    stage: usize,
    throttled: Nanos,
    throttled_most: Nanos,
    /// `true` if the event of the next period is scheduled.
    scheduled: bool,
}

saved! {
    Thermal { celsius, at, joules, stage, throttled, throttled_most, scheduled } check is_possible
}

impl Thermal {
    fn is_possible(&mut self) -> bool {
        self.stage <= self.config.stages.len()
    }

    /// Returns the state of a drive at ambient temperature.
    pub fn new(config: ThermalConfig) -> Self {
        Self { celsius: config.ambient, config, ..Self::default() }
    }

    /// Returns the temperature at `now`, with `joules` consumed since the drive was new.
    pub fn celsius(&self, now: Nanos, joules: f64) -> f64 {
        let seconds = now.saturating_sub(self.at).as_secs_f64();
        if seconds <= 0.0 {
            return self.celsius;
        }
        let c = &self.config;
        let settles_at = c.ambient + (joules - self.joules) / seconds * c.resistance;
        let left = (-seconds / (c.resistance * c.capacity)).exp();
        settles_at + (self.celsius - settles_at) * left
    }

    /// Returns the temperature and throttled time at `now`, given that `joules` have been consumed.
    pub fn counters(&self, now: Nanos, joules: f64) -> ThermalCounters {
        let celsius = self.celsius(now, joules);
        let (throttled, throttled_most) = (self.throttled, self.throttled_most);
        ThermalCounters { celsius, throttled, throttled_most }
    }

    /// Updates the temperature and selects the throttling stage.
    pub fn look(&mut self, now: Nanos, joules: f64) {
        self.celsius = self.celsius(now, joules);
        (self.at, self.joules) = (now, joules);
        let stages = &self.config.stages;
        while stages.get(self.stage).is_some_and(|next| self.celsius > next.at) {
            self.stage += 1;
        }
        while self.stage > 0 && self.celsius <= stages[self.stage - 1].recover_at {
            self.stage -= 1;
        }
    }

    /// Returns the time for which channels are blocked in a period, which counts as throttled.
    pub fn stop_for(&mut self, now: Nanos, until: Nanos) -> Nanos {
        let Some(throttle) = self.stage.checked_sub(1).map(|last| self.config.stages[last]) else {
            return Nanos::ZERO;
        };
        debug_assert!(now < until, "a period without time");
        let period = until - now;
        self.throttled += period;
        if self.stage > 1 && self.stage == self.config.stages.len() {
            self.throttled_most += period;
        }
        debug_assert!(throttle.factor >= 1.0, "throttling slows the drive down");
        Nanos((period.0 as f64 * (1.0 - 1.0 / throttle.factor)) as u64)
    }

    /// Updates the temperature, and blocks channels for a fraction of the new period.
    fn begin_period<R: Recorder>(&mut self, drive: &mut Ssd<R>) {
        let now = drive.storage.backend.now;
        let joules = Energy::taken(drive, now).map_or(0.0, |energy| energy.total());
        self.look(now, joules);
        let until = Nanos((now.0 / self.config.period.0 + 1) * self.config.period.0);
        let stop = self.stop_for(now, until);
        self.scheduled = true;
        let backend = &mut drive.storage.backend;
        backend.channels.stop(now, stop, &mut backend.recorder);
        drive.storage.backend.queue.push(Lane::DieLong, until, Self::event(0));
    }
}

impl Mechanism for Thermal {
    const STEPS: u8 = steps::COMMANDS;

    fn of(config: &DeviceConfig) -> Option<Box<Self>> {
        config.sections.thermal.clone().map(|section| Box::new(Self::new(section)))
    }

    /// Starts the periodic temperature updates, unless they are already scheduled.
    fn command_begins<R: Recorder>(&mut self, drive: &mut Ssd<R>) {
        if !self.scheduled {
            self.begin_period(drive);
        }
    }

    /// Starts the next period, unless the host is idle. In that case, there is no work to throttle,
    /// and the temperature at the next command follows from the energy consumed until then.
    fn due<R: Recorder>(&mut self, drive: &mut Ssd<R>, _: u16) -> bool {
        self.scheduled = false;
        if drive.commands.in_flight() > 0 {
            self.begin_period(drive);
        }
        false
    }

    fn powered_up(&mut self) {
        self.scheduled = false;
    }
}
