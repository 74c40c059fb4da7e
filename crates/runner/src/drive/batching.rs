//! Intervals and batches of a timed step.

use writecliff_base::Nanos;
use writecliff_host_interface::Meters;
use writecliff_measure::batches::{BytesWritten, Totals};
use writecliff_measure::series::{IntervalSeries, WholeDrive};
use writecliff_measure::{OPERATIONS, OperationOutcome};

use super::flushes::Flushes;
use crate::device::DriveModel;

/// Returns the bytes written to the drive and to its flash since the drive was new.
pub(super) fn written<D: DriveModel>(drive: &D) -> BytesWritten {
    let meters = drive.meters(drive.now());
    let nand = meters.nand_write_bytes.map_or(f64::NAN, |bytes| bytes as f64);
    BytesWritten { host: meters.host_write_bytes as f64, nand }
}

const FLUSH: u8 = OPERATIONS as u8;

/// Returns the totals of all operations of all jobs, including the open interval of the series, and
/// of their flushes.
pub(super) fn totals<'a>(
    results: &'a [[OperationOutcome; OPERATIONS]],
    series: &'a IntervalSeries,
    flushes: &'a Flushes,
) -> impl Iterator<Item = Totals<'a>> + Clone {
    debug_assert_eq!(results.len() * OPERATIONS, series.open_cells().count());
    let operations = results.iter().flatten().zip(series.open_cells()).enumerate();
    let operations = operations.map(|(cell, (result, (bytes, open)))| {
        let mut moments = *result.service.moments();
        moments.merge(open);
        Totals {
            job: (cell / OPERATIONS) as u32,
            operation: (cell % OPERATIONS) as u8,
            bytes: result.bytes + bytes,
            ios: result.ios + open.count(),
            moments,
            service: &result.service,
            response: result.response.as_ref(),
        }
    });
    operations.chain((0..).zip(flushes.outcomes()).map(|(job, result)| Totals {
        job,
        operation: FLUSH,
        bytes: 0,
        ios: result.ios,
        moments: *result.service.moments(),
        service: &result.service,
        response: None,
    }))
}

/// Drive meter readings at the end of the last interval.
pub(super) struct IntervalCounters {
    meters: Meters,
    at_ns: u64,
}

impl IntervalCounters {
    pub(super) fn of<D: DriveModel>(drive: &D) -> Self {
        Self::at(drive, drive.now().0)
    }

    fn at<D: DriveModel>(drive: &D, at_ns: u64) -> Self {
        Self { meters: drive.meters(Nanos(at_ns)), at_ns }
    }

    /// Returns the drive activity from the last call until `at_ns`.
    pub(super) fn next<D: DriveModel>(&mut self, drive: &D, at_ns: u64) -> WholeDrive {
        let Self { meters: before, at_ns: began } = std::mem::replace(self, Self::at(drive, at_ns));
        debug_assert!(at_ns >= began, "intervals follow each other");
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
