//! Retention, read disturb and data refresh: section `[cell_care]` of a device file, which extends
//! `[ecc]`.
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

mod refresh;
mod section;

use writecliff_base::{Nanos, ReclaimUnitId, counters, saved};

pub(crate) use refresh::Refreshing;
pub use section::{CellCareConfig, Refresh};

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
    next_refresh: Nanos,
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

    /// Returns the time of the next refresh if it is not after `until`.
    pub fn due(&self, until: Nanos) -> Option<Nanos> {
        (self.next_refresh <= until).then_some(self.next_refresh)
    }

    /// Prepares a refresh; called at its start.
    pub fn begun(&mut self) {
        if let Some(refresh) = self.config.refresh {
            self.next_refresh += refresh.interval;
        }
    }
}
