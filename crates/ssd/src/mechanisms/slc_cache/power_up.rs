//! Log after a power loss: it drops lost entries, and restores entries whose folded data did not
//! reach the main flash. Their blocks are not erased before the folded data are programmed.

use std::ops::Range;

use writecliff_base::{Lpn, Ppa, StreamId, ensure};
use writecliff_ftl::Ftl;

use super::{EMPTY, Entry, SlcCache};

impl SlcCache {
    /// Returns the addresses of the cache flash.
    pub fn addresses(&self) -> Range<u32> {
        self.base..self.base + self.ring() as u32
    }

    /// Returns the number of slots in a unit, and the number of units in a block over all dies.
    pub fn shape(&self) -> (u32, u32) {
        (self.unit_slots as u32, (self.block_slots / self.unit_slots) as u32)
    }

    /// Returns the addresses that can be programmed without an erase, in order.
    pub fn erased(&self) -> impl Iterator<Item = Ppa> + '_ {
        (self.head()..self.erased_to).map(|position| self.address(position))
    }

    /// Drops the lost data of a page from the log and returns their stream.
    pub(crate) fn lose(&mut self, lpn: Lpn) -> Option<StreamId> {
        let position = self.forget(lpn)?;
        let entry = &mut self.entries[(position - self.tail) as usize];
        entry.lpn = Lpn::NONE;
        Some(entry.stream)
    }

    /// Maps a page to its log address again; `stream` is that of the replacing data, if known.
    pub(crate) fn revive(&mut self, lpn: Lpn, at: Ppa, stream: Option<StreamId>) {
        debug_assert!(self.addresses().contains(&at.0), "no address of the log");
        let ring = self.ring();
        let oldest = self.erased_to - ring;
        let into = (u64::from(at.0 - self.base) + ring - oldest % ring) % ring;
        let position = oldest + into;
        while self.tail > position {
            self.entries.push_front(EMPTY);
            self.tail -= 1;
        }
        let entry = &mut self.entries[(position - self.tail) as usize];
        *entry = Entry { lpn, stream: stream.unwrap_or(entry.stream) };
        self.newest.insert(lpn.0, position);
        self.cached[lpn.index() / 64] |= 1 << (lpn.0 % 64);
    }

    /// Continues after the last unit whose program was started; `waiting` are the full units that
    /// were not started, twice if data from before a waiting erase are also waiting.
    pub(crate) fn continue_behind(&mut self, mut waiting: Vec<u32>) {
        let filled = self.filled();
        let start = self.head() - u64::from(filled);
        let from = (start.max(self.tail) - self.tail) as usize;
        // In fast-forward, data count as on flash before their unit is full.
        let is_filled = self.entries.iter().skip(from).any(|entry| entry.lpn != Lpn::NONE);
        let mut head = if is_filled { start + self.unit_slots } else { start };
        while head >= self.unit_slots {
            let last = self.unit_at(head - self.unit_slots);
            let Some(index) = waiting.iter().position(|&unit| unit == last) else { break };
            waiting.swap_remove(index);
            head -= self.unit_slots;
        }
        self.tail = self.tail.min(head);
        assert!(head <= self.tail + self.ring(), "the log is longer than its flash");
        self.entries.resize((head - self.tail) as usize, EMPTY);
        (self.fetched, self.direct) = (0, 0);
    }

    /// Checks that the log is consistent, both internally and with the FTL.
    ///
    /// # Errors
    /// Returns the first inconsistency.
    pub fn check_invariants(&self, ftl: &Ftl) -> Result<(), String> {
        let live = self.entries.iter().filter(|entry| entry.lpn != Lpn::NONE).count();
        let mapped = self.newest.len();
        ensure!(live == mapped, "{live} entries are valid, but {mapped} are mapped");
        for (&lpn, &position) in &self.newest {
            let at = (self.tail..self.head()).contains(&position);
            let is_there = at && self.entries[(position - self.tail) as usize].lpn.0 == lpn;
            ensure!(is_there, "page {lpn} is not at position {position} of the log");
            let is_logged = ftl.lookup(Lpn(lpn)).is_none();
            ensure!(is_logged, "page {lpn} is in the log and in the main flash");
        }
        let (tail, head, erased_to) = (self.tail, self.head(), self.erased_to);
        let is_erased = head <= erased_to && erased_to <= tail + self.ring();
        ensure!(
            is_erased,
            "the log is at {tail} to {head}, but blocks are erased up to {erased_to}"
        );
        Ok(())
    }
}
