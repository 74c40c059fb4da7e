//! Arm and spindle: positioning times, retries and recalibration.

use serde::{Deserialize, Serialize};
use writecliff_base::{Nanos, Prng, saved};

use crate::config::{DiskConfig, ImpossibleDisk, MechanicsConfig};
use crate::layout::SectorLayout;
use crate::seek::SeekCurve;

/// A sector range, with the track, cylinder and angle where it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Extent {
    pub(crate) first: u64,
    pub(crate) last: u64,
    track: u64,
    cylinder: u64,
    /// Time within a revolution when the first sector starts to pass.
    angle: u64,
}

impl Extent {
    pub(crate) fn sectors(&self) -> u64 {
        self.last + 1 - self.first
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Mechanics {
    pub(crate) layout: SectorLayout,
    seeks: SeekCurve,
    config: MechanicsConfig,
    random: Prng,
    /// Current track of the arm.
    track: u64,
    recalibration_due: Nanos,
    pub(crate) counted: MechanicsCounters,
}

/// Counters since the drive was new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MechanicsCounters {
    /// Media accesses for host commands and cached writes.
    pub accesses: u64,
    /// Revolutions lost to retries.
    pub retries: u64,
    /// Servo recalibrations.
    pub recalibrations: u64,
}

saved! { Mechanics { random, track, recalibration_due, counted } check is_on_media }

/// Label of the random generator for retries.
const RETRIES: u64 = 0x6469_736b;

impl Mechanics {
    pub(crate) fn new(config: &DiskConfig) -> Result<Self, ImpossibleDisk> {
        let (layout, seeks) = config.mechanics.geometry(config.user_capacity)?;
        let interval = config.mechanics.recalibration_interval;
        Ok(Self {
            layout,
            seeks,
            config: config.mechanics.clone(),
            random: Prng::derive(config.seed, RETRIES),
            track: 0,
            recalibration_due: interval.unwrap_or(Nanos::MAX),
            counted: MechanicsCounters::default(),
        })
    }

    fn is_on_media(&mut self) -> bool {
        self.track < self.layout.tracks
    }

    pub(crate) fn extent(&self, first: u64, last: u64) -> Extent {
        debug_assert!(first <= last, "an extent without sectors");
        let track = self.layout.track(first);
        let cylinder = self.layout.cylinder(track);
        let angle = self.layout.passage(first) % self.layout.turn.0;
        Extent { first, last, track, cylinder, angle }
    }

    /// Moves the arm to the track of `sector` in zero time.
    pub(crate) fn move_to(&mut self, sector: u64) {
        self.track = self.layout.track(sector);
    }

    /// Returns the time from `now` until the first sector starts to pass under its head.
    #[inline]
    pub(crate) fn positioning(&self, now: Nanos, extent: &Extent, is_write: bool) -> Nanos {
        let (moving, _) = self.moving(extent, is_write);
        moving + self.until_angle(now + moving, extent.angle)
    }

    /// Returns the scheduler's estimate of the access time, which allows for a late arm.
    #[inline]
    pub(crate) fn expected(&self, now: Nanos, extent: &Extent, is_write: bool) -> Nanos {
        let (moving, margin) = self.moving(extent, is_write);
        moving + margin + self.until_angle(now + moving + margin, extent.angle)
    }

    /// Returns the seek time including settling, and the margin that the arm may be late by. Seeks
    /// to an adjacent track have no margin because they always take the same time.
    #[inline]
    fn moving(&self, extent: &Extent, is_write: bool) -> (Nanos, Nanos) {
        debug_assert!(extent.cylinder < self.layout.cylinders(), "beyond the disk");
        if extent.track == self.track {
            return (Nanos::ZERO, Nanos::ZERO);
        }
        let settle = if is_write { self.config.write_settle } else { Nanos::ZERO };
        match extent.cylinder.abs_diff(self.layout.cylinder(self.track)) {
            0 => (self.config.head_switch + settle, Nanos::ZERO),
            1 => (self.seeks.time(1) + settle, Nanos::ZERO),
            distance => (self.seeks.time(distance) + settle, self.config.seek_margin),
        }
    }

    /// Returns the time from `now` until the angle is under the head.
    #[inline]
    fn until_angle(&self, now: Nanos, angle: u64) -> Nanos {
        let turn = self.layout.turn.0;
        debug_assert!(angle < turn, "an angle is less than a turn");
        let at = now.0 % turn;
        Nanos(if angle >= at { angle - at } else { angle + turn - at })
    }

    /// Returns the time from `now` until `sector` starts to pass, if the head is on its track.
    pub(crate) fn until_sector(&self, now: Nanos, sector: u64) -> Nanos {
        self.until_angle(now, self.layout.passage(sector) % self.layout.turn.0)
    }

    /// Returns the time that the sectors take to pass, including head switches and seeks between.
    #[inline]
    pub(crate) fn transfer(&self, extent: &Extent) -> Nanos {
        debug_assert!(extent.first <= extent.last, "an extent without sectors");
        Nanos(self.layout.passed(extent.last) - self.layout.passage(extent.first))
    }

    /// Counts an access and returns the duration of its retries.
    pub(crate) fn repeat(&mut self) -> Nanos {
        self.counted.accesses += 1;
        let (probability, most) = (self.config.retry_probability / 100.0, self.config.retries);
        if probability <= 0.0 {
            return Nanos::ZERO;
        }
        let mut times = 0;
        while times < most && self.random.unit() < probability {
            times += 1;
        }
        debug_assert!(times <= most);
        self.counted.retries += u64::from(times);
        Nanos(u64::from(times) * self.layout.turn.0)
    }

    /// Returns the end of a recalibration that delays work ready at `now`, or `None` if no
    /// recalibration delays it. The arm has been idle since `idle_since`. Recalibrations that came
    /// due and finished during the idle time cause no delay.
    pub(crate) fn recalibrated(&mut self, idle_since: Nanos, now: Nanos) -> Option<Nanos> {
        // Recalibration measures every head at each radius for one revolution.
        let interval = self.config.recalibration_interval?;
        let radii = self.config.recalibration_radii?;
        if self.recalibration_due > now {
            return None;
        }
        let step = self.layout.cylinders() / u64::from(radii);
        let measured =
            u64::from(self.config.heads) * (self.config.head_switch + self.layout.turn).0;
        let takes = Nanos(u64::from(radii) * (self.seeks.time(step.max(1)).0 + measured));
        // All recalibrations that came due during idle time have finished, except perhaps the last.
        let due = self.recalibration_due;
        let times = (now - due).0 / interval.0;
        let last = Nanos(due.0 + times * interval.0).max(idle_since);
        self.counted.recalibrations += times + 1;
        self.recalibration_due = last + interval;
        self.track = self.layout.tracks - 1;
        (last + takes > now).then_some(last + takes)
    }
}
