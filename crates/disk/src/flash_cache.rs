//! The flash cache of a hybrid disk, which serves frequently read blocks.
//!
//! Writes go to the platters and invalidate cached blocks, as in the first hybrid drives. Copying a
//! block to flash takes no host-visible time because the block has just been read. A clock
//! algorithm selects the block to evict. A block that was read since the clock hand last passed
//! stays cached for another round.

use std::io::{Read, Write};

use writecliff_base::codec::{CodecError, StateReader, StateWriter};
use writecliff_base::memory::zeroed;
use writecliff_base::{Nanos, SECTOR_BYTES, ensure};

use crate::config::FlashCacheConfig;

/// Flag of a slot that was read since the hand last passed; the other bits are its block plus 1.
const USED: u32 = 1 << 31;

#[derive(Clone, Debug)]
pub(crate) struct FlashCache {
    config: FlashCacheConfig,
    block_sectors: u64,
    /// State of each disk block: its slot plus one, or `COUNT + n` after `n` media reads.
    blocks: Vec<u32>,
    slots: Vec<u32>,
    hand: u32,
}

/// Entries of `COUNT` and above count reads.
const COUNT: u32 = 1 << 30;

impl FlashCache {
    pub(crate) fn new(config: &FlashCacheConfig, capacity_bytes: u64) -> Self {
        Self {
            block_sectors: config.block.0 / SECTOR_BYTES,
            blocks: zeroed(capacity_bytes.div_ceil(config.block.0) as usize),
            slots: zeroed((config.size.0 / config.block.0) as usize),
            hand: 0,
            config: config.clone(),
        }
    }

    fn touched(&self, first: u64, last: u64) -> std::ops::RangeInclusive<u64> {
        debug_assert!(first <= last, "an access of no sectors");
        first / self.block_sectors..=last / self.block_sectors
    }

    /// Returns the time to read the sectors from flash; `None` if some sectors are not cached.
    pub(crate) fn read(&mut self, first: u64, last: u64) -> Option<Nanos> {
        let mut touched = self.touched(first, last);
        if !touched.clone().all(|block| self.slot(block).is_some()) {
            return None;
        }
        touched.try_for_each(|block| self.slot(block).map(|slot| self.slots[slot] |= USED))?;
        let bytes = (last + 1 - first) * SECTOR_BYTES;
        Some(self.config.read_time + self.config.bandwidth.time_for(bytes))
    }

    fn slot(&self, block: u64) -> Option<usize> {
        let entry = self.blocks[block as usize];
        (1..COUNT).contains(&entry).then(|| entry as usize - 1)
    }

    /// Counts a media read and caches each block that has reached the promotion threshold.
    pub(crate) fn seen(&mut self, first: u64, last: u64) {
        for block in self.touched(first, last) {
            let entry = self.blocks[block as usize].max(COUNT);
            if self.slot(block).is_some() {
                continue;
            }
            if entry + 1 - COUNT < self.config.promote_after {
                self.blocks[block as usize] = entry + 1;
            } else {
                self.admit(block);
            }
        }
    }

    fn admit(&mut self, block: u64) {
        debug_assert!(self.slot(block).is_none(), "a cached block is admitted");
        while self.slots[self.hand as usize] & USED != 0 {
            self.slots[self.hand as usize] &= !USED;
            self.step();
        }
        let slot = self.hand as usize;
        if let Some(evicted) = (self.slots[slot]).checked_sub(1) {
            debug_assert_eq!(self.slot(u64::from(evicted)), Some(slot), "see `check`");
            self.blocks[evicted as usize] = 0;
        }
        self.slots[slot] = block as u32 + 1;
        self.blocks[block as usize] = slot as u32 + 1;
        self.step();
    }

    fn step(&mut self) {
        self.hand = (self.hand + 1) % self.slots.len() as u32;
    }

    /// Invalidates the blocks that contain these sectors.
    pub(crate) fn written(&mut self, first: u64, last: u64) {
        for block in self.touched(first, last) {
            if let Some(slot) = self.slot(block) {
                self.slots[slot] = 0;
                self.blocks[block as usize] = 0;
            }
        }
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        let is_at = |(slot, entry): (usize, &u32)| {
            let block = (entry & !USED).checked_sub(1);
            block.is_none_or(|block| self.slot(u64::from(block)) == Some(slot))
        };
        let cached = self.blocks.iter().filter(|entry| (1..COUNT).contains(*entry)).count();
        let held = self.slots.iter().filter(|entry| **entry & !USED != 0).count();
        let is_consistent = cached == held && self.slots.iter().enumerate().all(is_at);
        ensure!(is_consistent, "the blocks and slots of the flash cache are inconsistent");
        Ok(())
    }

    pub(crate) fn save<W: Write>(&self, out: &mut StateWriter<W>) -> Result<(), CodecError> {
        out.u32s("flash_hand", &[self.hand])?;
        out.u32s("flash_slots", &self.slots)?;
        out.u32s("flash_blocks", &self.blocks)
    }

    pub(crate) fn restore<R: Read>(
        &mut self,
        input: &mut StateReader<R>,
    ) -> Result<(), CodecError> {
        self.hand = input.u32s("flash_hand", 1)?[0];
        self.slots = input.u32s("flash_slots", self.slots.len())?;
        self.blocks = input.u32s("flash_blocks", self.blocks.len())?;
        let is_possible = (self.hand as usize) < self.slots.len()
            && self.slots.iter().all(|&slot| (slot & !USED) as usize <= self.blocks.len())
            && self.check().is_ok();
        is_possible.then_some(()).ok_or_else(|| CodecError::Impossible("flash_slots".to_owned()))
    }
}
