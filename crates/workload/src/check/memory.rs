//! Memory use of a workload, computed before it runs: its threads and the rows of its series.

use writecliff_base::{Bytes, Nanos};

use super::SpecError;
use crate::block_map::BlockMap;
use crate::spec::{AddressKind, JobSpec, WorkloadSpec};

/// Maximum number of rows in a step's series, with one row per interval, job and operation. A row
/// takes up to 500 bytes, including storage and plots.
pub const SERIES_ROWS_MAX: u64 = 3_000_000;
/// Maximum number of rows in memory, which is an eighth more than a workload may request because
/// I/Os complete after its end.
pub const SERIES_ROWS_KEPT: u64 = SERIES_ROWS_MAX / 8 * 9;
/// Maximum number of concurrent jobs; each job has histograms, and lines in the report.
pub(super) const JOBS_MAX: usize = 2000;
/// Limit on the memory of the threads of all jobs, computed from the constants below.
pub(super) const THREADS_BYTES_MAX: u64 = 1 << 30;

const OPERATIONS: u64 = 3;
/// Size of a row in bytes during the step.
const ROW_BYTES: u64 = 81;
const THREAD_BYTES: u64 = 2560;
/// Memory per outstanding I/O in bytes, in the host model and in the drive.
const OUTSTANDING_BYTES: u64 = 192;
/// Memory per file in bytes: positions for each operation, see `striding`.
const FILE_BYTES: u64 = 48;
const SEGMENT_BYTES: u64 = 8;

impl WorkloadSpec {
    pub(super) fn check_memory(&self) -> Result<(), SpecError> {
        if self.jobs.len() > JOBS_MAX {
            let text =
                format!("it has {} jobs; the limit is {JOBS_MAX} concurrent jobs", self.jobs.len());
            return Err(SpecError::Workload(text));
        }
        let needed = self.jobs.iter().map(threads_bytes).fold(0, u64::saturating_add);
        if needed > THREADS_BYTES_MAX {
            return Err(SpecError::Workload(format!(
                "its threads need {} of memory for queue depths, segments and files; the limit is \
                 {}",
                gigabytes(needed as f64),
                Bytes(THREADS_BYTES_MAX)
            )));
        }
        let length_ns = self.least_length_ns();
        if self.series_rows(length_ns) > SERIES_ROWS_MAX {
            return Err(self.series_too_long(length_ns));
        }
        Ok(())
    }

    fn cells(&self) -> u64 {
        OPERATIONS * self.jobs.len() as u64
    }

    fn series_rows(&self, length_ns: u64) -> u64 {
        length_ns.div_ceil(self.interval_ns.max(1)).saturating_mul(self.cells())
    }

    /// Returns the error for a step of `length_ns` whose series has too many rows.
    pub fn series_too_long(&self, length_ns: u64) -> SpecError {
        let rows = self.series_rows(length_ns);
        let least_ns = least_interval_ns(length_ns, self.cells());
        SpecError::Workload(format!(
            "its series needs {}: {rows} rows of {}; the limit is {SERIES_ROWS_MAX} rows; set an \
             interval of {} or more, or shorten the step",
            gigabytes(rows as f64 * ROW_BYTES as f64),
            Nanos(self.interval_ns),
            Nanos(least_ns)
        ))
    }

    /// Returns a lower bound of the workload's duration, as far as its jobs specify a duration.
    fn least_length_ns(&self) -> u64 {
        if self.jobs.iter().any(|job| job.ends_all) {
            return 0;
        }
        self.jobs.iter().map(least_length_ns).max().unwrap_or(0)
    }
}

fn threads_bytes(job: &JobSpec) -> u64 {
    let segments = job.segments.map_or(0, |segments| segments.count);
    let each = THREAD_BYTES
        .saturating_add(u64::from(job.queue_depth) * OUTSTANDING_BYTES)
        .saturating_add(segments.saturating_mul(SEGMENT_BYTES))
        .saturating_add(u64::from(job.files) * FILE_BYTES)
        .saturating_add(block_map_bytes(job));
    each.saturating_mul(u64::from(job.threads))
}

