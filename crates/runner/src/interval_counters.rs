//! Changes of drive counters between intervals.

use writecliff_base::Nanos;
use writecliff_host_interface::Meters;
use writecliff_measure::series::WholeDrive;

use crate::device::DriveModel;

/// The drive's meters at the end of the last interval.
pub(crate) struct IntervalCounters {
    meters: Meters,
    at_ns: u64,
}

impl IntervalCounters {
    pub(crate) fn of<D: DriveModel>(drive: &D) -> Self {
        Self::at(drive, drive.now().0)
    }

    fn at<D: DriveModel>(drive: &D, at_ns: u64) -> Self {
        Self { meters: drive.meters(Nanos(at_ns)), at_ns }
    }

    /// Activity of the drive from the last call until `at_ns`.
    pub(crate) fn next<D: DriveModel>(&mut self, drive: &D, at_ns: u64) -> WholeDrive {
        let Self { meters: before, at_ns: began } = std::mem::replace(self, Self::at(drive, at_ns));
        let after = &self.meters;
        let host = after.host_write_bytes - before.host_write_bytes;
        let seconds = Nanos(at_ns).saturating_sub(Nanos(began)).as_secs_f64();
        let watts = match (before.joules, after.joules) {
            (Some(then), Some(now)) if seconds > 0.0 => (now - then) / seconds,
            _ => f64::NAN,
        };
        let waf = match (before.nand_write_bytes, after.nand_write_bytes) {
            (Some(then), Some(now)) if host > 0 => (now - then) as f64 / host as f64,
            _ => f64::NAN,
        };
        WholeDrive { waf, watts, celsius: after.celsius.unwrap_or(f64::NAN) }
    }
}
