//! Random addresses without repetition: a pass accesses each block of the range exactly once.
//!
//! Each draw is uniform over all blocks. If the pass has already accessed the block, the next block
//! that it has not accessed is used, wrapping at the end of the range. An I/O is shortened so that
//! it ends before the next accessed block or the end of the range. fio does this with a random map
//! (filesetup.c, `io_u.c` `mark_random_map`), which favours short I/Os as a pass fills the range.
//!
//! Accessed blocks are represented by bits. Each higher level has one bit for every full word of
//! the level below, so the next free block is found in a few steps.

use writecliff_base::Prng;

const BITS: u64 = u64::BITS as u64;

/// Blocks that a pass has accessed.
#[derive(Clone, Debug)]
pub(crate) struct BlockMap {
    /// Bits of the blocks, followed by bits of the full words of each previous level.
    levels: Vec<Vec<u64>>,
    blocks: u64,
    block_bytes: u64,
    free: u64,
}

impl BlockMap {
    pub(crate) fn new(blocks: u64, block_bytes: u64) -> Self {
        assert!(blocks > 0 && block_bytes > 0, "{blocks} blocks of {block_bytes} B");
        let mut map = Self { levels: Vec::new(), blocks, block_bytes, free: 0 };
        map.clear();
        map
    }

    /// Returns the approximate memory use of a map with this many blocks, in bytes.
    pub(crate) fn memory_bytes(blocks: u64) -> u64 {
        blocks / 8 + blocks / 500
    }

    /// Returns the offset and length of the next I/O, which has at most `length` bytes.
    pub(crate) fn draw(&mut self, random: &mut Prng, length: u32) -> (u64, u32) {
        if self.free == 0 {
            self.clear();
        }
        let drawn = random.below(self.blocks);
        let first = self.free_from(drawn).or_else(|| self.free_from(0)).unwrap_or(0);
        let wanted = u64::from(length).div_ceil(self.block_bytes);
        let mut count = 0;
        while count < wanted && first + count < self.blocks && !self.is_set(0, first + count) {
            self.set(first + count);
            count += 1;
        }
        debug_assert!((1..=self.free).contains(&count), "{count} of {} free blocks", self.free);
        self.free -= count;
        let length = u64::from(length).min(count * self.block_bytes);
        (first * self.block_bytes, length as u32)
    }

    fn clear(&mut self) {
        self.levels.clear();
        let mut bits = self.blocks;
        while bits > 0 {
            let words = bits.div_ceil(BITS);
            let mut level = vec![0; words as usize];
            // Bits beyond the last block are always marked as used.
            if let (Some(last), rest @ 1..) = (level.last_mut(), bits % BITS) {
                *last = u64::MAX << rest;
            }
            self.levels.push(level);
            bits = if words > 1 { words } else { 0 };
        }
        self.free = self.blocks;
    }

    fn is_set(&self, level: usize, bit: u64) -> bool {
        self.levels[level][(bit / BITS) as usize] >> (bit % BITS) & 1 == 1
    }

    fn set(&mut self, mut bit: u64) {
        for level in &mut self.levels {
            let word = &mut level[(bit / BITS) as usize];
            *word |= 1 << (bit % BITS);
            if *word != u64::MAX {
                return;
            }
            bit /= BITS;
        }
    }

    /// Returns the first free block at or after `block`.
    fn free_from(&self, block: u64) -> Option<u64> {
        let (mut level, mut bit) = (0, block);
        // Move up until a word has a free bit at or after the current position.
        loop {
            let word = self.levels.get(level)?.get((bit / BITS) as usize).copied()?;
            let free = !word & (u64::MAX << (bit % BITS));
            if free != 0 {
                bit = bit / BITS * BITS + u64::from(free.trailing_zeros());
                break;
            }
            (level, bit) = (level + 1, bit / BITS + 1);
        }
        // Move down to the first free bit in each word.
        while level > 0 {
            level -= 1;
            bit = bit * BITS + u64::from((!self.levels[level][bit as usize]).trailing_zeros());
        }
        Some(bit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pass_covers_each_block_once_and_cuts_long_ios() {
        for blocks in [1, 63, 64, 65, 1000, 5000] {
            let mut map = BlockMap::new(blocks, 4096);
            let mut random = Prng::derive(7, blocks);
            for _ in 0..3 {
                let mut seen = vec![false; blocks as usize];
                let mut left = blocks;
                while left > 0 {
                    let wanted = [4096, 8192, 65_536][random.below(3) as usize];
                    let (offset, length) = map.draw(&mut random, wanted);
                    assert!(length > 0 && length <= wanted);
                    for block in offset / 4096..(offset + u64::from(length)) / 4096 {
                        assert!(!std::mem::replace(&mut seen[block as usize], true));
                        left -= 1;
                    }
                }
            }
        }
    }

    #[test]
    fn long_ios_are_cut_as_often_as_by_fio() {
        // With bssplit=4k/50:64k/50 over 100 MiB, fio 3.33 issues 5,131 reads or 4,801 writes.
        let mut map = BlockMap::new(25_600, 4096);
        let mut random = Prng::derive(1, 1);
        let (mut ios, mut left) = (0, 100 << 20);
        while left > 0 {
            let wanted = if random.below(2) == 0 { 4096 } else { 65_536 };
            left -= u64::from(map.draw(&mut random, wanted).1);
            ios += 1;
        }
        assert!((4700..5250).contains(&ios), "{ios}");
    }
}
