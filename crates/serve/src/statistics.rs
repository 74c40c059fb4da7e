//! Statistics of a served drive.

use std::collections::BTreeMap;

use writecliff_base::{Bytes, Nanos, StreamId};
use writecliff_host_interface::placement::DataPlacementStatus;
use writecliff_measure::Histogram;
use writecliff_runner::{Counters, MovedByStream};

use crate::life::Life;
use crate::request::Request;
use crate::served::PowerHistory;

/// Lateness beyond this share of the drive's own latency falsifies clients' measurements.
pub const LATENESS_SHARE_MAX: f64 = 0.1;

/// Names of the operations, in the order of [`Operations`] and of `Operation`.
pub const OPERATION_NAMES: [&str; 4] = ["read", "write", "trim", "flush"];

/// Completed requests of one operation.
#[derive(Clone, Debug, Default)]
pub struct OperationStatistics {
    /// Completed requests.
    pub requests: u64,
    /// Bytes of these requests.
    pub bytes: u64,
    /// Latency in the drive's time; empty without timing.
    pub latency: Histogram,
}

/// Completed requests by operation.
#[derive(Clone, Debug, Default)]
pub struct Operations(pub [OperationStatistics; 4]);

impl Operations {
    pub(crate) fn count(&mut self, request: &Request, latency: Option<Nanos>) {
        let statistics = &mut self.0[request.operation as usize];
        statistics.requests += 1;
        statistics.bytes += request.length;
        if let Some(latency) = latency {
            statistics.latency.record(latency.0);
        }
        debug_assert!(statistics.latency.count() <= statistics.requests, "latencies of no request");
    }
}

/// Writes of clients with one stream number (a stream or placement identifier) that went to one
/// stream of the FTL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamWrites {
    /// Stream or placement identifier of the requests.
    pub number: u16,
    /// FTL stream of the writes; `None` for a drive without flash.
    pub drive_stream: Option<u16>,
    /// Completed writes.
    pub requests: u64,
    /// Bytes of these writes.
    pub bytes: u64,
}

/// Completed writes, by stream number and stream of the FTL. An interface may map an identifier to
/// several FTL streams in turn.
#[derive(Debug, Default)]
pub(crate) struct Streams(BTreeMap<(StreamId, Option<StreamId>), (u64, u64)>);

impl Streams {
    pub(crate) fn count(&mut self, request: &Request, drive_stream: Option<StreamId>) {
        let (requests, bytes) = self.0.entry((request.stream, drive_stream)).or_default();
        *requests += 1;
        *bytes += request.length;
    }

    /// Returns the streams with writes, in ascending order.
    pub(crate) fn used(&self) -> Vec<StreamWrites> {
        let writes = |(&(number, drive), &(requests, bytes)): (&(StreamId, _), &(u64, u64))| {
            let drive_stream = Option::map(drive, |stream: StreamId| stream.0);
            StreamWrites { number: number.0, drive_stream, requests, bytes }
        };
        self.0.iter().map(writes).collect()
    }
}

/// Statistics since the last call of [`crate::Served::recent`].
#[derive(Clone, Debug, Default)]
pub struct Recent {
    /// Completed requests by operation.
    pub operations: Operations,
    /// Lateness as in [`Snapshot::lateness`].
    pub lateness: Histogram,
}

/// Statistics of a served drive at one time.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Wall time since the start of serving.
    pub wall: Nanos,
    /// The drive's time.
    pub drive_time: Nanos,
    pub(crate) slow_down: f64,
    /// Completed requests by operation.
    pub operations: Operations,
    /// Wall time between the due time of a completion and its transmission. Without timing, the
    /// whole time of a request in the server.
    pub lateness: Histogram,
    /// Counters of the drive since it was new.
    pub counters: Counters,
    /// Status of the data placement interface; `None` for a drive without one.
    pub data_placement: Option<DataPlacementStatus>,
    /// Writes of clients since the start of serving.
    pub streams: Vec<StreamWrites>,
    /// Bytes moved by stream since the start of serving.
    pub moved: Option<MovedByStream>,
    /// Power-ups of the drive.
    pub power: PowerHistory,
    /// Work of hosts since the drive was new.
    pub life: Life,
    /// Errors in the error log since the drive was new.
    pub error_entries: u64,
    /// Empty reclaim units; `None` without flash.
    pub free_units: Option<u32>,
    /// Temperature in degrees Celsius; `None` if it is not modelled.
    pub celsius: Option<f64>,
    /// Number of connected sessions.
    pub sessions: usize,
    /// Number of requests in the drive.
    pub outstanding: usize,
    /// Memory or file space that the data occupy.
    pub used: Bytes,
}

impl Snapshot {
    /// Returns the lateness as a share of the drive's own latency, by median or by mean, whichever
    /// is larger; `None` without latencies.
    pub fn lateness_share(&self) -> Option<f64> {
        let mut latency = Histogram::new();
        self.operations.0.iter().for_each(|operation| latency.merge(&operation.latency));
        let median = |of: &Histogram| of.quantile(0.5).ok()?.value_ns.map(|ns| ns as f64);
        let share = |late: Option<f64>, latency: Option<f64>| {
            Some(late? / (latency? * self.slow_down)).filter(|share| share.is_finite())
        };
        let of_medians = share(median(&self.lateness), median(&latency));
        let of_means = share(self.lateness.mean_ns(), latency.mean_ns());
        of_medians.into_iter().chain(of_means).reduce(f64::max)
    }

    /// Returns `true` if clients measure the server rather than the drive.
    pub fn is_late(&self) -> bool {
        self.lateness_share().is_some_and(|share| share > LATENESS_SHARE_MAX)
    }
}
