//! Patrol reads: at intervals, the firmware reads a portion of the media to find data that must be
//! moved before they are lost. Micron's 5100 counts such scans as integrity scans in SMART
//! attributes 211 to 213. US patent 11,385,984 discusses the impact of such read scans on hosts.
//!
//! Each page takes as much firmware time as a command. A drive whose firmware is the bottleneck is
//! therefore slightly slower during a scan: some seconds have fewer I/Os than others although
//! nothing else changes. The reads themselves are too few and too short to delay other reads on
//! their dies, so they are not simulated.
//!
//! The start of a scan is a function of its interval's number, so an idle drive needs no events.
//! The next command computes which pages have been read in the meantime.

use writecliff_base::located::{Answer, Table};
use writecliff_base::random::nth;
use writecliff_base::{Nanos, Prng, reject, saved};

use super::section::Keys;

const SEED_LABEL: u64 = 0x5041_5452_4f4c;

/// Maximum fraction of the firmware's time that a scan may take.
const SHARE_MAX: f64 = 0.9;

/// Schedule of patrol scans: one per interval, at a random time, with a page at each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatrolConfig {
    pub(crate) interval: Nanos,
    /// Duration of a scan.
    pub length: Nanos,
    pub(crate) step: Nanos,
    /// Firmware time per page.
    pub time: Nanos,
}

impl PatrolConfig {
    /// Returns the patrol of a section; `None` if none of the patrol keys is present.
    ///
    /// # Errors
    /// Returns an error at the key if a key is missing, a scan is longer than its interval, a step
    /// is longer than the scan, or the firmware would have no time for commands.
    pub(super) fn of(table: &Table<'_>, keys: &Keys) -> Answer<Option<Self>> {
        let Keys { patrol_interval, patrol_length, patrol_step, patrol_time, .. } = *keys;
        let times = [
            ("patrol_interval", patrol_interval),
            ("patrol_length", patrol_length),
            ("patrol_step", patrol_step),
            ("patrol_time", patrol_time),
        ];
        if times.iter().all(|(_, time)| time.is_none()) {
            return Ok(None);
        }
        let [interval, length, step, time] =
            times.map(|(key, time)| time.ok_or_else(|| table.missing(key)));
        let config = Self { interval: interval?, length: length?, step: step?, time: time? };
        config.check(table)?;
        Ok(Some(config))
    }

    fn check(&self, table: &Table<'_>) -> Answer<()> {
        for (key, part, of, whole) in [
            ("patrol_length", self.length, "patrol_interval", self.interval),
            ("patrol_step", self.step, "patrol_length", self.length),
        ] {
            reject! { table, key if part > whole => "{part} is above {of}, {whole}"; }
        }
        let share = self.time.0 as f64 / self.step.0 as f64;
        reject! { table,
            "patrol_time" if share > SHARE_MAX =>
                "{} of every {} is {:.0} % of the firmware's time; it must leave commands {:.0} %",
                self.time, self.step, 100.0 * share, 100.0 * (1.0 - SHARE_MAX);
        }
        Ok(())
    }
}

/// Runtime state of the patrol.
pub struct Patrol {
    pub(super) config: PatrolConfig,
    salt: u64,
    /// Number of the interval, and of the next page in the interval's scan.
    next: (u64, u64),
}

saved! { Patrol { salt, next } }

impl Patrol {
    pub(crate) fn new(config: PatrolConfig, seed: u64) -> Self {
        let salt = Prng::derive(seed, SEED_LABEL).next_u64();
        Self { config, salt, next: (0, 0) }
    }

    /// Returns the next page that is due by `now`. The firmware, free since `free`, has read
    /// earlier pages while idle; it may still be reading the last of them, which is returned.
    #[inline]
    pub fn due(&mut self, now: Nanos, free: Nanos) -> Option<Nanos> {
        let mut at = self.at(self.next);
        if at > now {
            return None;
        }
        if at >= free && now - at > self.config.step {
            self.skip_to(now);
            at = self.at(self.next);
        }
        self.next = self.after(self.next);
        Some(at)
    }

    /// Skips to the last page due by `now`.
    #[cold]
    fn skip_to(&mut self, now: Nanos) {
        let PatrolConfig { interval, step, .. } = self.config;
        let mut number = (now.0 / interval.0).max(self.next.0);
        let mut begin = self.at((number, 0));
        if begin > now && number > self.next.0 {
            number -= 1;
            begin = self.at((number, 0));
        }
        let pages = (now.saturating_sub(begin).0 / step.0).min(self.pages() - 1);
        self.next = self.next.max((number, pages));
    }

    fn pages(&self) -> u64 {
        self.config.length.0.div_ceil(self.config.step.0)
    }

    fn after(&self, (number, page): (u64, u64)) -> (u64, u64) {
        if page + 1 < self.pages() { (number, page + 1) } else { (number + 1, 0) }
    }

    fn at(&self, (number, page): (u64, u64)) -> Nanos {
        let PatrolConfig { interval, length, step, .. } = self.config;
        debug_assert!(interval >= length, "see `PatrolConfig::check`");
        let slack = interval.0 - length.0;
        let offset = (u128::from(slack) * u128::from(nth(self.salt, number))) >> 64;
        Nanos(number * interval.0 + offset as u64 + page * step.0)
    }
}
