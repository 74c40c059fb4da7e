//! Accesses to 4 KiB blocks. Counts are exact while the blocks fit into memory, and are then based
//! on a spatial sample that fits into the processor's cache.
//!
//! A block is in the sample if its hash is below a threshold, which is halved whenever the sample
//! is full. The counts of a block that stays in the sample are complete from its first I/O on.

use writecliff_base::random;

use super::histogram::WeightedHistogram;

/// Returns a pseudo-random bijection of 64-bit numbers.
#[inline]
pub(crate) fn mixed(value: u64) -> u64 {
    random::nth(value, 0)
}

#[inline]
pub(crate) fn hash_of(volume: u32, block: u64) -> u64 {
    // Blocks of different volumes get different values.
    mixed(block ^ u64::from(volume) << 48 ^ u64::from(volume) >> 16)
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Block {
    hash: u64,
    last_write_ns: i64,
    /// Bytes written by the trace at the time of the block's last write.
    last_write_at: u64,
    pub(crate) reads: u32,
    pub(crate) writes: u32,
    pub(crate) volume: u32,
}

pub(crate) struct Blocks {
    slots: Vec<Block>,
    used: usize,
    max: usize,
    /// Limit on the number of blocks in a sample.
    sample_max: usize,
    threshold: u64,
    /// Number of blocks that each sampled block represents; 1 while all blocks are stored.
    pub(crate) scale: f64,
    /// Time and bytes written between two writes of a block.
    pub(crate) update_ns: WeightedHistogram,
    pub(crate) update_bytes: WeightedHistogram,
    /// Writes and reads of blocks that the trace had written before.
    pub(crate) overwrites: f64,
    pub(crate) reads_of_written: f64,
}

impl Blocks {
    pub(crate) fn new(max: usize, sample_max: usize) -> Self {
        Self {
            slots: vec![Block::default(); 64],
            used: 0,
            max,
            sample_max: sample_max.min(max),
            threshold: u64::MAX,
            scale: 1.0,
            update_ns: WeightedHistogram::default(),
            update_bytes: WeightedHistogram::default(),
            overwrites: 0.0,
            reads_of_written: 0.0,
        }
    }

    /// Records an access to a block; `written` is the number of bytes written by the trace so far.
    #[inline]
    pub(crate) fn touch(&mut self, hash: u64, volume: u32, write: bool, ns: i64, written: u64) {
        // The value 0 marks a free slot, so one block in 2^64 is never sampled.
        if hash > self.threshold || hash == 0 {
            return;
        }
        let mut at = self.find(hash);
        if self.slots[at].hash == 0 {
            self.slots[at] = Block { hash, volume, ..Block::default() };
            self.used += 1;
            if self.used * 2 > self.slots.len() {
                self.keep(self.slots.len() * 2);
                at = self.find(hash);
            }
        }
        debug_assert!(self.slots[at].hash == hash && self.used < self.slots.len());
        let block = &mut self.slots[at];
        let is_written = block.writes > 0;
        if write {
            if is_written {
                self.overwrites += self.scale;
                let since_ns = ns.saturating_sub(block.last_write_ns).max(0);
                self.update_ns.add(since_ns.unsigned_abs(), self.scale);
                self.update_bytes.add(written - block.last_write_at, self.scale);
            }
            (block.last_write_ns, block.last_write_at) = (ns, written);
            block.writes = block.writes.saturating_add(1);
        } else {
            self.reads_of_written += if is_written { self.scale } else { 0.0 };
            block.reads = block.reads.saturating_add(1);
        }
        if self.used > self.max {
            self.shrink();
        }
    }

    #[inline]
    fn find(&self, hash: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at].hash != 0 && self.slots[at].hash != hash {
            at = (at + 1) & mask;
        }
        at
    }

    /// Halves the sample until it fits.
    #[cold]
    fn shrink(&mut self) {
        self.max = self.sample_max;
        while self.used > self.max {
            self.threshold >>= 1;
            self.scale *= 2.0;
            self.keep(self.slots.len());
        }
        // The table has more slots than the sample can fill, so it never needs to grow again.
        self.keep((self.sample_max * 4).next_power_of_two());
    }

    /// Moves the blocks below the threshold into a table of `slots` slots, a power of two.
    #[cold]
    fn keep(&mut self, slots: usize) {
        assert!(slots.is_power_of_two() && slots > self.max.min(self.used), "{slots} slots");
        let empty = vec![Block::default(); slots];
        let all = std::mem::replace(&mut self.slots, empty);
        self.used = 0;
        for block in all {
            if block.hash != 0 && block.hash <= self.threshold {
                let at = self.find(block.hash);
                debug_assert_eq!(self.slots[at].hash, 0, "a block is stored once");
                self.slots[at] = block;
                self.used += 1;
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Block> {
        self.slots.iter().filter(|block| block.hash != 0)
    }

    pub(crate) fn len(&self) -> usize {
        self.used
    }

    pub(crate) fn relative_error(&self) -> f64 {
        if self.scale > 1.0 { 1.0 / (self.used.max(1) as f64).sqrt() } else { 0.0 }
    }
}