/// Returns the size of the block map of the range; 0 if the range is unknown or the job has no
/// map.
fn block_map_bytes(job: &JobSpec) -> u64 {
    let smallest = job.all_block_sizes().map(|size| size.bytes).min().unwrap_or(1);
    let unit = job.align_bytes.unwrap_or(smallest).max(1);
    let is_kept = job.addresses.kind == AddressKind::Once;
    let range = if is_kept { job.range_bytes.unwrap_or(0) } else { 0 };
    BlockMap::memory_bytes(range / unit)
}

fn least_length_ns(job: &JobSpec) -> u64 {
    let sooner = job.volume_bytes.is_some()
        || job.volume_pct.is_some()
        || job.ios.is_some()
        || job.log.is_some()
        || job.until_steady.is_some()
        || !job.least_rates.is_empty();
    let lasts = if sooner { 0 } else { job.duration_ns.unwrap_or(0) };
    job.start_delay_ns.saturating_add(lasts)
}

fn gigabytes(bytes: f64) -> String {
    let gigabytes = bytes / 1e9;
    if gigabytes >= 100.0 { format!("{gigabytes:.0} GB") } else { format!("{gigabytes:.2} GB") }
}

/// Returns an interval with one non-zero digit that limits the series to the permitted number of
/// rows.
fn least_interval_ns(length_ns: u64, cells: u64) -> u64 {
    let most = u128::from(SERIES_ROWS_MAX / cells.max(1)).max(1);
    let ns = u128::from(length_ns).div_ceil(most).max(1);
    let step = 10u128.pow(ns.ilog10());
    u64::try_from(ns.div_ceil(step) * step).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lasting(duration_ns: u64, interval_ns: u64) -> WorkloadSpec {
        let job = JobSpec { duration_ns: Some(duration_ns), ..JobSpec::default() };
        WorkloadSpec { name: "test".to_owned(), jobs: vec![job], seed: 1, interval_ns }
    }

    #[test]
    fn a_series_may_have_so_many_rows_and_no_more() {
        let most = SERIES_ROWS_MAX / OPERATIONS;
        assert!(lasting(most * 1000, 1000).check().is_ok());
        let error = lasting(most * 1000 + 1, 1000).check().unwrap_err().to_string();
        assert_eq!(
            error,
            "workload: its series needs 0.24 GB: 3000003 rows of 1 us; the limit is \
             3000000 rows; set an interval of 2 us or more, or shorten the step"
        );
    }

    #[test]
    fn the_interval_that_is_proposed_is_long_enough() {
        for length_ns in [1_000_000_000, 7_777_777_777, u64::MAX] {
            let error = lasting(length_ns, 1).check().unwrap_err().to_string();
            assert!(error.contains("set an interval of "), "{error}");
            let least_ns = least_interval_ns(length_ns, OPERATIONS);
            assert!(lasting(length_ns, least_ns).check().is_ok(), "{length_ns}: {least_ns}");
        }
    }

    #[test]
    fn what_may_end_sooner_is_not_refused_for_its_length() {
        let mut spec = lasting(u64::MAX, 1);
        spec.jobs[0].ios = Some(1);
        assert!(spec.check().is_ok());
        spec.jobs[0].start_delay_ns = 1_000_000_000_000;
        assert!(spec.check().is_err());
    }

    #[test]
    fn threads_are_refused_by_what_they_take_together() {
        let mut spec = lasting(1_000, 1_000);
        spec.jobs[0].threads = 4096;
        assert!(spec.check().is_ok());
        spec.jobs[0].queue_depth = 65_536;
        let error = spec.check().unwrap_err().to_string();
        assert!(error.contains("its threads need 51.5"), "{error}");
    }

    #[test]
    fn jobs_are_counted() {
        let mut spec = lasting(1_000, 1_000);
        spec.jobs = vec![spec.jobs[0].clone(); JOBS_MAX + 1];
        let error = spec.check().unwrap_err().to_string();
        assert_eq!(error, "workload: it has 2001 jobs; the limit is 2000 concurrent jobs");
    }
}
