//! Retention, read disturb and data refresh: section `[cell_care]`, which extends `[ecc]`.
//!
//! * Data age faster at higher temperatures. The retention in `[ecc]` is measured in hours at
//!   `reference_temperature`, and the Arrhenius equation converts an hour at `temperature` to such
//!   hours (JESD218).
//! * Each read of a block adds bit errors to the block's data in proportion to wear, so errors grow
//!   linearly with reads (Cai et al., "Read disturb errors in MLC NAND flash memory", DSN 2015).
//! * At each `refresh_interval`, the firmware relocates the reclaim unit whose data have the
//!   highest expected error rate, if that rate is above `refresh_rber`. If the host pauses within a
//!   step, the relocation is done before the host's next command.
//!
//! Reads are counted per reclaim unit and die, which are the blocks that a multi-plane read opens.

use writecliff_base::keys::{Number, OfPhysical, Time};
use writecliff_base::located::Table;
use writecliff_base::units::Physical;
use writecliff_base::{Nanos, ReclaimUnitId, counters, reject, saved, section};
use writecliff_flash::acceleration::acceleration;
use writecliff_ftl::FrontierId;

use crate::mechanisms::{Checked, Described, Mechanism, MechanismSection, steps};
use crate::{DeviceConfig, Recorder, Ssd, Storage};

/// Expected errors of the data on flash, and the number of refreshes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CellCareCounters {
    /// Expected raw bit error rate, mean over the data on flash, in errors per bit.
    pub rber_mean: f64,
    /// Expected raw bit error rate of the worst block, in errors per bit.
    pub rber_max: f64,
    /// Expected uncorrectable codewords per bit read.
    pub uber: f64,
    /// Reclaim units relocated because their data had too many errors.
    pub refreshed_units: u64,
}

counters! { |c: CellCareCounters|
    Real "rber_mean" Count level of_any_size: c.rber_mean,
        "expected raw bit error rate of the data on flash, mean (`[cell_care]`)";
    Real "rber_max" Count level of_any_size: c.rber_max,
        "expected raw bit error rate of the data in the worst blocks (`[cell_care]`)";
    Real "uber" Count level of_any_size: c.uber,
        "expected uncorrectable codewords per bit read from flash (`[cell_care]`)";
    Integer "refreshed_units" Count of_any_size: c.refreshed_units,
        "reclaim units relocated because their data had too many errors (`[cell_care]`)";
}

/// Runtime state of the section.
#[derive(Clone, Debug)]
pub struct CellCare {
    pub(crate) config: CellCareConfig,
    dies: usize,
    /// Number of reads since the last erase, by reclaim unit and die.
    reads: Vec<u32>,
    pub(crate) next_refresh: Nanos,
    pub(crate) refreshed_units: u64,
}

saved! { CellCare { [reads], next_refresh, refreshed_units } }

impl CellCare {
    pub(crate) fn new(config: CellCareConfig, units: u32, dies: u32) -> Self {
        Self {
            config,
            dies: dies as usize,
            reads: vec![0; units as usize * dies as usize],
            next_refresh: config.refresh.map_or(Nanos::MAX, |refresh| refresh.interval),
            refreshed_units: 0,
        }
    }

    /// Counts a read, and returns the number of earlier reads of its blocks.
    pub fn read(&mut self, unit: ReclaimUnitId, die: u32) -> u32 {
        debug_assert!((die as usize) < self.dies, "no die of the drive");
        let reads = &mut self.reads[unit.index() * self.dies + die as usize];
        let before = *reads;
        *reads = before.saturating_add(1);
        before
    }

    /// Returns the read counts of a unit's blocks, by die.
    pub(crate) fn of(&self, unit: usize) -> &[u32] {
        &self.reads[unit * self.dies..][..self.dies]
    }

    pub(crate) fn erased(&mut self, unit: usize) {
        self.reads[unit * self.dies..][..self.dies].fill(0);
    }
}

/// JESD218 values: retention of enterprise drives at 40 °C, activation energy of charge loss.
const REFERENCE_CELSIUS: f64 = 40.0;
const ACTIVATION_ENERGY: f64 = 1.1;

