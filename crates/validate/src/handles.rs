//! Workload and garbage collection of the published WARP emulator: reclaim unit handles whose
//! relocated data stay isolated or are mixed.
//!
//! The model follows the emulator's source and the scripts of the paper's artifact (Song et al.,
//! "Characterizing and Emulating FDP SSDs with WARP", FAST 2026), checked against the logs of the
//! recorded runs:
//!
//! * over-provisioning counts all units; each of the eight handles holds one unit from the start;
//! * the victim is the unit with the fewest valid pages, regardless of its handle;
//! * with at most 1 % of the units free, the host waits while GC relocates whole units until more
//!   units are free;
//! * with at most 10 % free, a unit is garbage-collected as soon as 5 % or less of it is valid;
//! * relocated data go to a unit of their handle that only GC writes (persistently isolated), or to
//!   the unit of the last handle, which the host does not use (initially isolated).

use writecliff_base::{Lpn, Prng, StreamId};
use writecliff_ftl::gc_destination::GcDestination;
use writecliff_ftl::gc_policy::GcPolicy;
use writecliff_ftl::{ConfigError, Counters, FastForward, Ftl, FtlConfig, GcPacing};

use super::{flat_geometry, plain};

const HANDLES: u32 = 8;
const WRITERS: u32 = 3;
/// Whole units are garbage-collected while at most one in this many units is free.
const FREE_AT_LEAST: u32 = 100;
/// Early GC starts when at most one in this many units is free.
const EARLY_BELOW: u32 = 10;
const EARLY_VALID_MAX: f64 = 0.05;
/// Number of checks for early GC per unit written. (The emulator checks after every request; here,
/// a victim waits for at most 4 MiB of 256 MiB.)
const LOOKS_A_UNIT: u32 = 64;

/// A drive of `units` reclaim units with `slots` slots each, where `user_units` units are user
/// capacity.
#[derive(Clone, Copy, Debug)]
pub struct HandlesCase {
    /// Number of reclaim units in the drive.
    pub units: u32,
    /// Number of reclaim units of user capacity.
    pub user_units: u32,
    /// Number of slots per reclaim unit.
    pub slots: u32,
    /// `true` if relocated data stay with their handle; otherwise, relocated data of all handles
    /// share a unit.
    pub persistent: bool,
    /// Fractions of the writes issued by the three writers after the fill.
    pub rates: [f64; 3],
    /// Number of written capacities, including the fill, at which the first figure is taken.
    pub capacities: f64,
    /// Range of written capacities over which the second figure is taken.
    pub settled: (f64, f64),
    /// Seed of the addresses.
    pub seed: u64,
}

/// Returns the write amplification from the empty drive on, and over the later range (NaN if that
/// range is empty).
pub fn handles(case: &HandlesCase) -> Result<(f64, f64), ConfigError> {
    let mut drive = EmulatorDrive::new(case)?;
    let mut host = ThreeWriters::new(case);
    host.fill(&mut drive);
    host.write_until(&mut drive, case.capacities);
    let empty = Counters::default();
    let from_empty = drive.ftl.counters().write_amplification_since(&empty).unwrap_or(f64::NAN);
    if case.settled.1 <= case.settled.0 {
        return Ok((from_empty, f64::NAN));
    }
    host.write_until(&mut drive, case.settled.0);
    let before = *drive.ftl.counters();
    host.write_until(&mut drive, case.settled.1);
    let settled = drive.ftl.counters().write_amplification_since(&before).unwrap_or(f64::NAN);
    Ok((from_empty, settled))
}

struct EmulatorDrive {
    ftl: Ftl,
    early_below: u32,
    slots_a_look: u32,
    until_look: u32,
}

impl EmulatorDrive {
    fn new(case: &HandlesCase) -> Result<Self, ConfigError> {
        // A handle that neither the host nor GC uses for writes keeps its first unit indefinitely.
        let unused = HANDLES - WRITERS - u32::from(!case.persistent);
        // The emulator runs GC after the host has opened a unit, but this drive runs GC before.
        let gc_low_watermark = case.units / FREE_AT_LEAST + 1;
        let config = FtlConfig {
            user_slots: u64::from(case.user_units * case.slots),
            gc_pacing: GcPacing::OnDemand,
            gc_destination: if case.persistent {
                GcDestination::PerStream
            } else {
                GcDestination::Shared
            },
            gc_high_watermark: gc_low_watermark + 1,
            gc_low_watermark,
            gc_idle_watermark: 0,
            ..plain(GcPolicy::Greedy, WRITERS as u16, case.seed)
        };
        let geometry = flat_geometry(case.units.saturating_sub(unused), case.slots)?;
        let slots_a_look = (case.slots / LOOKS_A_UNIT).max(1);
        Ok(Self {
            ftl: Ftl::new(geometry, config)?,
            early_below: case.units / EARLY_BELOW,
            slots_a_look,
            until_look: slots_a_look,
        })
    }

