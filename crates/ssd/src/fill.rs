//! Fills: program units in progress, from the first slot allocated to the end of the program.
//!
//! A fill may wait for flash reads whose data it contains (GC, merges of small writes), and
//! commands may wait for it (flush, writes without a cache). Units of one frontier are programmed
//! in order.

use std::collections::VecDeque;

use writecliff_base::ReclaimUnitId;
use writecliff_base::codec::CodecError;
use writecliff_ftl::ProgramUnit;
use writecliff_ftl::frontier::FrontierId;

use writecliff_base::words::{WordReader, WordWriter, damaged};

/// Number of a fill; numbers are reused.
pub type FillId = u16;
pub const NO_FILL: FillId = u16::MAX;
const NO_UNIT: ProgramUnit = ProgramUnit {
    reclaim_unit: ReclaimUnitId::NONE,
    unit: 0,
    data_slots: 0,
    moved_slots: 0,
    since: 0,
};

#[derive(Clone, Debug)]
pub struct Fill {
    pub frontier: FrontierId,
    /// Known when the unit is full.
    pub unit: Option<ProgramUnit>,
    pub reads_pending: u32,
    /// Commands that complete when the unit is on flash.
    pub waiting: Vec<u16>,
}

/// All fills, the current fill of each frontier, and fills that may not be programmed yet.
#[derive(Clone, Debug)]
pub struct Fills {
    all: Vec<Fill>,
    free: Vec<FillId>,
    current: Vec<FillId>,
    /// Full units by frontier that wait for reads or for an earlier unit that does.
    held: Vec<VecDeque<FillId>>,
    /// Full units not yet on flash, by reclaim unit.
    in_flight: Vec<u16>,
}

impl Fills {
    pub fn new(frontiers: usize, reclaim_units: usize) -> Self {
        Self {
            all: Vec::new(),
            free: Vec::new(),
            current: vec![NO_FILL; frontiers],
            held: vec![VecDeque::new(); frontiers],
            in_flight: vec![0; reclaim_units],
        }
    }

    pub fn frontiers(&self) -> usize {
        self.current.len()
    }

    /// Numbers of fills are below this.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    #[inline]
    pub fn get(&mut self, id: FillId) -> &mut Fill {
        &mut self.all[id as usize]
    }

    /// The current fill of `frontier`.
    #[inline]
    pub fn current(&mut self, frontier: FrontierId) -> FillId {
        let current = self.current[frontier.index()];
        if current != NO_FILL {
            return current;
        }
        let fresh = self.fresh(frontier);
        self.current[frontier.index()] = fresh;
        fresh
    }

    fn fresh(&mut self, frontier: FrontierId) -> FillId {
        if let Some(id) = self.free.pop() {
            let fill = &mut self.all[id as usize];
            fill.frontier = frontier;
            return id;
        }
        let id = FillId::try_from(self.all.len()).expect("fewer than 65,535 units in flight");
        assert!(id != NO_FILL);
        self.all.push(Fill { frontier, unit: None, reads_pending: 0, waiting: Vec::new() });
        id
    }

    /// Handles that `frontier`'s unit is full. Returns its fill if it may be programmed at once.
    #[inline]
    pub fn filled(&mut self, frontier: FrontierId, unit: ProgramUnit) -> Option<FillId> {
        let id = self.current(frontier);
        self.current[frontier.index()] = NO_FILL;
        self.in_flight[unit.reclaim_unit.index()] += 1;
        let fill = &mut self.all[id as usize];
        fill.unit = Some(unit);
        if fill.reads_pending == 0 && self.held[frontier.index()].is_empty() {
            return Some(id);
        }
        self.held[frontier.index()].push_back(id);
        None
    }

    /// Records the end of a read that a fill waits for. Call `release` afterwards until it returns
    /// `None`.
    pub fn read_done(&mut self, id: FillId) {
        self.all[id as usize].reads_pending -= 1;
    }

    /// The next waiting unit of `frontier` that may be programmed now.
    pub fn release(&mut self, frontier: FrontierId) -> Option<FillId> {
        let held = &mut self.held[frontier.index()];
        let &front = held.front()?;
        if self.all[front as usize].reads_pending > 0 {
            return None;
        }
        held.pop_front()
    }

    /// Whether a full unit holds nothing but relocated data.
    pub fn is_moved(&self, id: FillId) -> bool {
        let unit = self.all[id as usize].unit;
        unit.is_some_and(|unit| unit.moved_slots > 0 && unit.moved_slots == unit.data_slots)
    }

