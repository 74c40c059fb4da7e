//! Memory for I/O data: one mapping, which is pinned once, in pieces of powers of two.
//!
//! The allocator is a buddy allocator (Knowlton 1965). A piece is halved until it fits, and merged
//! with its buddy when both are free, which prevents fragmentation by mixed sizes.

use std::collections::BTreeSet;
use std::io;

use memmap2::{Advice, MmapMut};

use crate::LENGTH_MAX_BYTES;

/// Size of the data of all writes in flight, in bytes.
const ARENA_BYTES: usize = 128 << 20;
const LEAST_ORDER: u32 = 12;
const LARGEST_ORDER: u32 = ARENA_BYTES.trailing_zeros();

const _: () = assert!(LENGTH_MAX_BYTES as usize * 2 <= ARENA_BYTES);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    begin: usize,
    order: u32,
}

/// Memory for write data, and a region that all reads share (read data are not examined).
pub(crate) struct Arena {
    memory: MmapMut,
    /// Free pieces of each order, sorted by address.
    free: Vec<BTreeSet<usize>>,
}

impl Arena {
    pub(crate) const BYTES: usize = ARENA_BYTES + LENGTH_MAX_BYTES as usize;

    pub(crate) fn new() -> io::Result<Self> {
        let memory = MmapMut::map_anon(Self::BYTES)?;
        // Huge pages reduce page faults and pinned pages. A failure is harmless.
        let _ = memory.advise(Advice::HugePage);
        let orders = (LARGEST_ORDER + 1) as usize;
        let mut free = vec![BTreeSet::new(); orders];
        free[LARGEST_ORDER as usize].insert(0);
        Ok(Self { memory, free })
    }

    /// Returns the entire memory for registration with a ring.
    pub(crate) fn start(&self) -> *mut u8 {
        self.memory.as_ptr().cast_mut()
    }

    /// Returns the destination address of all reads.
    pub(crate) fn read_buffer(&self) -> *mut u8 {
        // SAFETY: the address is within the mapping, where this region follows the arena.
        unsafe { self.start().add(ARENA_BYTES) }
    }

    pub(crate) fn address(&self, piece: Piece) -> *mut u8 {
        // SAFETY: every piece lies within the mapping.
        unsafe { self.start().add(piece.begin) }
    }

    pub(crate) fn bytes(&mut self, piece: Piece, length: usize) -> &mut [u8] {
        assert!(length <= 1 << piece.order, "a piece holds what it was taken for");
        // SAFETY: the piece lies within the mapping, is allocated, and is not in flight: its owner
        // fills it before submitting it. A slice of the whole mapping would alias other pieces.
        unsafe { std::slice::from_raw_parts_mut(self.address(piece), length) }
    }

    /// Allocates a piece of at least `length` bytes; `None` if no such piece is free.
    pub(crate) fn take(&mut self, length: usize) -> Option<Piece> {
        let wanted = length.max(1).next_power_of_two().trailing_zeros().max(LEAST_ORDER);
        let order_free =
            (wanted..=LARGEST_ORDER).find(|&order| !self.free[order as usize].is_empty())?;
        let begin = self.free[order_free as usize].pop_first()?;
        for order in wanted..order_free {
            self.free[order as usize].insert(begin + (1 << order));
        }
        debug_assert!(begin.is_multiple_of(1 << wanted) && begin + (1 << wanted) <= ARENA_BYTES);
        Some(Piece { begin, order: wanted })
    }

    /// Leaks the mapping because abandoned I/Os may still write to it: the kernel copies buffered
    /// reads to this address, which a new mapping might then occupy.
    pub(crate) fn leak(self) {
        std::mem::forget(self);
    }

    pub(crate) fn give_back(&mut self, piece: Piece) {
        let Piece { mut begin, mut order } = piece;
        while order < LARGEST_ORDER && self.free[order as usize].remove(&(begin ^ (1 << order))) {
            begin &= !(1 << order);
            order += 1;
        }
        let is_taken = self.free[order as usize].insert(begin);
        debug_assert!(is_taken, "a piece is returned once");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns `true` if the page at `address` is mapped.
    fn is_mapped(address: *mut u8) -> bool {
        let mut resident = 0_u8;
        // SAFETY: the call only queries the page, and `resident` has room for the result.
        unsafe { libc::mincore(address.cast(), 1 << LEAST_ORDER, &raw mut resident) == 0 }
    }

    #[test]
    fn a_leaked_arena_stays_mapped() {
        let arena = Arena::new().unwrap();
        let start = arena.start();
        arena.leak();
        assert!(is_mapped(start));
        // SAFETY: this thread leaked the mapping, and nothing refers to it any longer.
        unsafe { libc::munmap(start.cast(), Arena::BYTES) };
    }

    #[test]
    fn pieces_do_not_overlap_and_come_back_whole() {
        let mut arena = Arena::new().unwrap();
        let mut taken = Vec::new();
        for n in 0..4000_usize {
            let length = 512 + (n * 7919) % 300_000;
            match arena.take(length) {
                Some(piece) => taken.push(piece),
                None => arena.give_back(taken.swap_remove(n % taken.len())),
            }
        }
        let mut spans: Vec<_> = taken.iter().map(|p| (p.begin, p.begin + (1 << p.order))).collect();
        spans.sort_unstable();
        assert!(spans.windows(2).all(|two| two[0].1 <= two[1].0), "pieces overlap");
        assert!(spans.last().unwrap().1 <= ARENA_BYTES);
        for piece in taken {
            arena.give_back(piece);
        }
        assert_eq!(arena.take(ARENA_BYTES), Some(Piece { begin: 0, order: LARGEST_ORDER }));
        assert_eq!(arena.take(1), None);
    }
}
