//! Losses of power: what of the mapping is not on flash, and what a cut leaves behind.
//!
//! A drive that can lose power is an `Ssd<Volatile>`: it records which changes of the mapping the
//! flash does not hold yet, at most a buffer's worth. With power-loss protection the capacitors
//! program the buffer, and nothing need be recorded.

use std::collections::BTreeMap;
use std::ops::Range;

use writecliff_base::{Lpn, Nanos, Ppa, ReclaimUnitId};
use writecliff_ftl::power_up::Unwritten;

use crate::attribution::Recorder;

/// What is on its way to flash, by address. An address can be used again, by the next data of a
/// reclaim unit that is opened while programs are due, before the data from before are programmed.
#[derive(Clone, Debug)]
pub struct OnTheWay<T> {
    all: BTreeMap<(u32, u64), T>,
    /// Reclaim units whose erase waits, and the number of the first data for after it.
    held: Vec<(Range<u32>, u64)>,
}

impl<T> Default for OnTheWay<T> {
    fn default() -> Self {
        Self { all: BTreeMap::new(), held: Vec::new() }
    }
}

impl<T> OnTheWay<T> {
    /// Adds data; numbers ascend.
    pub fn add(&mut self, at: Ppa, number: u64, data: T) {
        self.all.insert((at.0, number), data);
    }

    /// The erase of a reclaim unit waits; data for after it have numbers from `next` on.
    pub fn held(&mut self, ppas: Range<u32>, next: u64) {
        self.held.push((ppas, next));
    }

    pub fn released(&mut self, ppas: &Range<u32>) {
        if let Some(first) = self.held.iter().position(|(held, _)| held == ppas) {
            self.held.remove(first);
        }
    }

    /// Takes what is programmed when the program unit with this address is.
    pub fn take(&mut self, ppa: u32) -> Option<T> {
        let held = self.held.iter().find(|(held, _)| held.contains(&ppa));
        let end = held.map_or(u64::MAX, |&(_, next)| next);
        let (&key, _) = self.all.range((ppa, 0)..(ppa, end)).next()?;
        self.all.remove(&key)
    }

    /// Takes all, with its numbers.
    pub fn take_all(&mut self) -> impl Iterator<Item = (u32, u64, T)> + use<T> {
        let taken = std::mem::take(self);
        taken.all.into_iter().map(|((ppa, number), data)| (ppa, number, data))
    }
}

/// Records what is not on flash.
#[derive(Clone, Debug, Default)]
pub struct Volatile {
    placed: OnTheWay<Unwritten>,
    /// Deallocations since the journal was written.
    trimmed: Vec<(u64, Unwritten)>,
    /// Number of the last change.
    last: u64,
}

impl Volatile {
    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

impl Recorder for Volatile {
    const KEEPS_UNWRITTEN: bool = true;

    fn placed(&mut self, lpn: Lpn, at: Ppa, before: Ppa) {
        let number = self.number();
        self.placed.add(at, number, Unwritten { lpn, at, before });
    }

    fn trimmed(&mut self, lpn: Lpn, before: Ppa) {
        let number = self.number();
        self.trimmed.push((number, Unwritten { lpn, at: Ppa::NONE, before }));
    }

    fn journaled(&mut self) {
        self.trimmed.clear();
    }

    fn held(&mut self, ppas: Range<u32>) {
        self.placed.held(ppas, self.last + 1);
    }

    fn released(&mut self, ppas: Range<u32>) {
        self.placed.released(&ppas);
    }

    fn landed(&mut self, ppas: Range<u32>) {
        for ppa in ppas {
            self.placed.take(ppa);
        }
    }

    fn take_unwritten(&mut self) -> Option<Vec<Unwritten>> {
        let mut all = std::mem::take(&mut self.trimmed);
        all.extend(self.placed.take_all().map(|(_, number, change)| (number, change)));
        all.sort_unstable_by_key(|&(number, _)| std::cmp::Reverse(number));
        Some(all.into_iter().map(|(_, change)| change).collect())
    }

    fn settled(&mut self) {}
}

/// What a cut did to the drive, and how long it takes until the drive is ready again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PowerCut {
    /// Slots in the buffer that were lost.
    pub lost_slots: u64,
    /// Deallocations that were undone.
    pub undone_trims: u64,
    /// Slots that the capacitors let the drive program, and for how long they had to last.
    pub saved_slots: u64,
    pub hold_up: Nanos,
    /// Program units that were being programmed, and cannot be read.
    pub torn: Vec<(ReclaimUnitId, u32)>,
    /// Erases of a block on all planes of a die that did not end.
    pub interrupted_erases: u32,
    /// Erases of a reclaim unit's blocks on a die that the capacitors let the drive end, or that it
    /// repeats at power-up because it goes on writing there.
    pub repeated_erases: Vec<(ReclaimUnitId, u32)>,
    /// From power-up until the drive takes commands.
    pub rebuild: Rebuild,
}

/// The time that a drive takes to find its mapping, by part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rebuild {
    /// The firmware starts.
    pub start: Nanos,
    /// The checkpoint of the mapping is read.
    pub checkpoint: Nanos,
    /// The journal since the checkpoint is read.
    pub journal: Nanos,
    /// Page numbers beside the data are read, of what no journal tells.
    pub scan: Nanos,
    /// Interrupted erases are repeated.
    pub erase: Nanos,
}

impl Rebuild {
    pub fn total(&self) -> Nanos {
        self.start + self.checkpoint + self.journal + self.scan + self.erase
    }
}