/// Aging and read disturb of data on flash, and data refresh.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellCareConfig {
    /// Retention hours at the reference temperature that correspond to one hour at the drive's.
    pub aging: f64,
    /// Errors per bit that a read adds to the other data in its block at the rated cycles.
    pub read_disturb: f64,
    pub(crate) refresh: Option<Refresh>,
}

/// Relocation of data before they have too many errors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refresh {
    /// Expected raw bit error rate above which data are relocated.
    pub rber: f64,
    pub(crate) interval: Nanos,
}

section! {
    pub(crate) struct Keys {
        reference_temperature: optional OfPhysical(Physical::Temperature) = "40 C",
            "temperature that the retention in `[ecc]` refers to (JESD218, enterprise)";
        temperature: optional OfPhysical(Physical::Temperature) = "`reference_temperature`",
            "temperature of the flash while data age";
        activation_energy: default Number(0.0..=5.0) = ACTIVATION_ENERGY,
            "energy in the Arrhenius equation, in electronvolts (JESD218, JESD22-A117)";
        read_disturb: default Number(0.0..=1e-3) = 0.0,
            "errors per bit that a read adds to the other data of its blocks, at the rated cycles";
        refresh_rber: optional Number(1e-9..=0.5),
            "expected error rate above which a reclaim unit is relocated";
        refresh_interval: optional Time,
            "interval between checks of the worst reclaim unit; required with `refresh_rber`";
    }
}

impl MechanismSection for CellCareConfig {
    type Keys = Keys;

    fn check(keys: Self::Keys, table: &Table<'_>, _: &mut Described<'_>) -> Checked<Self> {
        let (key, refusal) = ("refresh_interval", "it has no effect without refresh_rber");
        let is_needed = keys.refresh_rber.is_some();
        let interval = table.needed_if(is_needed, key, keys.refresh_interval, refusal)?;
        let is_short = interval.is_some_and(|interval| interval < Nanos::from_secs(1));
        reject! { table, key if is_short => "it must be 1 s or more"; }
        let refresh = keys.refresh_rber.zip(interval);
        let reference = keys.reference_temperature.unwrap_or(REFERENCE_CELSIUS);
        let temperature = keys.temperature.unwrap_or(reference);
        Ok(Some(Self {
            aging: acceleration(keys.activation_energy, temperature, reference),
            read_disturb: keys.read_disturb,
            refresh: refresh.map(|(rber, interval)| Refresh { rber, interval }),
        }))
    }
}

/// Refresh of data, one reclaim unit per interval. Its state is in the mechanism of `[ecc]`.
pub(crate) struct Refreshing;

saved! { Refreshing {} }

impl Mechanism for Refreshing {
    const STEPS: u8 = steps::COMMANDS;

    fn of(config: &DeviceConfig) -> Option<Box<Self>> {
        config.sections.cell_care.and_then(|care| care.refresh).map(|_| Box::new(Self))
    }

    fn next_work<R: Recorder>(&self, drive: &Ssd<R>, until: Nanos) -> Option<Nanos> {
        let care = drive.storage.backend.mechanisms.ecc.as_ref()?.care.as_ref()?;
        Some(care.next_refresh).filter(|&at| at <= until)
    }

    /// Relocates the reclaim unit with the most errors, if it has too many.
    #[cold]
    fn work<R: Recorder>(&mut self, drive: &mut Ssd<R>) {
        let Storage { ftl, backend, front, .. } = &mut drive.storage;
        let streams = ftl.config().streams;
        let frontiers = || (0..streams).map(FrontierId);
        let open: Vec<_> = frontiers().filter_map(|frontier| ftl.host_unit(frontier)).collect();
        let now = backend.now;
        let Some(ecc) = &mut backend.mechanisms.ecc else { return };
        let Some(unit) = ecc.begin_refresh(ftl.table(), &open, now) else { return };
        // If the host is idle, data in an open unit would never be refreshed.
        if let Some(frontier) = frontiers().find(|&f| ftl.host_unit(f) == Some(unit)) {
            ftl.abandon(frontier, backend);
        }
        let is_refreshed = ftl.relocate_unit(unit, &mut front.sink(backend));
        if let Some(care) = backend.mechanisms.ecc.as_mut().and_then(|ecc| ecc.care.as_mut()) {
            care.refreshed_units += u64::from(is_refreshed);
        }
    }
}
