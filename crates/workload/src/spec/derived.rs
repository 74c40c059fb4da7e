//! Job properties derived from the job definition.

use writecliff_base::{Bytes, SLOT_BYTES};
use writecliff_host_interface::Operation;
use writecliff_synthesis::{IoLog, IoModel};

use super::{BlockSize, JobSpec, OwnBlocks};

impl JobSpec {
    /// Returns the job for a drive of capacity `capacity`, with percentages of the drive converted
    /// to bytes and rounded down to 4 KiB.
    #[must_use]
    pub fn resolved(&self, capacity: Bytes) -> Self {
        let share = |pct: f64| {
            let exact = capacity.0 as f64 * (pct / 100.0);
            let whole = if pct >= 100.0 && pct % 100.0 == 0.0 {
                capacity.0 * (pct / 100.0) as u64
            } else {
                exact as u64
            };
            whole / SLOT_BYTES * SLOT_BYTES
        };
        let mut job = self.clone();
        if let Some(pct) = job.offset_pct.take() {
            job.offset_bytes = share(pct);
        }
        if let Some(pct) = job.range_pct.take() {
            job.range_bytes = Some(share(pct));
        }
        if let Some(pct) = job.volume_pct.take() {
            job.volume_bytes = Some(share(pct));
        }
        job
    }

    /// Returns the range size on a drive of capacity `capacity`; 0 if the offset lies beyond the
    /// drive.
    pub fn range_on(&self, capacity: Bytes) -> Bytes {
        let job = self.resolved(capacity);
        Bytes(job.range_bytes.unwrap_or(capacity.0.saturating_sub(job.offset_bytes)))
    }

    /// Returns the block sizes of an operation, which are its own or the job's.
    pub fn block_sizes_of(&self, operation: Operation) -> &[BlockSize] {
        self.own_blocks(operation).map_or(&self.block_sizes, |blocks| &blocks.block_sizes)
    }

    pub(crate) fn own_blocks(&self, operation: Operation) -> Option<&OwnBlocks> {
        match operation {
            Operation::Write => self.writes.as_ref(),
            Operation::Trim => self.trims.as_ref(),
            Operation::Read | Operation::Flush => None,
        }
    }

    /// Returns all block sizes that the job may use.
    pub(crate) fn all_block_sizes(&self) -> impl Iterator<Item = &BlockSize> {
        let sizes = self.writes.iter().chain(&self.trims).flat_map(|blocks| &blocks.block_sizes);
        self.block_sizes.iter().chain(sizes)
    }

    /// Returns the mean block size in bytes, averaged over the mix of operations.
    pub fn mean_block_bytes(&self) -> f64 {
        let of = |operation: Operation| {
            let sizes = self.block_sizes_of(operation);
            let total: f64 = sizes.iter().map(|size| size.weight).sum();
            sizes.iter().map(|size| size.bytes as f64 * size.weight).sum::<f64>() / total
        };
        if self.writes.is_none() && self.trims.is_none() {
            return of(Operation::Read);
        }
        let shares = [
            (Operation::Read, self.read_pct),
            (Operation::Write, 100.0 - self.read_pct - self.trim_pct),
            (Operation::Trim, self.trim_pct),
        ];
        shares.iter().map(|&(operation, share)| of(operation) * share / 100.0).sum()
    }

    /// Returns `true` if some I/Os of a random job start where the previous I/O ended.
    pub(crate) fn continues(&self) -> bool {
        self.sequential_read_pct > 0.0
            || self.sequential_write_pct > 0.0
            || self.has_ordered_sizes()
    }

    /// Returns `true` if some I/Os of a size are sequential.
    pub(crate) fn has_ordered_sizes(&self) -> bool {
        let sizes = self.writes.iter().flat_map(|blocks| &blocks.block_sizes);
        self.block_sizes.iter().chain(sizes).any(|size| size.sequential_pct > 0.0)
    }

    /// Returns `true` if arrivals are scheduled and do not wait for the drive.
    pub fn is_open(&self) -> bool {
        self.rate_iops.is_some()
            || self.rate_bytes_per_s.is_some()
            || self.log.as_ref().is_some_and(|log| !log.times_ns.is_empty())
            || self.model.is_some()
    }

    /// Returns `true` if the job issues TRIM commands.
    pub fn trims_blocks(&self) -> bool {
        self.trim_pct > 0.0
            || self.trim_first
            || self.log.as_ref().is_some_and(IoLog::trims)
            || self.model.as_ref().is_some_and(IoModel::trims)
    }
}
