//! The table of reclaim units: dense arrays indexed by unit, so that a victim scan reads only what
//! it needs.
//!
//! Space is counted in allocation units: slots, or sectors if the controller reduces data and a
//! piece of data takes one or more of them (`reduce/`).

use std::ops::Range;

use writecliff_base::{ReclaimUnitId, StreamId};

/// State of a reclaim unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum UnitState {
    /// Has no valid data; may still have to be erased before use.
    Free = 0,
    /// A frontier writes to it.
    Open = 1,
    /// Full; a candidate for GC.
    Closed = 2,
    /// The victim of garbage collection.
    Victim = 3,
    /// No longer used, because of bad blocks.
    Dropped = 4,
}

impl UnitState {
    pub fn from_u8(value: u8) -> Option<Self> {
        let all = [Self::Free, Self::Open, Self::Closed, Self::Victim, Self::Dropped];
        all.into_iter().find(|&s| s as u8 == value)
    }
}

/// The stream of a reclaim unit, and whether the host or GC wrote it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Owner {
    pub stream: StreamId,
    /// Whether GC wrote the unit, with relocated data, and not the host.
    pub relocated: bool,
}

/// Set of units that a policy may choose from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Among {
    All,
    /// Units of one stream.
    Stream(StreamId),
}

impl Among {
    #[inline]
    pub fn holds(self, owner: Owner) -> bool {
        match self {
            Self::All => true,
            Self::Stream(stream) => owner.stream == stream,
        }
    }
}

/// All reclaim units of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitTable {
    pub alloc_units_per_reclaim_unit: u32,
    pub state: Vec<UnitState>,
    /// Allocation units of valid data.
    pub valid: Vec<u32>,
    pub owner: Vec<Owner>,
    /// Host slots written when the unit was closed: the age of its data.
    pub closed_at: Vec<u64>,
    /// Whether nothing has been programmed since the last erase.
    pub erased: Vec<bool>,
    /// Number of reclaim units freed before this one when it was last freed: data that were
    /// allocated earlier may replace what it holds.
    pub freed_at: Vec<u64>,
    /// The units that policies choose from: those of the reclaim group in charge.
    pub pool: Range<u32>,
}

impl UnitTable {
    pub fn new(units: u32, alloc_units_per_reclaim_unit: u32) -> Self {
        let n = units as usize;
        Self {
            alloc_units_per_reclaim_unit,
            state: vec![UnitState::Free; n],
            valid: vec![0; n],
            owner: vec![Owner::default(); n],
            closed_at: vec![0; n],
            erased: vec![true; n],
            freed_at: vec![0; n],
            pool: 0..units,
        }
    }

    #[inline]
    pub fn len(&self) -> u32 {
        self.state.len() as u32
    }

    pub fn is_empty(&self) -> bool {
        self.state.is_empty()
    }

    #[inline]
    pub fn is_closed(&self, unit: ReclaimUnitId) -> bool {
        self.state[unit.index()] == UnitState::Closed
    }

    /// Whether a policy may choose the unit from `among`.
    #[inline]
    pub fn is_candidate(&self, unit: ReclaimUnitId, among: Among) -> bool {
        self.is_closed(unit) && among.holds(self.owner[unit.index()])
    }

    /// Candidates in ascending order.
    pub fn candidates(&self, among: Among) -> impl Iterator<Item = ReclaimUnitId> + '_ {
        self.pool().filter(move |&u| self.is_candidate(u, among))
    }

    /// The units that policies choose from.
    pub fn pool(&self) -> impl Iterator<Item = ReclaimUnitId> + use<> {
        self.pool.clone().map(ReclaimUnitId)
    }

    /// Closed units in ascending order.
    pub fn closed(&self) -> impl Iterator<Item = ReclaimUnitId> + '_ {
        (0..self.len()).map(ReclaimUnitId).filter(|&u| self.is_closed(u))
    }

    pub fn close(&mut self, unit: ReclaimUnitId, now: u64) {
        debug_assert_eq!(self.state[unit.index()], UnitState::Open);
        self.state[unit.index()] = UnitState::Closed;
        self.closed_at[unit.index()] = now;
    }
}
