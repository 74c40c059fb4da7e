//! Wear: erase counts. All blocks of a reclaim unit are erased together and share its count.

use writecliff_base::ReclaimUnitId;

/// Erase counts by reclaim unit, and the rated count of the flash part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wear {
    /// Erase count of each reclaim unit.
    pub erases: Vec<u32>,
    pub(crate) rated_cycles: u32,
    total: u64,
}

/// Distribution of the erase counts over all blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WearSummary {
    /// Lowest erase count of any block.
    pub min: u32,
    /// Mean erase count.
    pub mean: f64,
    /// Highest erase count of any block.
    pub max: u32,
    /// Mean erase count in percent of the rated cycles (SMART "percentage used"); may exceed 100.
    pub percentage_used: f64,
}

impl Wear {
    /// Returns the initial wear of a new drive.
    pub fn new(reclaim_units: u32, rated_cycles: u32) -> Self {
        Self::from_counts(vec![0; reclaim_units as usize], rated_cycles)
    }

    /// Restores the wear from the erase count of each reclaim unit.
    pub fn from_counts(erases: Vec<u32>, rated_cycles: u32) -> Self {
        assert!(rated_cycles > 0, "wear is relative to the rated cycles");
        let total = erases.iter().map(|&n| u64::from(n)).sum();
        Self { erases, rated_cycles, total }
    }

    /// Counts one erase of `unit`.
    #[inline]
    pub fn record_erase(&mut self, unit: ReclaimUnitId) {
        self.erases[unit.index()] += 1;
        self.total += 1;
    }

    /// Returns the erase count of `unit`.
    #[inline]
    pub fn of(&self, unit: ReclaimUnitId) -> u32 {
        self.erases[unit.index()]
    }

    /// Returns the number of reclaim unit erases since the drive was new.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Summarises the erase counts of all blocks.
    pub fn summary(&self) -> WearSummary {
        debug_assert!(!self.erases.is_empty(), "the mean of no units");
        let mean = self.total as f64 / self.erases.len() as f64;
        WearSummary {
            min: self.erases.iter().copied().min().unwrap_or(0),
            mean,
            max: self.erases.iter().copied().max().unwrap_or(0),
            percentage_used: 100.0 * mean / f64::from(self.rated_cycles),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_follows_the_counts() {
        let mut wear = Wear::new(4, 1000);
        for unit in [0, 0, 0, 2] {
            wear.record_erase(ReclaimUnitId(unit));
        }
        let summary = wear.summary();
        assert_eq!((summary.min, summary.max), (0, 3));
        assert!((summary.mean - 1.0).abs() < 1e-12);
        assert!((summary.percentage_used - 0.1).abs() < 1e-12);
        assert_eq!(Wear::from_counts(wear.erases.clone(), 1000), wear);
    }
}
