//! Table of reclaim units: dense arrays indexed by unit, so that a victim scan reads only the data
//! that it needs.
//!
//! Space is measured in allocation units. Allocation units are slots, or sectors if the controller
//! reduces data and a piece of data takes one or more sectors (`reduce/`).

use std::io::{Read, Write};
use std::ops::Range;

use writecliff_base::codec::{CodecError, StateReader, StateWriter};
use writecliff_base::{ReclaimUnitId, StreamId};

use crate::state::damaged;

/// State of a reclaim unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum UnitState {
    /// The unit has no valid data, but may have to be erased before use.
    Free = 0,
    /// A frontier writes to the unit.
    Open = 1,
    /// The unit is full and a candidate for GC.
    Closed = 2,
    /// The unit is the victim of garbage collection.
    Victim = 3,
    /// The unit is no longer used because it has bad blocks.
    Dropped = 4,
}

impl UnitState {
    pub(crate) fn from_u8(value: u8) -> Option<Self> {
        let all = [Self::Free, Self::Open, Self::Closed, Self::Victim, Self::Dropped];
        all.into_iter().find(|&s| s as u8 == value)
    }
}

/// Stream and writer of a reclaim unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Owner {
    /// Stream of the data in the unit.
    pub stream: StreamId,
    /// `true` if GC wrote the unit with relocated data, `false` if the host wrote it.
    pub relocated: bool,
}

/// Set of units that a policy may select from: the units of a reclaim group, or of one of its
/// streams.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Among {
    /// Reclaim units in the group.
    pub units: Range<u32>,
    pub(crate) stream: Option<StreamId>,
}

impl Among {
    #[inline]
    pub(crate) fn holds(&self, owner: Owner) -> bool {
        self.stream.is_none_or(|stream| owner.stream == stream)
    }
}

/// All reclaim units of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitTable {
    pub(crate) alloc_units_per_reclaim_unit: u32,
    /// State of each unit.
    pub state: Vec<UnitState>,
    /// Number of allocation units with valid data.
    pub valid: Vec<u32>,
    /// Stream and writer of each unit.
    pub owner: Vec<Owner>,
    /// Number of host slots written when the unit was closed, which determines the age of its data.
    pub closed_at: Vec<u64>,
    /// `true` if nothing has been programmed since the last erase.
    pub erased: Vec<bool>,
    /// Number of reclaim units that had been freed when this unit was last freed; data allocated
    /// earlier may replace data in this unit.
    pub freed_at: Vec<u64>,
}

impl UnitTable {
    pub(crate) fn new(units: u32, alloc_units_per_reclaim_unit: u32) -> Self {
        let n = units as usize;
        assert!(units > 0 && alloc_units_per_reclaim_unit > 0, "flash without space");
        Self {
            alloc_units_per_reclaim_unit,
            state: vec![UnitState::Free; n],
            valid: vec![0; n],
            owner: vec![Owner::default(); n],
            closed_at: vec![0; n],
            erased: vec![true; n],
            freed_at: vec![0; n],
        }
    }

    /// Returns the number of reclaim units.
    #[inline]
    pub fn len(&self) -> u32 {
        self.state.len() as u32
    }

    /// Returns `true` if `len` is 0.
    pub fn is_empty(&self) -> bool {
        self.state.is_empty()
    }

    #[inline]
    pub(crate) fn is_closed(&self, unit: ReclaimUnitId) -> bool {
        self.state[unit.index()] == UnitState::Closed
    }

    /// Returns `true` if a policy may select the unit from `among`.
    #[inline]
    pub fn is_candidate(&self, unit: ReclaimUnitId, among: &Among) -> bool {
        self.is_closed(unit) && among.holds(self.owner[unit.index()])
    }

    /// Returns the candidates in ascending order.
    pub fn candidates<'a>(&'a self, among: &'a Among) -> impl Iterator<Item = ReclaimUnitId> + 'a {
        debug_assert!(among.units.end <= self.len(), "units beyond the drive");
        among.units.clone().map(ReclaimUnitId).filter(move |&u| self.is_candidate(u, among))
    }

