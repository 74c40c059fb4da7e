//! Changes of drive counters between intervals.

use writecliff_base::Nanos;
use writecliff_measure::series::WholeDrive;

use crate::device::DriveModel;

/// The drive's counters at the end of the last interval.
pub(crate) struct IntervalCounters {
    host_bytes: u64,
    /// `None` if nothing is written to flash.
    nand_bytes: Option<u64>,
    joules: Option<f64>,
    at_ns: u64,
}

impl IntervalCounters {
    pub(crate) fn of<D: DriveModel>(drive: &D) -> Self {
        Self::at(drive, drive.now().0)
    }

    fn at<D: DriveModel>(drive: &D, at_ns: u64) -> Self {
        Self {
            host_bytes: drive.host_write_bytes(),
            nand_bytes: drive.nand_write_bytes(),
            joules: drive.joules_until(Nanos(at_ns)),
            at_ns,
        }
    }

    /// Activity of the drive from the last call until `at_ns`.
    pub(crate) fn next<D: DriveModel>(&mut self, drive: &D, at_ns: u64) -> WholeDrive {
        let before = std::mem::replace(self, Self::at(drive, at_ns));
        let host = self.host_bytes - before.host_bytes;
        let seconds = Nanos(at_ns).saturating_sub(Nanos(before.at_ns)).as_secs_f64();
        let watts = match (before.joules, self.joules) {
            (Some(then), Some(now)) if seconds > 0.0 => (now - then) / seconds,
            _ => f64::NAN,
        };
        let waf = match (before.nand_bytes, self.nand_bytes) {
            (Some(then), Some(now)) if host > 0 => (now - then) as f64 / host as f64,
            _ => f64::NAN,
        };
        WholeDrive { waf, watts, celsius: drive.celsius_at(Nanos(at_ns)).unwrap_or(f64::NAN) }
    }
}
