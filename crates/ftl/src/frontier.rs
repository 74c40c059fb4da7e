//! Write frontiers: the write positions in the open reclaim units. The host has one frontier for
//! each stream. GC has separate frontiers, so relocated (older) data are not mixed with newly
//! written data.

use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};
use writecliff_base::{Ppa, ReclaimUnitId, StreamId, saved};
use writecliff_flash::Geometry;

use crate::gc_destination::GcDestination;
use crate::table::Owner;

/// Frontier index: `0..streams` belong to the host, `streams..2*streams` to GC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct FrontierId(pub u16);

impl FrontierId {
    /// Returns the ID as an index into a dense array.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Write position of a frontier. A frontier without a unit has `next == end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Frontier {
    /// Open reclaim unit; `NONE` for a closed frontier.
    pub unit: ReclaimUnitId,
    /// Physical page address of the next slot, and the ends of the program and reclaim units.
    pub next: u32,
    pub(crate) fill_end: u32,
    pub(crate) end: u32,
    /// Slots with relocated data in a host frontier's program unit.
    pub moved: u32,
    /// Number of the first reclaim unit that was freed while the program unit being filled held
    /// data; `u64::MAX` if none was freed. See `UnitTable::freed_at`.
    pub since: u64,
}

impl Frontier {
    pub(crate) const CLOSED: Self =
        Self { unit: ReclaimUnitId::NONE, next: 0, fill_end: 0, end: 0, moved: 0, since: u64::MAX };

    pub(crate) fn at_start(unit: ReclaimUnitId, geometry: &Geometry) -> Self {
        debug_assert!(unit.0 < geometry.reclaim_units, "no reclaim unit of the drive");
        let first = geometry.first_ppa(unit);
        Self {
            unit,
            next: first,
            fill_end: first + geometry.ppas_per_program_unit,
            end: first + geometry.ppas_per_reclaim_unit,
            moved: 0,
            since: u64::MAX,
        }
    }

    #[inline]
    pub(crate) fn needs_unit(&self) -> bool {
        self.next == self.end
    }

    /// Returns the number of used addresses of the program unit being filled, of `ppas` addresses.
    #[inline]
    pub fn filled(&self, ppas: u32) -> u32 {
        debug_assert!(self.next <= self.fill_end && self.fill_end - self.next <= ppas);
        if self.needs_unit() { 0 } else { ppas - (self.fill_end - self.next) }
    }

    /// Returns the number of unused addresses in the reclaim unit.
    #[inline]
    pub fn room(&self) -> u32 {
        debug_assert!(self.next <= self.end, "the frontier is beyond its unit");
        self.end - self.next
    }

    /// Skips the rest of the program unit; returns `true` if the reclaim unit ends with it.
    #[inline]
    pub(crate) fn finish_program_unit(&mut self, ppas: u32) -> bool {
        debug_assert!(self.next <= self.fill_end && self.fill_end <= self.end);
        self.next = self.fill_end;
        let at_end = self.fill_end == self.end;
        if !at_end {
            self.fill_end += ppas;
        }
        at_end
    }
}

/// All frontiers of a drive, numbered by stream. Streams are numbered consecutively by group: the
/// streams of a reclaim group are its reclaim unit handles.
#[derive(Clone, Debug)]
pub(crate) struct Frontiers {
    pub all: Vec<Frontier>,
    pub streams: u16,
    /// Number of streams per reclaim group.
    pub handles: u16,
}

saved! { Frontiers { [all] } }

impl Index<FrontierId> for Frontiers {
    type Output = Frontier;

    #[inline]
    fn index(&self, frontier: FrontierId) -> &Frontier {
        &self.all[frontier.index()]
    }
}

impl IndexMut<FrontierId> for Frontiers {
    #[inline]
    fn index_mut(&mut self, frontier: FrontierId) -> &mut Frontier {
        &mut self.all[frontier.index()]
    }
}

impl Frontiers {
    pub(crate) fn new(streams: u16, groups: u32) -> Self {
        assert!(streams.is_multiple_of(groups as u16), "each reclaim group has as many handles");
        let handles = streams / groups as u16;
        assert!(handles > 0, "each reclaim group has a stream");
        Self { all: vec![Frontier::CLOSED; 2 * usize::from(streams)], streams, handles }
    }

    #[inline]
    pub(crate) fn of_host(&self, stream: StreamId) -> FrontierId {
        debug_assert!(stream.0 < self.streams);
        FrontierId(stream.0)
    }

    #[inline]
    pub(crate) fn is_of_host(&self, frontier: FrontierId) -> bool {
        frontier.0 < self.streams
    }

    pub(crate) fn stream_of(&self, frontier: FrontierId) -> StreamId {
        debug_assert!(frontier.0 < 2 * self.streams, "each stream has two frontiers");
        StreamId(frontier.0 % self.streams)
    }

    /// Returns the reclaim unit handle of a stream, as a stream of the first group.
    pub(crate) fn handle_of(&self, stream: StreamId) -> StreamId {
        debug_assert!(stream.0 < self.streams);
        StreamId(stream.0 % self.handles)
    }

    pub(crate) fn group_of(&self, frontier: FrontierId) -> usize {
        usize::from(self.stream_of(frontier).0 / self.handles)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = FrontierId> + use<> {
        (0..2 * self.streams).map(FrontierId)
    }

    /// Returns the frontiers with an open unit, each with its number.
    pub(crate) fn open(&self) -> impl Iterator<Item = (FrontierId, &Frontier)> {
        self.ids().zip(&self.all).filter(|(_, f)| !f.needs_unit())
    }

    pub(crate) fn of_unit(&self, unit: ReclaimUnitId) -> Option<FrontierId> {
        self.open().find(|(_, f)| f.unit == unit).map(|(id, _)| id)
    }

    /// Returns `true` if an address is in a partly filled program unit, of `ppas` addresses.
    #[inline]
    pub(crate) fn is_filling(&self, ppa: Ppa, unit: ReclaimUnitId, ppas: u32) -> bool {
        let filled = |f: &Frontier| f.fill_end - ppas.min(f.fill_end)..f.next;
        self.all.iter().any(|f| filled(f).contains(&ppa.0) && f.unit == unit)
    }

    /// Returns the frontier for data relocated from a unit of `owner`.
    #[inline]
    pub(crate) fn destination(&self, policy: GcDestination, owner: Owner) -> FrontierId {
        if self.handles == self.streams {
            let chosen = policy.frontier(owner, self.streams);
            debug_assert!(chosen.index() < self.all.len(), "the policy chose no frontier");
            chosen
        } else {
            self.destination_in_group(policy, owner)
        }
    }

    #[cold]
    fn destination_in_group(&self, policy: GcDestination, owner: Owner) -> FrontierId {
        let handle = self.handle_of(owner.stream);
        let first = owner.stream.0 - handle.0;
        let FrontierId(local) = policy.frontier(Owner { stream: handle, ..owner }, self.handles);
        let of_gc = if local < self.handles { 0 } else { self.streams - self.handles };
        let chosen = FrontierId(first + local + of_gc);
        debug_assert_eq!(self.group_of(chosen), self.group_of(FrontierId(owner.stream.0)));
        chosen
    }
}
