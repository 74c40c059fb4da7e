//! What flash does to data that are kept and read, and refreshing them: section `[cell_care]` of a
//! device file, which extends `[ecc]`.
//!
//! * Data age faster when warm: the retention of `[ecc]` counts hours at `reference_temperature`,
//!   and an hour at `temperature` is as many of them as the Arrhenius equation says (JESD218).
//! * Each read of a block adds bit errors to the data in it, in proportion to wear: errors grow
//!   linearly with reads (Cai et al., "Read disturb errors in MLC NAND flash memory", DSN 2015).
//! * At each `refresh_interval` the firmware relocates the reclaim unit whose data have the highest
//!   expected error rate, if that is above `refresh_rber`. In pauses of the host within a step that
//!   happens before its next command.
//!
//! Reads are counted per reclaim unit and die: the blocks that a multi-plane read opens.

mod refresh;

use writecliff_base::codec::CodecError;
use writecliff_base::located::{LocatedError, Table};
use writecliff_base::units::Physical;
use writecliff_base::words::{WordReader, WordWriter, damaged};
use writecliff_base::{Nanos, ReclaimUnitId, counters};
use writecliff_flash::acceleration::acceleration;

/// JESD218: retention of enterprise drives at 40 °C, activation energy of charge loss.
const REFERENCE_CELSIUS: f64 = 40.0;
const ACTIVATION_ENERGY: f64 = 1.1;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellCareConfig {
    /// Hours of retention that an hour counts for.
    pub aging: f64,
    /// Errors per bit that a read adds to the other data of its block at the rated cycles.
    pub read_disturb: f64,
    pub refresh: Option<Refresh>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refresh {
    /// Expected raw bit error rate above which data are relocated.
    pub rber: f64,
    pub interval: Nanos,
}

/// Reads the section.
///
/// # Errors
/// Returns an error at the key that is missing or invalid; the section requires `[ecc]`.
pub fn read(table: Table<'_>, has_ecc: bool) -> Result<CellCareConfig, LocatedError> {
    let celsius = |key| table.optional_physical(key, Physical::Temperature);
    let reference = celsius("reference_temperature")?.unwrap_or(REFERENCE_CELSIUS);
    let temperature = celsius("temperature")?.unwrap_or(reference);
    if !has_ecc {
        let message = "[cell_care] needs a section [ecc], which is missing";
        return Err(table.error("temperature", message, None));
    }
    let energy = table
        .or("activation_energy", ACTIVATION_ENERGY, |t, key| t.optional_number(key, 0.0..=5.0))?;
    let read_disturb =
        table.or("read_disturb", 0.0, |t, key| t.optional_number(key, 0.0..=1e-3))?;
    let refresh = match table.optional_number("refresh_rber", 1e-9..=0.5)? {
        Some(rber) => Some(Refresh { rber, interval: table.required_time("refresh_interval")? }),
        None if table.has("refresh_interval") => {
            let message = "it has no effect without refresh_rber";
            return Err(table.error("refresh_interval", message, None));
        }
        None => None,
    };
    if refresh.is_some_and(|refresh| refresh.interval < Nanos::from_secs(1)) {
        return Err(table.error("refresh_interval", "it must be 1 s or more", None));
    }
    table.finish()?;
    Ok(CellCareConfig {
        aging: acceleration(energy, temperature, reference),
        read_disturb,
        refresh,
    })
}

/// The expected errors of the data on flash, and what was refreshed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CellCareCounters {
    pub rber_mean: f64,
    pub rber_max: f64,
    pub uber: f64,
    pub refreshed_units: u64,
}

counters! { |c: CellCareCounters|
    Real "rber_mean" Count level of_any_size: c.rber_mean,
        "raw bit error rate to expect of the data on flash, mean (`[cell_care]`)";
    Real "rber_max" Count level of_any_size: c.rber_max,
        "the same of the worst blocks (`[cell_care]`)";
    Real "uber" Count level of_any_size: c.uber,
        "uncorrectable codewords to expect per bit read of the data on flash (`[cell_care]`)";
    Integer "refreshed_units" Count of_any_size: c.refreshed_units,
        "reclaim units relocated because their data had too many errors (`[cell_care]`)";
}

/// Runtime state of the section.
#[derive(Clone, Debug)]
pub struct CellCare {
    pub(crate) config: CellCareConfig,
    dies: usize,
    /// Reads since the last erase, by reclaim unit and die.
    reads: Vec<u32>,
    next_refresh: Nanos,
    pub(crate) refreshed_units: u64,
}

impl CellCare {
    pub fn new(config: CellCareConfig, units: u32, dies: u32) -> Self {
        Self {
            config,
            dies: dies as usize,
            reads: vec![0; units as usize * dies as usize],
            next_refresh: config.refresh.map_or(Nanos::MAX, |refresh| refresh.interval),
            refreshed_units: 0,
        }
    }

    /// Counts a read, and returns how many its blocks had before.
    pub fn read(&mut self, unit: ReclaimUnitId, die: u32) -> u32 {
        let reads = &mut self.reads[unit.index() * self.dies + die as usize];
        let before = *reads;
        *reads = before.saturating_add(1);
        before
    }

    /// Most reads of any block of a unit.
    pub fn most_reads(&self, unit: usize) -> u32 {
        self.of(unit).iter().copied().max().unwrap_or(0)
    }

    pub fn mean_reads(&self, unit: usize) -> f64 {
        self.of(unit).iter().map(|&reads| f64::from(reads)).sum::<f64>() / self.dies as f64
    }

    fn of(&self, unit: usize) -> &[u32] {
        &self.reads[unit * self.dies..][..self.dies]
    }

    pub fn erased(&mut self, unit: usize) {
        self.reads[unit * self.dies..][..self.dies].fill(0);
    }

    /// Age of data in time at the reference temperature.
    pub fn age(&self, age: Nanos) -> Nanos {
        Nanos((age.0 as f64 * self.config.aging) as u64)
    }

    /// Errors per bit due to reads of the block, for data of which `worn` is the error rate without
    /// time and reads as a share of that at the rated cycles.
    pub fn disturbed(&self, reads: f64, worn: f64) -> f64 {
        self.config.read_disturb * reads * worn
    }

    /// When the next refresh is due, if not after `until`.
    pub fn due(&self, until: Nanos) -> Option<Nanos> {
        (self.next_refresh <= until).then_some(self.next_refresh)
    }

    /// Called when one is begun.
    pub fn begun(&mut self) {
        if let Some(refresh) = self.config.refresh {
            self.next_refresh += refresh.interval;
        }
    }

    pub(crate) fn save(&self, out: &mut WordWriter) {
        out.list(self.reads.iter(), |out, &reads| out.put(u64::from(reads)));
        out.put(self.next_refresh.0);
        out.put(self.refreshed_units);
    }

    pub(crate) fn restore(&mut self, input: &mut WordReader<'_>) -> Result<(), CodecError> {
        let reads = input.list(WordReader::narrow::<u32>)?;
        if reads.len() != self.reads.len() {
            return Err(damaged());
        }
        self.reads = reads;
        self.next_refresh = Nanos(input.get()?);
        self.refreshed_units = input.get()?;
        Ok(())
    }
}
