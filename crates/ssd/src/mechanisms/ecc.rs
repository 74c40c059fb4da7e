//! Read errors and their correction cost: section `[ecc]` of a device file.
//!
//! A read is retried with other read voltages if its codewords have more bit errors than the code
//! can correct. Each retry takes `retry_time` on the die and reduces the error rate by a factor.
//! The probability depends on the wear and age of the reclaim unit. The outcome of each read is a
//! random draw determined by the read's number. If all retries fail, the failure is counted, and
//! the stripe is read if the drive has parity across dies (`die_parity/`). A host command fails if
//! the stripe cannot be read either. The next read of the same data has a new random outcome.
//! Relocated data never contain errors.

use writecliff_base::keys::{Count, Number, PositiveTime, Size, Time};
use writecliff_base::located::Table;
use writecliff_base::random::nth;
use writecliff_base::{Nanos, Prng, ReclaimUnitId, counters, counts, reject, saved, section};
use writecliff_flash::errors::{BitErrors, Code, FailureCurve};
use writecliff_flash::wear::Wear;
use writecliff_flash::{FlashLocation, SLOT_BYTES};
use writecliff_ftl::table::{UnitState, UnitTable};

use crate::DeviceConfig;
use crate::mechanisms::cell_care::{CellCare, CellCareCounters, Refresh};
use crate::mechanisms::{Checked, Described, MechanismSection};

const SEED_LABEL: u64 = 0x0045_4343;
/// Maximum number of retries per read, which are encoded in six bits.
const RETRIES_MAX: u32 = 63;

counts! {
    /// Counters of read errors since the drive was new.
    pub struct EccCounters {
        /// Flash reads of any kind.
        reads,
        retried_reads,
        retries,
        uncorrectable_reads,
    }
}

counters! { |c: EccCounters|
    Integer "read_retries" Count: c.retries,
        "read retries with other read voltages (`[ecc]`)";
    Integer "retried_reads" Count: c.retried_reads,
        "reads that were retried at least once (`[ecc]`)";
    Integer "uncorrectable_reads" Count: c.uncorrectable_reads,
        "reads that no retry corrected (`[ecc]`)";
}

section! {
    /// Error correction: bit errors, code and read retries.
    #[derive(Clone, Debug, PartialEq)]
    pub struct EccConfig {
        rber: required Number(0.0..=0.5),
            "raw bit error rate of the median page of a block that was never erased";
        rber_at_rated: required Number(0.0..=0.5),
            "raw bit error rate of the median page at `rated_cycles` erases";
        wear_exponent: default Number(0.1..=10.0) = 1.0,
            "exponent of the erase count in the growth from `rber` to `rber_at_rated`";
        retention_factor: default Number(1.0..=1e6) = 1.0,
            "factor on the error rate after `retention_time`; grows with the logarithm of time";
        retention_time: default PositiveTime = Nanos::from_secs(90 * 86_400),
            "retention of worn enterprise drives without power (90 days: JESD218)";
        rber_spread: default Number(0.0..=3.0) = 0.0,
            "standard deviation of ln(error rate) between pages";
        codeword: required Size,
            "data per codeword; a whole number of codewords fills 4 KiB";
        correctable: required Count(0..=SLOT_BYTES * 8),
            "number of bit errors that the code corrects per codeword, at most the codeword's bits";
        retry_time: required Time, "die time per retry, including transfer and decoding";
        retry_gain: default Number(0.0..=1.0) = 0.5,
            "percentage of the bit errors that remain after each retry";
        retries_max: required Count(0..=RETRIES_MAX),
            "number of retries after which a read is uncorrectable, unless `[die_parity]` \
             rebuilds the data";
    }
}

impl MechanismSection for EccConfig {
    type Keys = Self;

    fn check(config: Self, table: &Table<'_>, _: &mut Described<'_>) -> Checked<Self> {
        let (fresh, worn, bytes) = (config.rber, config.rber_at_rated, config.codeword.0);
        reject! { table,
            "rber_at_rated" if worn < fresh => "{worn:e} is below rber ({fresh:e})";
            "codeword" if bytes == 0 || !u64::from(SLOT_BYTES).is_multiple_of(bytes) =>
                "a slot must hold a whole number of codewords: 4 KiB, or a half, a quarter, ... \
                 of it";
        }
        let bits = f64::from(config.code().bits);
        table.in_range("correctable", f64::from(config.correctable), &(0.0..=bits), "")?;
        Ok(Some(config))
    }
}

impl EccConfig {
    fn errors(&self) -> BitErrors {
        BitErrors {
            fresh: self.rber,
            at_rated: self.rber_at_rated,
            wear_exponent: self.wear_exponent,
            retention_factor: self.retention_factor,
            retention_time: self.retention_time,
        }
    }

