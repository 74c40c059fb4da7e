//! Reclaim groups, each with its own dies, free reclaim units and garbage collection.
//!
//! Streams are numbered consecutively by group: the streams of a group are its reclaim unit
//! handles. A logical page belongs to the group where the host last wrote the page. The methods of
//! a group receive the state that all groups share ([`Parts`]) as an argument.

use std::collections::VecDeque;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use writecliff_base::{ReclaimUnitId, StreamId, saved};

use crate::UnitTable;
use crate::frontier::Frontier;
use crate::garbage_collection::Collection;
use crate::table::{Candidates, UnitState};
use crate::{FrontierId, GcPacing, Parts};

/// State of one reclaim group. [`Parts`] holds the state that all groups share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    /// Reclaim units in the group.
    pub units: Range<u32>,
    /// Free reclaim units, in the order in which they became free.
    pub free: VecDeque<ReclaimUnitId>,
    pub collection: Collection,
    /// Allocation units in free reclaim units and in the unwritten rest of open units.
    pub idle: i64,
    /// Pacing target for `idle`.
    pub idle_target: i64,
}

saved! { Group { free, collection, idle_target } }

impl Group {
    fn new(units: Range<u32>, parts: &Parts) -> Self {
        let is_free = |u: &ReclaimUnitId| parts.table.state[u.index()] == UnitState::Free;
        let free = units.clone().map(ReclaimUnitId).filter(is_free).collect();
        let mut new = Self { units, free, ..Self::default() };
        new.idle = new.count_idle(parts);
        new.update_idle_target(parts);
        new
    }

    pub(crate) fn among<'a>(&self, table: &'a UnitTable) -> Candidates<'a> {
        Candidates { table, units: self.units.clone(), stream: None }
    }

    /// Returns the frontiers whose open unit is in the group.
    pub(crate) fn open_frontiers<'a>(
        &'a self,
        parts: &'a Parts,
    ) -> impl Iterator<Item = (FrontierId, &'a Frontier)> {
        parts.frontiers.open().filter(|(_, f)| self.units.contains(&f.unit.0))
    }

    pub(crate) fn count_idle(&self, parts: &Parts) -> i64 {
        let in_open: i64 = self.open_frontiers(parts).map(|(id, f)| parts.unwritten(id, f)).sum();
        self.free.len() as i64 * i64::from(parts.table.unit_size) + in_open
    }

    /// Updates the target of idle space: `gc_high_watermark` units, plus one for every open
    /// frontier beyond two, whose unwritten slots are idle but not available to others.
    pub(crate) fn update_idle_target(&mut self, parts: &Parts) {
        if parts.config.gc_pacing == GcPacing::OnDemand {
            return;
        }
        let open = self.open_frontiers(parts).count() as u32;
        let units = parts.config.gc_high_watermark + open.saturating_sub(2);
        self.idle_target = i64::from(units) * i64::from(parts.table.unit_size);
    }

    /// Returns the slots that the group can still take beyond the space that GC needs. Unwritten
    /// slots of host units count as taken, and so does a new unit if `stream` needs one.
    fn room(&self, parts: &Parts, stream: StreamId) -> i64 {
        let per_unit = i64::from(parts.geometry.slots_per_reclaim_unit);
        let needed = parts.config.units_needed(parts.geometry.reclaim_groups);
        let most = (self.units.len() as i64 - needed as i64) * per_unit;
        let valid = &parts.table.valid[self.units.start as usize..self.units.end as usize];
        let valid: i64 = valid.iter().map(|&valid| i64::from(valid)).sum();
        let of_host = self.open_frontiers(parts).filter(|(id, _)| parts.frontiers.is_of_host(*id));
        let unwritten: i64 = of_host.map(|(_, f)| i64::from(f.room())).sum();
        let needs_unit = parts.frontiers[parts.frontiers.of_host(stream)].needs_unit();
        debug_assert!(unwritten >= 0 && needed < self.units.len() as u64);
        most - valid - unwritten - if needs_unit { per_unit } else { 0 }
    }
}

/// Destination of a stream's data while the unit is open.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Placement {
    /// The stream itself, or its handle in another group while the stream's group is full.
    stream: StreamId,
    /// The unit that the group has opened; `ReclaimUnitId::NONE` before that.
    unit: ReclaimUnitId,
}

#[derive(Clone, Debug)]
pub(crate) struct Groups {
    pub all: Vec<Group>,
    /// Index of the group that the host writes to.
    pub current: usize,
    /// Placement of each host stream; empty if the drive has one group.
    placements: Vec<Placement>,
}

saved! { Groups { current, [all], [placements] } check is_possible }

