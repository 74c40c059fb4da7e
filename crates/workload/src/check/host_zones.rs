//! Checks of the zones that the host maintains.

use writecliff_base::Bytes;
use writecliff_host_interface::Operation;

use super::{Check, SpecError, reject, whole_sectors};
use crate::spec::{JobSpec, Pattern};

/// Maximum number of zones; each zone takes 8 bytes, and random reads search the zones.
pub(super) const ZONES_MAX: u64 = 1 << 20;
/// Maximum number of open zones, which is fio's limit.
const OPEN_MAX: u32 = 4096;
const KEY: &str = "host_zones";

pub(super) fn check(job: &JobSpec) -> Check {
    let Some(zones) = job.host_zones else { return Ok(()) };
    whole_sectors(KEY, zones.size_bytes)?;
    whole_sectors(KEY, zones.capacity())?;
    let (size, capacity) = (zones.size_bytes, zones.capacity());
    let of = |operation| job.block_sizes_of(operation).iter().map(|block| block.bytes).max();
    let operations = [
        (Operation::Read, job.read_pct > 0.0),
        (Operation::Write, job.read_pct + job.trim_pct < 100.0),
    ];
    let used = operations.into_iter().filter(|&(_, used)| used);
    let largest = used.filter_map(|(operation, _)| of(operation)).max().unwrap_or(0);
    let trims = job.trims.as_ref().map_or(&job.block_sizes, |blocks| &blocks.block_sizes);
    let whole = trims.iter().all(|block| block.bytes == size);
    let plain = job.hole_bytes == 0
        && job.files == 1
        && !job.one_position
        && !job.trim_first
        && job.log.is_none()
        && job.segments.is_none()
        && job.thread_stride_bytes == 0;
    let trims_in_order = job.pattern == Pattern::Sequential && job.trim_pct > 0.0;
    reject! {
        KEY if capacity == 0 || capacity > size || largest > capacity =>
            "blocks of {}, a capacity of {} and zones of {} do not fit into each other",
            Bytes(largest), Bytes(capacity), Bytes(size);
        KEY if zones.max_open > OPEN_MAX => "max_open {} is above {OPEN_MAX}", zones.max_open;
        KEY if zones.max_open == 0 && zones.max_open_per_thread != 0 =>
            "max_open_per_thread needs max_open";
        KEY if !(0.0..=100.0).contains(&zones.reset_above_pct) =>
            "reset_above {} % is outside 0 % to 100 %", zones.reset_above_pct;
        KEY if job.trim_pct != 0.0 && !whole => "trims need blocks of the size of a zone";
        KEY if !plain =>
            "not together with hole, back, files, one_position, trim_first, a log, segments \
             or thread_stride";
        KEY if trims_in_order && job.trim_pct < 100.0 =>
            "sequential trims need a separate job";
    }
    Ok(())
}

/// Checks that the range consists of whole zones, and checks their number.
pub(super) fn fit(job: &JobSpec, capacity: Bytes) -> Check {
    let Some(zones) = job.host_zones else { return Ok(()) };
    let (size, range) = (zones.size_bytes, job.range_on(capacity));
    let whole = job.offset_bytes.is_multiple_of(size) && range.0.is_multiple_of(size);
    let count = capacity.0 / size;
    reject! {
        KEY if !whole || range.0 == 0 =>
            "offset and range must be multiples of the zone size of {}", Bytes(size);
        KEY if count > ZONES_MAX =>
            "the drive would have {count} zones, more than {ZONES_MAX}";
    }
    Ok(())
}

/// Checks that all jobs define the same zones.
pub(super) fn check_shared(jobs: &[JobSpec]) -> Result<(), SpecError> {
    let key = |job: &JobSpec| {
        let zones = job.host_zones?;
        Some((zones.size_bytes, zones.capacity(), zones.max_open, zones.begin_full))
    };
    let mut every = jobs.iter().filter_map(key);
    let first = every.next();
    if every.all(|zones| Some(zones) == first) {
        return Ok(());
    }
    Err(SpecError::Workload(
        "host_zones must be equal in all jobs, but the jobs differ in size, capacity, \
         max_open or begin_full"
            .to_owned(),
    ))
}
