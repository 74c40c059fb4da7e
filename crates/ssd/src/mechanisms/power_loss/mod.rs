//! Power losses: mapping changes that are not on flash, and the state after a power cut.
//!
//! A drive that can lose power is an `Ssd<Volatile>`: it records which mapping changes are not yet
//! on flash, at most a buffer's worth. With power-loss protection, the capacitors provide the power
//! to program the buffer, and no record is needed.

mod cut;
pub mod recovery;

use std::collections::BTreeMap;
use std::ops::Range;

use writecliff_base::{Lpn, Nanos, Ppa, ReclaimUnitId};
use writecliff_ftl::Unwritten;

use crate::Recorder;

/// Data that are not yet programmed, by address. A reclaim unit that is opened while programs are
/// pending may reuse an address before the previous data are programmed.
#[derive(Clone, Debug)]
pub struct OnTheWay<T> {
    all: BTreeMap<(u32, u64), T>,
    /// Reclaim units with a waiting erase, and the number of the first data written after it.
    held: Vec<(Range<u32>, u64)>,
}

impl<T> Default for OnTheWay<T> {
    fn default() -> Self {
        Self { all: BTreeMap::new(), held: Vec::new() }
    }
}

impl<T> OnTheWay<T> {
    /// Adds data with a number, which must be higher than all previous numbers.
    pub fn add(&mut self, at: Ppa, number: u64, data: T) {
        debug_assert!(!at.is_none(), "data are written without an address");
        self.all.insert((at.0, number), data);
    }

    /// Records that the erase of a unit waits; data with numbers from `next` on follow it.
    pub fn held(&mut self, ppas: Range<u32>, next: u64) {
        debug_assert!(ppas.start < ppas.end, "a held erase covers no addresses");
        self.held.push((ppas, next));
    }

    /// Records that the held erase of the addresses `ppas` has been issued.
    pub fn released(&mut self, ppas: &Range<u32>) {
        if let Some(first) = self.held.iter().position(|(held, _)| held == ppas) {
            self.held.remove(first);
        }
    }

    /// Removes and returns the data that are programmed with the program unit of this address.
    pub fn take(&mut self, ppa: u32) -> Option<T> {
        let held = self.held.iter().find(|(held, _)| held.contains(&ppa));
        let end = held.map_or(u64::MAX, |&(_, next)| next);
        let (&key, _) = self.all.range((ppa, 0)..(ppa, end)).next()?;
        self.all.remove(&key)
    }

    /// Returns the newest data of this address.
    pub fn newest(&self, at: Ppa) -> Option<&T> {
        self.all.range((at.0, 0)..=(at.0, u64::MAX)).next_back().map(|(_, data)| data)
    }

    /// Removes and returns all data, with their numbers.
    pub fn take_all(&mut self) -> impl Iterator<Item = (u32, u64, T)> + use<T> {
        let taken = std::mem::take(self);
        taken.all.into_iter().map(|((ppa, number), data)| (ppa, number, data))
    }
}

/// Maximum number of deallocations that the journal holds back before it is written.
const TRIMS_MAX: usize = 1 << 16;
/// A deallocation of more slots is journaled immediately.
const TRIM_SLOTS_MAX: u32 = 1 << 13;

/// Range of slots whose host changes are on flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Durable {
    /// First slot.
    pub first: Lpn,
    /// Number of consecutive slots.
    pub slots: u32,
    /// Changes with lower numbers are on flash; see [`Volatile::numbered`].
    pub below: u64,
}

/// A change of the mapping. On flash, it makes host writes with numbers below `below` durable.
#[derive(Clone, Copy, Debug)]
struct Recorded {
    of: Unwritten,
    below: u64,
}

/// Recorder of the changes that are not on flash.
#[derive(Clone, Debug, Default)]
pub struct Volatile {
    placed: OnTheWay<Recorded>,
    /// Deallocations since the journal was last written.
    trimmed: Vec<(u64, Recorded)>,
    /// Number of the last change.
    last: u64,
    /// Upper bound of the numbers of the host's changes up to the command being placed.
    below: u64,
    /// Upper bound for the next command of each tag.
    numbers: Vec<u64>,
    /// Changes that have become durable since the last call to [`Self::take_durable`].
    durable: Vec<Durable>,
    /// Fast-forwarded changes that the next power cut undoes.
    untimed: Vec<Unwritten>,
}

impl Volatile {
    /// Sets the upper bound of the numbers of the host's changes up to the next command with this
    /// tag. From then on, [`Self::take_durable`] must be called.
    pub fn numbered(&mut self, tag: u32, below: u64) {
        let index = tag as usize;
        if index >= self.numbers.len() {
            self.numbers.resize(index + 1, 0);
        }
        self.numbers[index] = below;
    }

