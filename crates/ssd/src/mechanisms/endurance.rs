//! Endurance throttling: section `[endurance]` of a device file.
//!
//! The plan spreads the rated erases evenly over the planned life. A drive may be ahead of the plan
//! by a reserve. If wear exceeds the reserve, host writes wait until the plan has caught up with
//! the programmed data, and then continue at the plan's rate. Fast-forwarded writes count as wear.

use serde::{Deserialize, Serialize};
use writecliff_base::keys::{Flag, Percent, PositiveTime};
use writecliff_base::located::{Change, Table};
use writecliff_base::{Nanos, counters, saved, section};
use writecliff_host_interface::Cause;

use crate::device_file::scaled::shorter;
use crate::mechanisms::{
    Checked, Described, Mechanism, MechanismSection, Numbered, Resizing, steps,
};
use crate::{DeviceConfig, Lane, Recorder, Ssd};

section! {
    /// Endurance plan, which throttles writes that are ahead of the planned life.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub struct EnduranceConfig {
        throttle: default Flag = true, "`false` disables the section";
        life: required PositiveTime,
            "planned life from new, over which the plan spreads `rated_cycles` evenly";
        reserve: default Percent(0.0..=100.0) = 10.0,
            "percentage of the rated erases by which the drive may be ahead of the plan at full \
             speed";
    }
}

impl MechanismSection for EnduranceConfig {
    type Keys = Self;

    fn check(config: Self::Keys, _: &Table<'_>, _: &mut Described<'_>) -> Checked<Self> {
        Ok(Some(config).filter(|config| config.throttle))
    }

    fn scaled(&self, drive: &Resizing<'_>) -> Vec<Change> {
        vec![shorter("endurance.life", self.life, drive.scale)]
    }

    fn places_alike(ours: Option<&Self>, theirs: Option<&Self>) -> bool {
        ours.or(theirs).is_none()
    }
}

/// Total time for which the plan has delayed writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThrottleTime(pub Nanos);

counters! { |c: ThrottleTime|
    Integer "held_up_ns" Nanoseconds: c.0.0,
        "time for which endurance throttling delayed writes (`[endurance]`)";
}

/// Runtime state of the section.
#[derive(Clone, Debug, Default)]
pub struct Endurance {
    config: EnduranceConfig,
    /// Bytes that can be programmed until the rated erases are used up.
    rated_bytes: f64,
    /// `true` if an event is scheduled that admits writes again.
    wake_scheduled: bool,
    pub(crate) throttle_time: ThrottleTime,
}

saved! { Endurance { wake_scheduled, throttle_time } }

impl Endurance {
    /// Returns the state of a new drive; `None` if the drive has no endurance plan.
    pub fn of(config: &DeviceConfig) -> Option<Box<Self>> {
        let section = config.sections.endurance?;
        let rated_bytes = f64::from(config.ftl.rated_cycles) * config.geometry.raw_bytes().0 as f64;
        Some(Box::new(Self { config: section, rated_bytes, ..Self::default() }))
    }

    /// Returns the time at which the next write may start, if not now; `programmed` is in bytes.
    pub fn opens_at(&self, now: Nanos, programmed: u64) -> Option<Nanos> {
        let ahead = programmed as f64 / self.rated_bytes - self.config.reserve / 100.0;
        let opens = Nanos((ahead.max(0.0) * self.config.life.0 as f64) as u64);
        (opens > now).then_some(opens)
    }
}

impl Mechanism for Endurance {
    const STEPS: u8 = steps::ADMISSION;

    fn of(config: &DeviceConfig) -> Option<Box<Self>> {
        Self::of(config)
    }

    fn holds_writes<R: Recorder>(&mut self, drive: &mut Ssd<R>) -> bool {
        let now = drive.storage.backend.now;
        let Some(opens) = self.opens_at(now, drive.storage.main_write_bytes()) else {
            return false;
        };
        drive.storage.backend.recorder.writes_wait(now, Cause::Throttling);
        if !std::mem::replace(&mut self.wake_scheduled, true) {
            self.throttle_time.0 += opens - now;
            drive.storage.backend.queue.push(Lane::DieLong, opens, Self::event(0));
        }
        true
    }

    fn due<R: Recorder>(&mut self, _: &mut Ssd<R>, _: u16) -> bool {
        self.wake_scheduled = false;
        true
    }

    fn powered_up(&mut self) {
        self.wake_scheduled = false;
    }
}
