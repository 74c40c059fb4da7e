//! What is watched of a whole drive from interval to interval.

use writecliff_base::Nanos;
use writecliff_ssd::Ssd;

use crate::series::WholeDrive;

/// The drive's counters when they were last looked at.
pub(crate) struct Watch {
    host_bytes: u64,
    nand_bytes: u64,
    joules: Option<f64>,
    at_ns: u64,
}

impl Watch {
    pub(crate) fn of(ssd: &Ssd) -> Self {
        Self::at(ssd, ssd.now().0)
    }

    fn at(ssd: &Ssd, at_ns: u64) -> Self {
        Self {
            host_bytes: ssd.host_write_bytes(),
            nand_bytes: ssd.nand_write_bytes(),
            joules: ssd.energy_until(Nanos(at_ns)).map(|energy| energy.total()),
            at_ns,
        }
    }

    /// What the drive did since the last look, until `at_ns`.
    pub(crate) fn next(&mut self, ssd: &Ssd, at_ns: u64) -> WholeDrive {
        let before = std::mem::replace(self, Self::at(ssd, at_ns));
        let host = self.host_bytes - before.host_bytes;
        let nand = self.nand_bytes - before.nand_bytes;
        let seconds = Nanos(at_ns).saturating_sub(Nanos(before.at_ns)).as_secs_f64();
        let watts = match (before.joules, self.joules) {
            (Some(then), Some(now)) if seconds > 0.0 => (now - then) / seconds,
            _ => f64::NAN,
        };
        let waf = if host == 0 { f64::NAN } else { nand as f64 / host as f64 };
        let celsius = ssd.thermal_at(Nanos(at_ns)).map_or(f64::NAN, |thermal| thermal.celsius);
        WholeDrive { waf, watts, celsius }
    }
}