    fn code(&self) -> Code {
        Code { bits: self.codeword.0 as u32 * 8, correctable: self.correctable }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Retries {
    pub count: u8,
    /// `true` if no retry corrects the data.
    pub fails: bool,
}

/// Runtime state of the section.
pub struct Ecc {
    config: EccConfig,
    errors: BitErrors,
    curve: FailureCurve,
    rated_cycles: f64,
    codewords_per_slot: f64,
    codewords_max: f64,
    salt: u64,
    /// Erase count of each reclaim unit, and the time of its first write since the last erase.
    erases: Vec<u32>,
    pub(crate) written_at: Vec<Nanos>,
    /// Minimum random draw that makes a retry unnecessary for any unit.
    worst: f64,
    /// `worst` is valid until this time, for units with up to this many erases.
    worst_until: Nanos,
    worst_erases: u32,
    /// Host slots written before fast-forwarding started.
    pub(crate) untimed_from: u64,
    pub(crate) care: Option<CellCare>,
    /// Number of dies per stripe; 1 without parity.
    stripe: u32,
    pub(crate) counters: EccCounters,
}

// The FTL saves the erase counts (see `take_wear`).
saved! { Ecc { salt, [written_at], untimed_from, counters, (care) } }

impl Ecc {
    /// Returns the raw bit error rate of data of this age in a block that was read `reads` times.
    fn rate(&self, erases: u32, age: Nanos, reads: f64) -> f64 {
        let (errors, wear) = (&self.errors, f64::from(erases) / self.rated_cycles);
        let Some(care) = &self.care else { return errors.rate(wear, age) };
        // Wear effect alone, as a fraction of the wear effect at the rated cycle count.
        let worn = errors.worn(wear) / errors.at_rated.max(f64::MIN_POSITIVE);
        let age = Nanos((age.0 as f64 * care.config.aging) as u64);
        (errors.rate(wear, age) + care.config.read_disturb * reads * worn).min(0.5)
    }

    /// Returns the probability that `retries` retries do not correct all codewords of a page.
    fn failure(&self, rate: f64, codewords: f64, retries: u32) -> f64 {
        debug_assert!((0.0..=0.5).contains(&rate), "not a bit error rate");
        let left = rate * self.config.retry_gain.powi(retries as i32);
        let codeword = self.curve.at(left);
        -(codewords * (-codeword).ln_1p()).exp_m1()
    }

    fn find_worst(&mut self, now: Nanos) {
        self.worst_until = Nanos(2 * now.0) + Nanos::from_secs(86_400);
        let rate = self.rate(self.worst_erases, self.worst_until, 0.0);
        // With cell care, every read is counted, and any unit may be the worst.
        let is_counted = self.care.is_some();
        self.worst = if is_counted { 1.0 } else { self.failure(rate, self.codewords_max, 0) };
    }

    fn retries_of(&mut self, draw: f64, at: &FlashLocation, slots: u32, now: Nanos) -> Retries {
        let (unit, die) = (at.reclaim_unit, at.die);
        let erases = self.erases[unit.index()];
        let age = now.saturating_sub(self.written_at[unit.index()]);
        let codewords = self.codewords_per_slot * f64::from(slots);
        let reads = self.care.as_mut().map_or(0, |care| care.read(unit, die));
        let rate = self.rate(erases, age, f64::from(reads));
        let fails = |retries: u32| draw < self.failure(rate, codewords, retries);
        let most = self.config.retries_max;
        let needed = (0..=most).find(|&retries| !fails(retries));
        let count = needed.unwrap_or(most);
        debug_assert!(count <= most, "more retries than the controller makes");
        self.counters.uncorrectable_reads += u64::from(needed.is_none());
        self.counters.retried_reads += u64::from(count > 0);
        self.counters.retries += u64::from(count);
        Retries { count: count as u8, fails: needed.is_none() }
    }

    /// Returns the probability of losing a codeword that fails with probability `failure`. With
    /// parity, the codeword is lost only if another codeword of its stripe also fails.
    fn unrecovered(&self, failure: f64) -> f64 {
        match self.stripe {
            1 => failure,
            dies => -failure * (f64::from(dies - 1) * (-failure).ln_1p()).exp_m1(),
        }
    }

    /// Starts a refresh and returns the unit to relocate, which is closed or one of `open`.
    pub fn begin_refresh(
        &mut self,
        table: &UnitTable,
        open: &[ReclaimUnitId],
        now: Nanos,
    ) -> Option<ReclaimUnitId> {
        let care = self.care.as_mut()?;
        let Refresh { rber: limit, interval } = care.config.refresh?;
        care.next_refresh += interval;
        let most = |unit: ReclaimUnitId| self.expected(unit, now).1;
        let candidates = table.closed().chain(open.iter().copied());
        let holding = candidates.filter(|unit| table.valid[unit.index()] > 0);
        let (worst, rate) =
            holding.map(|unit| (unit, most(unit))).reduce(|a, b| if b.1 > a.1 { b } else { a })?;
        (rate > limit).then_some(worst)
    }

    /// Returns the expected error rates of a unit's data: the blocks' mean and the worst block's.
    fn expected(&self, unit: ReclaimUnitId, now: Nanos) -> (f64, f64) {
        let index = unit.index();
        let age = now.saturating_sub(self.written_at[index]);
        let Some(care) = &self.care else { return (0.0, 0.0) };
        let rate = |reads: f64| self.rate(self.erases[index], age, reads);
        let reads = care.of(index);
        let mean = reads.iter().copied().map(f64::from).sum::<f64>() / reads.len() as f64;
        (rate(mean), rate(f64::from(reads.iter().copied().max().unwrap_or(0))))
    }

    /// Returns the expected error rates of all data on flash; uncorrectable: after all retries.
    pub fn care_counters(&self, table: &UnitTable, now: Nanos) -> Option<CellCareCounters> {
        let care = self.care.as_ref()?;
        let mut counters =
            CellCareCounters { refreshed_units: care.refreshed_units, ..Default::default() };
        let mut slots = 0.0;
        for unit in (0..table.len()).map(ReclaimUnitId) {
            let valid = f64::from(table.valid[unit.index()]);
            if valid == 0.0 {
                continue;
            }
            let (mean, most) = self.expected(unit, now);
            slots += valid;
            counters.rber_mean += valid * mean;
            counters.rber_max = counters.rber_max.max(most);
            let failure = self.failure(mean, 1.0, self.config.retries_max);
            counters.uber += valid * self.unrecovered(failure);
        }
        counters.rber_mean /= f64::max(slots, 1.0);
        counters.uber /= f64::max(slots, 1.0) * f64::from(self.config.code().bits);
        Some(counters)
    }

    /// Restarts the age of data that were fast-forwarded; called after that or a purge.
    pub fn after_untimed(&mut self, wear: &Wear, table: &UnitTable, now: Nanos) {
        self.take_wear(wear);
        let units = table.state.iter().zip(&table.closed_at);
        for (unit, ((state, &closed_at), written_at)) in units.zip(&mut self.written_at).enumerate()
        {
            if *state == UnitState::Open || closed_at > self.untimed_from {
                *written_at = now;
                if let Some(care) = &mut self.care {
                    care.erased(unit);
                }
            }
        }
    }

    /// Takes the erase counts from the FTL.
    pub fn take_wear(&mut self, wear: &Wear) {
        self.erases.copy_from_slice(&wear.erases);
        self.worst_erases = wear.erases.iter().copied().max().unwrap_or(0);
        self.worst_until = Nanos::ZERO;
    }

    pub(crate) fn of(config: &DeviceConfig) -> Option<Box<Self>> {
        let section = config.sections.ecc.clone()?;
        let codewords_per_slot = f64::from(SLOT_BYTES * 8 / section.code().bits);
        assert!(codewords_per_slot >= 1.0, "a codeword is at most a slot");
        let units = config.geometry.reclaim_units as usize;
        Some(Box::new(Self {
            errors: section.errors(),
            curve: FailureCurve::new(section.code(), section.rber_spread),
            rated_cycles: f64::from(config.ftl.rated_cycles),
            codewords_per_slot,
            codewords_max: codewords_per_slot * f64::from(config.geometry.slots_per_read_group),
            salt: Prng::derive(config.ftl.seed, SEED_LABEL).next_u64(),
            erases: vec![0; units],
            written_at: vec![Nanos::ZERO; units],
            worst: 0.0,
            worst_until: Nanos::ZERO,
            worst_erases: 0,
            untimed_from: 0,
            care: config.sections.cell_care.map(|section| {
                CellCare::new(section, config.geometry.reclaim_units, config.geometry.dies)
            }),
            stripe: config.geometry.stripes.as_ref().map_or(1, |stripes| stripes.dies),
            counters: EccCounters::default(),
            config: section,
        }))
    }

    #[inline]
    pub(crate) fn retries(&mut self, at: &FlashLocation, slots: u32, now: Nanos) -> Retries {
        let draw = (nth(self.salt, self.counters.reads) >> 11) as f64 / (1_u64 << 53) as f64;
        self.counters.reads += 1;
        if now >= self.worst_until {
            self.find_worst(now);
        }
        if draw < self.worst { self.retries_of(draw, at, slots, now) } else { Retries::default() }
    }

    pub(crate) fn erased(&mut self, unit: ReclaimUnitId) {
        if let Some(care) = &mut self.care {
            care.erased(unit.index());
        }
        self.erases[unit.index()] += 1;
        if self.erases[unit.index()] > self.worst_erases {
            self.worst_erases = self.erases[unit.index()];
            self.worst_until = Nanos::ZERO;
        }
    }
}
