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

/// Closed units that a policy may choose from: those of a reclaim group, or of a stream of it.
#[derive(Clone, Debug)]
pub(crate) struct Candidates<'a> {
    pub table: &'a UnitTable,
    /// Reclaim units in the group.
    pub units: Range<u32>,
    pub stream: Option<StreamId>,
}

impl Candidates<'_> {
    #[inline]
    pub(crate) fn holds(&self, owner: Owner) -> bool {
        self.stream.is_none_or(|stream| owner.stream == stream)
    }

    pub(crate) fn contains(&self, unit: ReclaimUnitId) -> bool {
        self.units.contains(&unit.0)
            && self.table.is_closed(unit)
            && self.holds(self.table.owner[unit.index()])
    }

    /// Returns the candidates in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = ReclaimUnitId> {
        debug_assert!(self.units.end <= self.table.len(), "units beyond the drive");
        self.units.clone().map(ReclaimUnitId).filter(|&unit| self.contains(unit))
    }

    /// Orders units by the time when they were closed, oldest first.
    pub(crate) fn age_order(&self, unit: ReclaimUnitId) -> (u64, u32) {
        (self.table.closed_at[unit.index()], unit.0)
    }
}

/// All reclaim units of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitTable {
    /// Allocation units of a reclaim unit.
    pub(crate) unit_size: u32,
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
    /// Number of units freed when this unit was freed: earlier data may replace data in it.
    pub freed_at: Vec<u64>,
}

impl UnitTable {
    pub(crate) fn new(units: u32, unit_size: u32) -> Self {
        let n = units as usize;
        assert!(units > 0 && unit_size > 0, "flash without space");
        Self {
            unit_size,
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

    /// Returns the units in a state, in ascending order.
    pub fn in_state(&self, state: UnitState) -> impl Iterator<Item = ReclaimUnitId> + '_ {
        (0..self.len()).map(ReclaimUnitId).filter(move |u| self.state[u.index()] == state)
    }

    /// Returns the closed units in ascending order.
    pub fn closed(&self) -> impl Iterator<Item = ReclaimUnitId> + '_ {
        self.in_state(UnitState::Closed)
    }

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

    /// Frees a victim without valid data; `number` counts the units in the order of freeing.
    pub(crate) fn free(&mut self, unit: ReclaimUnitId, number: u64) {
        let index = unit.index();
        debug_assert_eq!((self.state[index], self.valid[index]), (UnitState::Victim, 0));
        self.state[index] = UnitState::Free;
        self.freed_at[index] = number;
    }

    pub(crate) fn drop_unit(&mut self, unit: ReclaimUnitId) {
        let index = unit.index();
        assert_eq!((self.state[index], self.valid[index]), (UnitState::Free, 0));
        self.state[index] = UnitState::Dropped;
    }

    /// Counts allocation units of a unit that hold new data.
    #[inline]
    pub(crate) fn add_valid(&mut self, unit: ReclaimUnitId, alloc_units: u32) {
        let valid = &mut self.valid[unit.index()];
        *valid += alloc_units;
        debug_assert!(*valid <= self.unit_size, "more is valid than the unit holds");
    }

    /// Invalidates allocation units of a unit. Returns the number that still hold valid data.
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
        *self = Self::new(state.len() as u32, self.unit_size);
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

    pub(crate) fn restore<R: Read>(&mut self, from: &mut StateReader<R>) -> Result<(), CodecError> {
        let units = self.state.len();
        let states = from.bytes("ftl.states")?;
        let states: Option<Vec<_>> = states.into_iter().map(UnitState::from_u8).collect();
        self.state = states.filter(|s| s.len() == units).ok_or_else(|| damaged("ftl.states"))?;
        self.valid = from.u32s("ftl.valid", units)?;
        let owner = |o: u32| Owner { stream: StreamId((o >> 1) as u16), relocated: o & 1 == 1 };
        self.owner = from.u32s("ftl.owners", units)?.into_iter().map(owner).collect();
        self.closed_at = from.u64s("ftl.closed_at", units)?;
        self.erased = from.bytes("ftl.erased")?.into_iter().map(|e| e == 1).collect();
        if self.erased.len() == units { Ok(()) } else { Err(damaged("ftl.erased")) }
    }
}
