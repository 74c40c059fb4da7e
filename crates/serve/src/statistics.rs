//! Statistics of a served drive.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use writecliff_base::{Bytes, Nanos, StreamId};
use writecliff_host_interface::Operation;
use writecliff_host_interface::placement::DataPlacementStatus;
use writecliff_measure::Histogram;
use writecliff_runner::{AnyDrive, Counters, MovedByStream};

use crate::request::Request;
use crate::served::PowerHistory;

/// Fraction of the drive's own latency above which lateness falsifies client measurements.
pub const LATENESS_SHARE_MAX: f64 = 0.1;

/// Names of the operations, in the order of [`Operations`] and `Operation`.
pub const OPERATION_NAMES: [&str; 4] = ["read", "write", "trim", "flush"];

/// Completed requests of one operation.
#[derive(Clone, Debug, Default)]
pub struct OperationStatistics {
    /// Completed requests.
    pub requests: u64,
    /// Bytes of these requests.
    pub bytes: u64,
    /// Latency in drive time; empty if timing is disabled.
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

/// Completed client writes and their bytes, by stream or placement identifier of the requests and
/// FTL stream (`None` for a drive without flash). An interface may map an identifier to several FTL
/// streams in turn.
pub type StreamWrites = BTreeMap<(StreamId, Option<StreamId>), (u64, u64)>;

/// SMART counters that the simulated drive itself does not have: host operations since the drive
/// was new, including reads of unmapped blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Life {
    pub(crate) read_commands: u64,
    /// Number of completed write requests.
    pub write_commands: u64,
    pub(crate) read_bytes: u64,
    /// Bytes of these requests.
    pub write_bytes: u64,
    /// Drive time with requests outstanding.
    pub busy: Nanos,
}

impl Life {
    /// Returns the counters of a drive before it is served, including its preconditioning.
    pub(crate) fn before(drive: &AnyDrive) -> Self {
        let counters = drive.counters();
        Self {
            read_bytes: counters.host_read_bytes(),
            write_bytes: counters.host_write_bytes(),
            ..Self::default()
        }
    }

    /// Counts a completed request. Data Units Written and Host Write Commands count Write commands
    /// but not Write Zeroes (NVM Command Set, SMART / Health Information).
    pub(crate) fn count(&mut self, request: &Request) {
        match request.operation {
            Operation::Read => {
                self.read_commands += 1;
                self.read_bytes += request.length;
            }
            Operation::Write if !request.is_zeros => {
                self.write_commands += 1;
                self.write_bytes += request.length;
            }
            Operation::Write | Operation::Trim | Operation::Flush => {}
        }
    }
}

/// Statistics since the last call to [`crate::Served::recent`].
#[derive(Clone, Debug, Default)]
pub struct Recent {
    /// Completed requests by operation.
    pub operations: Operations,
    /// Lateness, defined as in [`Snapshot::lateness`].
    pub lateness: Histogram,
}

/// Statistics of a served drive at a point in time.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Wall time since the start of serving.
    pub wall: Nanos,
    /// Drive time.
    pub drive_time: Nanos,
    pub(crate) slow_down: f64,
    /// Completed requests by operation.
    pub operations: Operations,
    /// Wall time between the due time of a completion and its transmission. If timing is disabled,
    /// the total time of a request in the server.
    pub lateness: Histogram,
    /// Drive counters since the drive was new.
    pub counters: Counters,
    /// Status of the data placement interface; `None` if the drive has no such interface.
    pub data_placement: Option<DataPlacementStatus>,
    /// Client writes since the start of serving.
    pub streams: StreamWrites,
    /// Bytes moved by stream since the start of serving.
    pub moved: Option<MovedByStream>,
    /// Drive power-ups.
    pub power: PowerHistory,
    /// Host operations since the drive was new.
    pub life: Life,
    /// Number of errors logged since the drive was new.
    pub error_entries: u64,
    /// Number of empty reclaim units; `None` for a drive without flash.
    pub free_units: Option<u32>,
    /// Temperature in degrees Celsius; `None` if temperature is not modelled.
    pub celsius: Option<f64>,
    /// Number of connected sessions.
    pub sessions: usize,
    /// Number of requests in the drive.
    pub outstanding: usize,
    /// Memory or file space that the data occupy, in bytes.
    pub used: Bytes,
}

impl Snapshot {
    /// Returns the lateness as a fraction of the drive's own latency, by median or by mean,
    /// whichever is larger; `None` if there are no latencies.
    pub fn lateness_share(&self) -> Option<f64> {
        let mut latency = Histogram::new();
        self.operations.0.iter().for_each(|operation| latency.merge(&operation.latency));
        let median = |of: &Histogram| of.quantile(0.5).ok()?.value_ns.map(|ns| ns as f64);
        let share = |late: Option<f64>, latency: Option<f64>| {
            Some(late? / (latency? * self.slow_down)).filter(|share| share.is_finite())
        };
        let of_medians = share(median(&self.lateness), median(&latency));
        let of_means = share(self.lateness.moments().mean(), latency.moments().mean());
        of_medians.into_iter().chain(of_means).reduce(f64::max)
    }

    /// Returns `true` if the server is so late that clients measure it rather than the drive.
    pub fn is_late(&self) -> bool {
        self.lateness_share().is_some_and(|share| share > LATENESS_SHARE_MAX)
    }
}