    /// Returns the units in a state, in ascending order.
    pub fn in_state(&self, state: UnitState) -> impl Iterator<Item = ReclaimUnitId> + '_ {
        (0..self.len()).map(ReclaimUnitId).filter(move |u| self.state[u.index()] == state)
    }

    /// Returns the closed units in ascending order.
    pub fn closed(&self) -> impl Iterator<Item = ReclaimUnitId> + '_ {
        self.in_state(UnitState::Closed)
    }

    /// Opens an erased or erasable unit for a frontier.
    pub(crate) fn open(&mut self, unit: ReclaimUnitId, owner: Owner) {
        let index = unit.index();
        debug_assert_eq!((self.state[index], self.valid[index]), (UnitState::Free, 0));
        self.erased[index] = false;
        self.state[index] = UnitState::Open;
        self.owner[index] = owner;
    }

    pub(crate) fn close(&mut self, unit: ReclaimUnitId, now: u64) {
        debug_assert_eq!(self.state[unit.index()], UnitState::Open);
        self.state[unit.index()] = UnitState::Closed;
        self.closed_at[unit.index()] = now;
    }

    /// Frees a victim without valid data; `number` counts the units in the order in which they
    /// become free.
    pub(crate) fn free(&mut self, unit: ReclaimUnitId, number: u64) {
        let index = unit.index();
        debug_assert_eq!((self.state[index], self.valid[index]), (UnitState::Victim, 0));
        self.state[index] = UnitState::Free;
        self.freed_at[index] = number;
    }

    /// Takes a free unit out of use.
    pub(crate) fn drop_unit(&mut self, unit: ReclaimUnitId) {
        let index = unit.index();
        assert_eq!((self.state[index], self.valid[index]), (UnitState::Free, 0));
        self.state[index] = UnitState::Dropped;
    }

    /// Marks allocation units of a unit as no longer valid. Returns the number of allocation units
    /// that are still valid.
    #[inline]
    pub(crate) fn invalidate(&mut self, unit: ReclaimUnitId, alloc_units: u32) -> u32 {
        let valid = &mut self.valid[unit.index()];
        debug_assert!(*valid >= alloc_units, "more data are invalidated than are valid");
        *valid -= alloc_units;
        *valid
    }

    /// Discards all data. Dropped units remain dropped.
    pub(crate) fn purge(&mut self) {
        let state = std::mem::take(&mut self.state);
        *self = Self::new(state.len() as u32, self.alloc_units_per_reclaim_unit);
        for (now, before) in self.state.iter_mut().zip(state) {
            if before == UnitState::Dropped {
                *now = before;
            }
        }
    }

    /// Saves all fields except `freed_at`.
    pub(crate) fn save<W: Write>(&self, out: &mut StateWriter<W>) -> Result<(), CodecError> {
        out.bytes("ftl.states", &self.state.iter().map(|&s| s as u8).collect::<Vec<u8>>())?;
        out.u32s("ftl.valid", &self.valid)?;
        let owner = |o: &Owner| u32::from(o.stream.0) << 1 | u32::from(o.relocated);
        out.u32s("ftl.owners", &self.owner.iter().map(owner).collect::<Vec<u32>>())?;
        out.u64s("ftl.closed_at", &self.closed_at)?;
        out.bytes("ftl.erased", &self.erased.iter().map(|&e| u8::from(e)).collect::<Vec<u8>>())
    }

    pub(crate) fn restore<R: Read>(
        &mut self,
        input: &mut StateReader<R>,
    ) -> Result<(), CodecError> {
        let units = self.state.len();
        let states = input.bytes("ftl.states")?;
        let states: Option<Vec<_>> = states.into_iter().map(UnitState::from_u8).collect();
        self.state = states.filter(|s| s.len() == units).ok_or_else(|| damaged("ftl.states"))?;
        self.valid = input.u32s("ftl.valid", units)?;
        let owner = |o: u32| Owner { stream: StreamId((o >> 1) as u16), relocated: o & 1 == 1 };
        self.owner = input.u32s("ftl.owners", units)?.into_iter().map(owner).collect();
        self.closed_at = input.u64s("ftl.closed_at", units)?;
        self.erased = input.bytes("ftl.erased")?.into_iter().map(|e| e == 1).collect();
        if self.erased.len() == units { Ok(()) } else { Err(damaged("ftl.erased")) }
    }
}