    fn write(&mut self, lpn: u64, handle: u16) {
        self.ftl.write(Lpn(lpn as u32), StreamId(handle), 4096, &mut FastForward);
        self.until_look -= 1;
        if self.until_look == 0 {
            self.until_look = self.slots_a_look;
            if self.ftl.free_units() <= self.early_below {
                self.ftl.gc_early(EARLY_VALID_MAX, &mut FastForward);
            }
        }
    }
}

/// A sequential writer over 90 % of the capacity, a uniform random writer over the last 10 %, and a
/// zoned random writer over the same 90 % as the first (80 % of its writes go to the first 20 %,
/// and 10 % each to the next 20 % and 60 %). This mix is the artifact's three-stream "80/20"
/// workload, which numbers its handles in this order.
struct ThreeWriters {
    user: u64,
    /// Number of slots of the first and third writers; the second writer has the remaining slots.
    shared: u64,
    /// Current position of the sequential writer.
    at: u64,
    rates: [f64; 3],
    random: Prng,
}

impl ThreeWriters {
    fn new(case: &HandlesCase) -> Self {
        let user = u64::from(case.user_units) * u64::from(case.slots);
        let (rates, random) = (case.rates, Prng::new(case.seed));
        Self { user, shared: user * 9 / 10, at: 0, rates, random }
    }

    /// Writes the first writer's range sequentially and, concurrently, as many random slots as
    /// there are in the second writer's range, so that 1/e of that range stays unmapped.
    fn fill(&mut self, drive: &mut EmulatorDrive) {
        let rest = self.user - self.shared;
        for lpn in 0..self.shared {
            drive.write(lpn, 0);
            if lpn * rest / self.shared != (lpn + 1) * rest / self.shared {
                self.write_uniform(drive);
            }
        }
    }

    /// Continues until the host has written `capacities` times the capacity.
    fn write_until(&mut self, drive: &mut EmulatorDrive, capacities: f64) {
        let slots = (capacities * self.user as f64) as u64;
        while drive.ftl.counters().host_slots < slots {
            self.write(drive);
        }
    }

    fn write(&mut self, drive: &mut EmulatorDrive) {
        let draw = self.random.unit();
        if draw < self.rates[0] {
            drive.write(self.at, 0);
            self.at = if self.at + 1 == self.shared { 0 } else { self.at + 1 };
        } else if draw < self.rates[0] + self.rates[1] {
            self.write_uniform(drive);
        } else {
            self.write_zoned(drive);
        }
    }

    fn write_uniform(&mut self, drive: &mut EmulatorDrive) {
        let lpn = self.shared + self.random.below(self.user - self.shared);
        drive.write(lpn, 1);
    }

    fn write_zoned(&mut self, drive: &mut EmulatorDrive) {
        let (begin, end) = match self.random.unit() {
            u if u < 0.8 => (0, self.shared / 5),
            u if u < 0.9 => (self.shared / 5, self.shared * 2 / 5),
            _ => (self.shared * 2 / 5, self.shared),
        };
        let lpn = begin + self.random.below(end - begin);
        drive.write(lpn, 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(units: u32, persistent: bool, sequential: f64) -> HandlesCase {
        let other = (1.0 - sequential) / 2.0;
        HandlesCase {
            units,
            user_units: 896,
            slots: 64,
            persistent,
            rates: [sequential, other, other],
            capacities: 5.0,
            settled: (0.0, 0.0),
            seed: 1,
        }
    }

    #[test]
    fn isolating_for_good_costs_more_where_units_are_scarce_and_less_where_they_are_not() {
        let waf = |op: f64, persistent| {
            let units = (896.0 * (1.0 + op)) as u32;
            handles(&case(units, persistent, 0.87)).unwrap().0
        };
        assert!(waf(0.03, true) > waf(0.03, false));
        assert!(waf(0.07, true) < 0.92 * waf(0.07, false));
    }

    #[test]
    fn the_rates_of_the_writers_decide_as_much_as_the_isolation() {
        let slow = handles(&case(940, true, 0.83)).unwrap().0;
        let fast = handles(&case(940, true, 0.88)).unwrap().0;
        assert!(slow > 1.2 * fast, "{slow} v {fast}");
    }

    #[test]
    fn one_handle_alone_writes_in_order_and_moves_nothing() {
        let mut alone = case(1075, true, 1.0);
        alone.settled = (6.0, 8.0);
        let (from_empty, settled) = handles(&alone).unwrap();
        assert!(from_empty < 1.01, "{from_empty}");
        assert!((settled - 1.0).abs() < 1e-9, "{settled}");
    }

    #[test]
    fn a_drive_without_room_for_its_handles_is_refused() {
        assert_eq!(handles(&case(904, false, 0.87)).unwrap_err().key, "user_capacity");
    }
}
