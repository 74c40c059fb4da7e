//! Limit study: the minimum work of an untimed page-mapped FTL, as a lower bound for the complete
//! FTL.
//!
//! The limit study has one stream, greedy victim selection, and uniform overwrites that are
//! announced in advance. The limit study has no further streams, wear levelling, TRIM, counters,
//! pacing or sinks.

use writecliff_base::{Prng, memory};

use crate::map::prefetch;

const NONE: u32 = u32::MAX;
/// Number of free units below which data are relocated.
const RESERVE: usize = 8;
/// Number of overwrites that are announced before they are executed.
const AHEAD: usize = 32;
/// Prefetch distance in slots for the map entries of a victim.
const VICTIM_AHEAD: usize = 32;

/// Numbers of slots written in the limit study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitWrites {
    /// Slots that the host has overwritten.
    pub host_slots: u64,
    /// Slots relocated to free reclaim units.
    pub moved_slots: u64,
}

/// Address of the next slot.
#[derive(Clone, Copy)]
struct Frontier {
    unit: u32,
    next: u32,
    end: u32,
}

struct Limit {
    forward: Vec<u32>,
    reverse: Vec<u32>,
    /// Valid slots by unit; [`NONE`] for open and free units, which are not candidates.
    candidates: Vec<u32>,
    open: [Frontier; 2],
    open_valid: [u32; 2],
    free: Vec<u32>,
    slots_per_reclaim_unit: u32,
    moved: u64,
}

const HOST: usize = 0;
const MOVED: usize = 1;

/// Fills `user_slots` in order and then overwrites random slots; the number of overwrites is
/// `overwrites` times `user_slots`. Returns `None` if the reclaim units leave no spare space beyond
/// the reserve.
pub fn run(
    user_slots: u32,
    units: u32,
    slots_per_reclaim_unit: u32,
    overwrites: f64,
    seed: u64,
) -> Option<LimitWrites> {
    let slots_of = |units: u64| units * u64::from(slots_per_reclaim_unit);
    if slots_of(u64::from(units)) <= u64::from(user_slots) + slots_of(RESERVE as u64 + 2) {
        return None;
    }
    let mut limit = Limit::new(user_slots, units, slots_per_reclaim_unit);
    for slot in 0..user_slots {
        limit.write(slot);
    }
    let mut random = Prng::new(seed);
    let mut draw = || random.below(u64::from(user_slots)) as u32;
    let mut announced: [u32; AHEAD] = std::array::from_fn(|_| draw());
    let count = (f64::from(user_slots) * overwrites) as usize;
    for n in 0..count {
        let next = std::mem::replace(&mut announced[n % AHEAD], draw());
        prefetch(&limit.forward, announced[n % AHEAD] as usize);
        limit.write(next);
    }
    Some(LimitWrites { host_slots: u64::from(user_slots) + count as u64, moved_slots: limit.moved })
}

impl Limit {
    fn new(user_slots: u32, units: u32, slots_per_reclaim_unit: u32) -> Self {
        assert!(units as usize > RESERVE + 2, "see run");
        let mut free: Vec<u32> = (0..units).rev().collect();
        let mut open = || {
            let unit = free.pop().expect("more units than are open");
            Frontier {
                unit,
                next: unit * slots_per_reclaim_unit,
                end: (unit + 1) * slots_per_reclaim_unit,
            }
        };
        Self {
            open: [open(), open()],
            open_valid: [0; 2],
            forward: memory::filled(NONE, user_slots as usize),
            reverse: memory::zeroed(units as usize * slots_per_reclaim_unit as usize),
            candidates: vec![NONE; units as usize],
            free,
            slots_per_reclaim_unit,
            moved: 0,
        }
    }

    fn write(&mut self, slot: u32) {
        let old = self.forward[slot as usize];
        if old != NONE {
            self.invalidate(old / self.slots_per_reclaim_unit);
        }
        if self.place::<HOST>(slot) {
            while self.free.len() < RESERVE {
                self.collect();
            }
        }
    }

    fn invalidate(&mut self, unit: u32) {
        debug_assert!(
            self.open.iter().any(|open| open.unit == unit)
                || self.candidates[unit as usize] != NONE,
            "a free unit held the slot"
        );
        if unit == self.open[HOST].unit {
            self.open_valid[HOST] -= 1;
        } else if unit == self.open[MOVED].unit {
            self.open_valid[MOVED] -= 1;
        } else {
            self.candidates[unit as usize] -= 1;
        }
    }

    /// Returns `true` if a unit was opened.
    fn place<const TO: usize>(&mut self, slot: u32) -> bool {
        let to = &mut self.open[TO];
        debug_assert!(to.next < to.end, "a full unit stays open");
        self.reverse[to.next as usize] = slot;
        self.forward[slot as usize] = to.next;
        to.next += 1;
        self.open_valid[TO] += 1;
        let is_full = to.next == to.end;
        if is_full {
            self.candidates[to.unit as usize] = std::mem::take(&mut self.open_valid[TO]);
            let unit = self.free.pop().expect("a reserve of free units");
            let next = unit * self.slots_per_reclaim_unit;
            *to = Frontier { unit, next, end: next + self.slots_per_reclaim_unit };
        }
        is_full
    }

    fn collect(&mut self) {
        let (victim, _) =
            self.candidates.iter().enumerate().min_by_key(|(_, valid)| **valid).expect("units");
        let (valid, moved) = (self.candidates[victim], self.moved);
        debug_assert!(valid < self.slots_per_reclaim_unit, "collection frees no space");
        let first = victim * self.slots_per_reclaim_unit as usize;
        let end = first + self.slots_per_reclaim_unit as usize;
        self.candidates[victim] = NONE;
        for place in first..end {
            if let Some(soon) = self.reverse.get(place + VICTIM_AHEAD) {
                prefetch(&self.forward, *soon as usize);
            }
            let slot = self.reverse[place];
            if self.forward[slot as usize] == place as u32 {
                self.place::<MOVED>(slot);
                self.moved += 1;
            }
        }
        debug_assert_eq!(self.moved - moved, u64::from(valid), "the count of valid slots is wrong");
        self.free.push(victim as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that the steady state matches greedy collection. Subtracting a shorter run from a
    /// longer run excludes the fill phase.
    #[test]
    fn it_amplifies_writes_as_greedy_collection_does() {
        let (user, units, slots) = (200_000, 1_000, 240);
        let [shorter, longer] = [6.0, 12.0].map(|times| run(user, units, slots, times, 1).unwrap());
        let host = (longer.host_slots - shorter.host_slots) as f64;
        let waf = 1.0 + (longer.moved_slots - shorter.moved_slots) as f64 / host;
        let room = f64::from(units - RESERVE as u32 - 1) * f64::from(slots);
        let theory = crate::theory::greedy(f64::from(user) / room, slots);
        assert!((waf / theory - 1.0).abs() < 0.03, "{waf} v {theory}");
    }

    #[test]
    fn a_drive_without_spare_space_has_no_limit() {
        assert_eq!(run(99_000, 100, 1_000, 1.0, 1), None);
        assert_eq!(run(90_000, 100, 1_000, 1.0, 1), None);
        assert!(run(89_000, 100, 1_000, 1.0, 1).is_some());
    }
}