    /// Whether a full unit with data that may replace those of a reclaim unit freed after
    /// `freed_at` others is not on flash yet.
    pub fn awaited(&self, freed_at: u64) -> bool {
        self.all.iter().any(|fill| fill.unit.is_some_and(|unit| unit.since <= freed_at))
    }

    /// Removes a fill whose unit is on flash. Waiting commands must be completed before the next
    /// fill begins; see [`Self::take_waiting`].
    #[inline]
    pub fn programmed(&mut self, id: FillId) -> (ProgramUnit, FrontierId) {
        let fill = &mut self.all[id as usize];
        let unit = fill.unit.take().expect("a fill is programmed when its unit is full");
        let frontier = fill.frontier;
        self.in_flight[unit.reclaim_unit.index()] -= 1;
        self.free.push(id);
        (unit, frontier)
    }

    /// Takes the commands that wait for a fill.
    #[inline]
    pub fn take_waiting(&mut self, id: FillId) -> Vec<u16> {
        std::mem::take(&mut self.all[id as usize].waiting)
    }

    /// Whether unit `unit` of a reclaim unit is full but not yet on flash.
    #[inline]
    pub fn is_in_flight(&self, reclaim_unit: usize, unit: u32) -> bool {
        self.in_flight[reclaim_unit] > 0
            && self.all.iter().any(|f| {
                f.unit.is_some_and(|u| u.unit == unit && u.reclaim_unit.index() == reclaim_unit)
            })
    }

    /// Fills of full units that are not yet on flash, in ascending order.
    pub fn outstanding(&self) -> impl Iterator<Item = FillId> + '_ {
        (0..self.all.len() as FillId).filter(|&id| self.all[id as usize].unit.is_some())
    }

    /// No command may be waiting for a fill.
    pub(crate) fn save(&self, out: &mut WordWriter) {
        out.list(self.all.iter(), |out, fill| {
            debug_assert!(fill.waiting.is_empty());
            out.put(fill.frontier.0);
            out.put(fill.reads_pending);
            out.put(fill.unit.is_some());
            let unit = fill.unit.unwrap_or(NO_UNIT);
            out.put(unit.reclaim_unit.0);
            out.put(unit.unit);
            out.put(u64::from(unit.moved_slots) << 32 | u64::from(unit.data_slots));
        });
        out.list(self.free.iter(), |out, &id| out.put(id));
        self.current.iter().for_each(|&id| out.put(id));
        self.held.iter().for_each(|held| out.list(held.iter(), |out, &id| out.put(id)));
    }

    /// Saves which data full units may replace, for a drive with a volatile buffer.
    pub(crate) fn save_since(&self, out: &mut WordWriter) {
        self.all.iter().for_each(|fill| out.put(fill.unit.map_or(0, |unit| unit.since)));
    }

    pub(crate) fn restore_since(&mut self, input: &mut WordReader<'_>) -> Result<(), CodecError> {
        for fill in &mut self.all {
            let since = input.get()?;
            fill.unit.iter_mut().for_each(|unit| unit.since = since);
        }
        Ok(())
    }

    pub(crate) fn restore(&mut self, input: &mut WordReader<'_>) -> Result<(), CodecError> {
        self.all = input.list(|input| {
            let (frontier, reads_pending) = (FrontierId(input.narrow()?), input.narrow()?);
            let full = input.flag()?;
            let (reclaim_unit, unit) = (ReclaimUnitId(input.narrow()?), input.narrow()?);
            let slots = input.get()?;
            let (data_slots, moved_slots) = (slots as u32, (slots >> 32) as u32);
            let since = 0;
            let unit = ProgramUnit { reclaim_unit, unit, data_slots, moved_slots, since };
            Ok(Fill { frontier, unit: full.then_some(unit), reads_pending, waiting: Vec::new() })
        })?;
        self.free = input.list(WordReader::narrow)?;
        for id in &mut self.current {
            *id = input.narrow()?;
        }
        for held in &mut self.held {
            *held = input.list(WordReader::narrow)?.into();
        }
        self.in_flight.fill(0);
        for unit in self.all.iter().filter_map(|fill| fill.unit) {
            let count = self.in_flight.get_mut(unit.reclaim_unit.index());
            *count.ok_or_else(damaged)? += 1;
        }
        Ok(())
    }
}