impl Groups {
    pub(crate) fn new(parts: &Parts) -> Self {
        let groups = parts.geometry.reclaim_groups;
        let new = |group| Group::new(parts.geometry.units_of_group(group), parts);
        let streams = if groups > 1 { parts.config.streams } else { 0 };
        let placement = |stream| Placement { stream, unit: ReclaimUnitId::NONE };
        Self {
            all: (0..groups).map(new).collect(),
            current: 0,
            placements: (0..streams).map(StreamId).map(placement).collect(),
        }
    }

    #[inline]
    pub(crate) fn current(&self) -> &Group {
        &self.all[self.current]
    }

    #[inline]
    pub(crate) fn current_mut(&mut self) -> &mut Group {
        &mut self.all[self.current]
    }

    pub(crate) fn enter(&mut self, group: usize) -> &mut Group {
        debug_assert!(group < self.all.len(), "no reclaim group of the drive");
        self.current = group;
        self.current_mut()
    }

    /// Calls `work` in each group in turn until it returns `true`, or `false` in all groups.
    pub(crate) fn enter_any(&mut self, mut work: impl FnMut(&mut Group) -> bool) -> bool {
        (0..self.all.len()).any(|group| work(self.enter(group)))
    }

    pub(crate) fn of_unit(&mut self, unit: ReclaimUnitId) -> &mut Group {
        let units = self.all[0].units.len();
        &mut self.all[unit.index() / units]
    }

    /// Enters the group for the host's next slot of `stream`, and returns the stream in that group.
    /// The group is selected for each reclaim unit. If the group of `stream` has no room for
    /// another unit, the same handle in the group with the most room is selected.
    pub(crate) fn choose_stream(&mut self, parts: &Parts, stream: StreamId) -> StreamId {
        if self.placements.is_empty() {
            return stream;
        }
        let mut placement = self.placements[stream.index()];
        let frontier = &parts.frontiers[FrontierId(placement.stream.0)];
        if frontier.needs_unit() || frontier.unit != placement.unit {
            placement = self.choose_group(parts, stream, placement);
            self.placements[stream.index()] = placement;
        }
        self.current = parts.frontiers.group_of(FrontierId(placement.stream.0));
        placement.stream
    }

    #[cold]
    fn choose_group(&self, parts: &Parts, stream: StreamId, before: Placement) -> Placement {
        let frontiers = &parts.frontiers;
        let frontier = |stream: StreamId| &frontiers[FrontierId(stream.0)];
        let group_of = |stream: StreamId| frontiers.group_of(FrontierId(stream.0));
        let (assigned, handle) = (group_of(stream), frontiers.handle_of(stream).0);
        let in_group = |group: usize| StreamId(group as u16 * frontiers.handles + handle);
        let room = |group: usize| self.all[group].room(parts, in_group(group));
        // The unit of the last selection has been opened, and GC may have filled it.
        let stays = before.unit.is_none()
            && !frontier(before.stream).needs_unit()
            && room(group_of(before.stream)) >= 0;
        let stream = if stays {
            before.stream
        } else if room(assigned) >= 0 {
            stream
        } else {
            (0..self.all.len()).max_by_key(|&group| room(group)).map_or(stream, in_group)
        };
        let f = frontier(stream);
        Placement { stream, unit: if f.needs_unit() { ReclaimUnitId::NONE } else { f.unit } }
    }

    pub(crate) fn victims(&self) -> impl Iterator<Item = ReclaimUnitId> {
        self.all.iter().map(|group| group.collection.victim).filter(|victim| !victim.is_none())
    }

    fn is_possible(&mut self) -> bool {
        let streams = self.placements.len();
        let handles = streams / self.all.len();
        self.current < self.all.len()
            && self.placements.iter().enumerate().all(|(stream, placement)| {
                let to = placement.stream.index();
                to < streams && to % handles == stream % handles
            })
    }

    /// Returns the state as words for digests; empty if there is only one group. The digest covers
    /// the free units and the victim of the current group separately.
    pub(crate) fn to_words(&self) -> Vec<u64> {
        if self.placements.is_empty() {
            return Vec::new();
        }
        let mut words = vec![self.current as u64];
        let covered = Group::default();
        for (index, group) in self.all.iter().enumerate() {
            let group = if index == self.current { &covered } else { group };
            words.push(group.free.len() as u64);
            words.extend(group.free.iter().map(|unit| u64::from(unit.0)));
            words.extend(group.collection.to_words());
            words.push(group.idle_target as u64);
        }
        let placement = |p: &Placement| [u64::from(p.stream.0), u64::from(p.unit.0)];
        words.extend(self.placements.iter().flat_map(placement));
        words
    }
}
