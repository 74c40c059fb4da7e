//! Batches of a step on the timed clock.

use super::Run;
use crate::batches::{Totals, Written};
use crate::device::DriveModel;
use crate::outcome::{OPERATIONS, OperationOutcome};
use crate::series::IntervalSeries;

/// Bytes written to the drive and to its flash since it was new.
pub(super) fn written<D: DriveModel>(drive: &D) -> Written {
    let nand = drive.nand_write_bytes().map_or(f64::NAN, |bytes| bytes as f64);
    Written { host: drive.host_write_bytes() as f64, nand }
}

/// Totals of all operations of all jobs, those of the series' open interval included.
pub(super) fn totals<'a>(
    results: &'a [[OperationOutcome; OPERATIONS]],
    series: &'a IntervalSeries,
) -> impl Iterator<Item = Totals<'a>> + Clone {
    let results = results.iter().flatten();
    results.zip(series.open_cells()).map(|(result, (bytes, open))| Totals {
        bytes: result.bytes + bytes,
        ios: result.ios + open.count(),
        service_ns: result.service.moments().sum + open.sum,
        service: &result.service,
        service_range_ns: (
            result.service.moments().min.min(open.min),
            result.service.moments().max.max(open.max),
        ),
        response: result.response.as_ref(),
    })
}

impl<D: DriveModel> Run<'_, D> {
    pub(super) fn end_batches(&mut self, now: u64) {
        let totals = totals(&self.results, &self.series);
        self.batches.close(now, totals, written(self.drive));
    }
}