    /// Returns the numbered changes that have become durable since the last call.
    pub fn take_durable(&mut self) -> std::vec::Drain<'_, Durable> {
        self.durable.drain(..)
    }

    /// Makes the next power cut undo changes that were fast-forwarded, newest first. Precondition:
    /// the previous copies have not been erased.
    pub fn lose_untimed(&mut self, changes: Vec<Unwritten>) {
        self.untimed = changes;
    }

    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn add(&mut self, change: Unwritten, below: u64) {
        let number = self.number();
        self.placed.add(change.at, number, Recorded { of: change, below });
    }

    fn note_durable(&mut self, first: Lpn, slots: u32, below: u64) {
        if below == 0 {
            return;
        }
        debug_assert!(slots > 0, "nothing becomes durable");
        if let Some(before) = self.durable.last_mut()
            && before.below == below
            && before.first.0 + before.slots == first.0
        {
            before.slots += slots;
            return;
        }
        self.durable.push(Durable { first, slots, below });
    }
}

impl Recorder for Volatile {
    const KEEPS_UNWRITTEN: bool = true;
    const LIMITS_DIES: bool = true;

    fn writing(&mut self, tag: u32) {
        self.below = self.numbers.get(tag as usize).copied().unwrap_or(0);
    }

    fn placed(&mut self, lpn: Lpn, at: Ppa, before: Ppa) {
        self.add(Unwritten { lpn, at, before, is_relocation: false }, self.below);
    }

    fn moved(&mut self, lpn: Lpn, at: Ppa, before: Ppa) {
        // Data that were not yet programmed reach the flash with this copy.
        let below = self.placed.newest(before).map_or(0, |data| data.below);
        self.add(Unwritten { lpn, at, before, is_relocation: true }, below);
    }

    fn trimmed(&mut self, lpn: Lpn, before: Ppa) {
        let number = self.number();
        let change = Unwritten { lpn, at: Ppa::NONE, before, is_relocation: false };
        self.trimmed.push((number, Recorded { of: change, below: self.below }));
        if self.trimmed.len() == TRIMS_MAX {
            self.journaled();
        }
    }

    fn journals(&mut self, first: Lpn, slots: u32) -> bool {
        if slots <= TRIM_SLOTS_MAX {
            return false;
        }
        self.journaled();
        self.note_durable(first, slots, self.below);
        true
    }

    fn journaled(&mut self) {
        let trimmed = std::mem::take(&mut self.trimmed);
        for (_, trim) in trimmed {
            self.note_durable(trim.of.lpn, 1, trim.below);
        }
    }

    fn held(&mut self, ppas: Range<u32>) {
        self.placed.held(ppas, self.last + 1);
    }

    fn released(&mut self, ppas: Range<u32>) {
        self.placed.released(&ppas);
    }

    fn unit_programmed(&mut self, ppas: Range<u32>) {
        for ppa in ppas {
            if let Some(data) = self.placed.take(ppa) {
                self.note_durable(data.of.lpn, 1, data.below);
            }
        }
    }

    fn purged(&mut self) {
        let numbers = std::mem::take(&mut self.numbers);
        *self = Self { numbers, last: self.last, ..Self::default() };
    }

    fn take_unwritten(&mut self) -> Option<Vec<Unwritten>> {
        let mut all = std::mem::take(&mut self.trimmed);
        all.extend(self.placed.take_all().map(|(_, number, data)| (number, data)));
        all.sort_unstable_by_key(|&(number, _)| std::cmp::Reverse(number));
        let mut unwritten = std::mem::take(&mut self.untimed);
        unwritten.extend(all.into_iter().map(|(_, data)| data.of));
        Some(unwritten)
    }

    fn settled(&mut self) {}
}

/// Effects of a power cut, and the time until the drive is ready again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PowerCut {
    /// Slots written by the host that were lost with the buffer.
    pub lost_slots: u64,
    /// Relocated slots in the buffer; the previous copies still exist.
    pub undone_relocations: u64,
    /// Deallocations that were undone.
    pub undone_trims: u64,
    /// Slots programmed with capacitor power.
    pub saved_slots: u64,
    /// Duration for which the capacitors powered the drive.
    pub hold_up: Nanos,
    /// Program units whose programming was interrupted, and which are unreadable.
    pub torn: Vec<(ReclaimUnitId, u32)>,
    /// Erases of a block on all planes of a die that did not finish.
    pub interrupted_erases: u32,
    /// Erases of a reclaim unit's blocks on a die that finished with capacitor power, or that the
    /// drive repeats at power-up because it continues to write there.
    pub repeated_erases: Vec<(ReclaimUnitId, u32)>,
    /// Time from power-up until the drive accepts commands.
    pub rebuild: Rebuild,
}

/// Time that a drive takes to rebuild its mapping, by phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rebuild {
    /// Firmware start.
    pub start: Nanos,
    /// Reads of the mapping checkpoint.
    pub checkpoint: Nanos,
    /// Reads of the journal since the checkpoint.
    pub journal: Nanos,
    /// Reads of the page numbers stored with data that are not in a journal.
    pub scan: Nanos,
    /// Repetition of interrupted erases.
    pub erase: Nanos,
}

impl Rebuild {
    /// Returns the total over all phases.
    pub fn total(&self) -> Nanos {
        self.start + self.checkpoint + self.journal + self.scan + self.erase
    }
}
