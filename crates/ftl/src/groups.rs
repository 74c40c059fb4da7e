//! Reclaim groups: each has dies, free reclaim units and garbage collection of its own.
//!
//! Streams are numbered group after group: those of a group are its reclaim unit handles. A logical
//! page belongs to no group; where the host writes it, it is. The FTL works for one group at a
//! time, the one in charge: [`Ftl::enter`] exchanges what it has of its own for what another one
//! has. So an FTL of one group does nothing more for having groups.

use std::collections::VecDeque;
use std::io::Read;
use std::mem::{replace, take};
use std::ops::Range;

use writecliff_base::codec::{CodecError, StateReader};
use writecliff_base::words::{WordReader, WordWriter};
use writecliff_base::{ReclaimUnitId, StreamId};
use writecliff_flash::Geometry;

use crate::config::FtlConfig;
use crate::frontier::{Frontier, FrontierId};
use crate::ftl::Ftl;
use crate::garbage_collection::Collection;
use crate::state::damaged;
use crate::table::{Owner, UnitState};

/// Words of a group besides its free units.
const WORDS: usize = 8;

/// What a group has of its own.
#[derive(Clone, Debug, Default)]
struct Own {
    free: VecDeque<ReclaimUnitId>,
    collection: Collection,
    idle: i64,
    idle_target: i64,
}

/// The groups of an FTL that has several.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    in_charge: u16,
    /// Streams of a group.
    handles: u16,
    /// By group; nothing for the one in charge, whose are the fields of the FTL.
    others: Vec<Own>,
    /// By stream of the host.
    placements: Vec<Placement>,
}

/// Where a stream's data go for as long as the unit is open.
#[derive(Clone, Copy, Debug)]
struct Placement {
    /// The stream itself, or the same handle in another group while its own is full.
    stream: StreamId,
    /// None before the group has opened it.
    unit: ReclaimUnitId,
}

impl Placement {
    fn new(stream: StreamId) -> Self {
        Self { stream, unit: ReclaimUnitId::NONE }
    }
}

impl Groups {
    /// `None` for a drive with one group.
    pub(crate) fn of(geometry: &Geometry, config: &FtlConfig) -> Option<Box<Self>> {
        let groups = geometry.reclaim_groups() as u16;
        (groups > 1).then(|| {
            let others = vec![Own::default(); usize::from(groups)];
            let placements = (0..config.streams).map(StreamId).map(Placement::new).collect();
            Box::new(Self { in_charge: 0, handles: config.streams / groups, others, placements })
        })
    }

    fn waiting(&self) -> impl Iterator<Item = (u32, &Own)> {
        let in_charge = u32::from(self.in_charge);
        (0..).zip(&self.others).filter(move |(group, _)| *group != in_charge)
    }

    /// Whether garbage collection in the background has work in a group that is not in charge.
    pub(crate) fn need_gc(&self, idle_watermark: u32) -> bool {
        self.waiting()
            .any(|(_, own)| own.collection.is_running() || (own.free.len() as u32) < idle_watermark)
    }

    /// Those of the groups that are not in charge.
    pub(crate) fn free(&self) -> impl Iterator<Item = ReclaimUnitId> {
        self.waiting().flat_map(|(_, own)| own.free.iter().copied())
    }

    pub(crate) fn victims(&self) -> impl Iterator<Item = ReclaimUnitId> {
        self.waiting().map(|(_, own)| own.collection.victim).filter(|victim| !victim.is_none())
    }

    /// Group, free units and idle allocation units of the groups that are not in charge.
    pub(crate) fn idle(&self) -> impl Iterator<Item = (u32, usize, i64)> {
        self.waiting().map(|(group, own)| (group, own.free.len(), own.idle))
    }

    /// The state as words, for saving and for digests.
    pub(crate) fn to_words(&self) -> Vec<u64> {
        let mut out = WordWriter::default();
        out.put(self.in_charge);
        for own in &self.others {
            out.list(own.free.iter(), |out, unit| out.put(unit.0));
            let c = &own.collection;
            for word in [c.victim.0, c.next_position, c.valid_at_start, c.moved] {
                out.put(word);
            }
            out.put(c.for_wear);
            out.put(c.last_wear_move);
            out.put(own.idle_target as u64);
        }
        for placement in &self.placements {
            out.put(placement.stream.0);
            out.put(placement.unit.0);
        }
        out.words().to_vec()
    }

    pub(crate) fn restore(&mut self, words: &[u64]) -> Result<(), CodecError> {
        let input = &mut WordReader::new(words);
        self.in_charge = input.narrow()?;
        if usize::from(self.in_charge) >= self.others.len() {
            return Err(damaged("ftl.groups"));
        }
        for own in &mut self.others {
            own.free = input.list(|input| Ok(ReclaimUnitId(input.narrow()?)))?.into();
            own.collection = Collection {
                victim: ReclaimUnitId(input.narrow()?),
                next_position: input.narrow()?,
                valid_at_start: input.narrow()?,
                moved: input.narrow()?,
                for_wear: input.flag()?,
                last_wear_move: input.get()?,
            };
            own.idle_target = input.get()? as i64;
        }
        let streams = self.placements.len();
        for (stream, placement) in (0..).zip(&mut self.placements) {
            let (to, unit) = (StreamId(input.narrow()?), ReclaimUnitId(input.narrow()?));
            if to.index() >= streams || to.0 % self.handles != stream % self.handles {
                return Err(damaged("ftl.groups"));
            }
            *placement = Placement { stream: to, unit };
        }
        Ok(())
    }
}

impl Ftl {
    /// Streams of a reclaim group: its reclaim unit handles.
    pub fn handles(&self) -> u16 {
        self.groups.as_ref().map_or(self.config.streams, |groups| groups.handles)
    }

    /// The reclaim unit handle of a stream, as a stream of the first group.
    pub(crate) fn handle_of(&self, stream: StreamId) -> StreamId {
        StreamId(stream.0 % self.handles())
    }

    fn group_of(&self, frontier: FrontierId) -> u32 {
        u32::from(frontier.0 % self.config.streams / self.handles())
    }

    /// Whether a frontier is of the group in charge.
    pub(crate) fn is_in_charge(&self, frontier: FrontierId) -> bool {
        let group = self.group_of(frontier);
        self.groups.as_ref().is_none_or(|groups| u32::from(groups.in_charge) == group)
    }

    /// Gives each group its units. Nothing is written yet.
    pub(crate) fn divide_units(&mut self) {
        let Some(groups) = &mut self.groups else { return };
        let (idle_target, units) = (self.idle_target, self.table.len());
        let per_unit = i64::from(self.table.alloc_units_per_reclaim_unit);
        let idle = self.idle / i64::from(units) * (i64::from(units) / groups.others.len() as i64);
        for (group, own) in (0..).zip(&mut groups.others) {
            let free: VecDeque<_> =
                self.geometry.units_of_group(group).map(ReclaimUnitId).collect();
            debug_assert_eq!(idle, free.len() as i64 * per_unit);
            *own = Own { free, collection: Collection::default(), idle, idle_target };
        }
        for (stream, placement) in (0..).zip(&mut groups.placements) {
            *placement = Placement::new(StreamId(stream));
        }
        let first = take(&mut groups.others[0]);
        (self.free, self.idle) = (first.free, first.idle);
        self.table.pool = self.geometry.units_of_group(0);
    }

    /// Puts the group of a frontier in charge.
    #[inline]
    pub(crate) fn enter_for(&mut self, frontier: FrontierId) {
        if self.groups.is_some() {
            self.enter(self.group_of(frontier));
        }
    }

    /// Puts a group in charge.
    pub(crate) fn enter(&mut self, group: u32) {
        let Some(groups) = &mut self.groups else { return };
        if u32::from(groups.in_charge) == group {
            return;
        }
        let before = usize::from(replace(&mut groups.in_charge, group as u16));
        let next = take(&mut groups.others[group as usize]);
        groups.others[before] = Own {
            free: replace(&mut self.free, next.free),
            collection: replace(&mut self.collection, next.collection),
            idle: replace(&mut self.idle, next.idle),
            idle_target: replace(&mut self.idle_target, next.idle_target),
        };
        self.table.pool = self.geometry.units_of_group(group);
    }

    pub(crate) fn in_each_group(&mut self, mut work: impl FnMut(&mut Self)) {
        for group in 0..self.geometry.reclaim_groups() {
            self.enter(group);
            work(self);
        }
    }

    /// Does some work in the first group that has any; returns whether one had.
    pub(crate) fn in_any_group(&mut self, mut work: impl FnMut(&mut Self) -> bool) -> bool {
        (0..self.geometry.reclaim_groups()).any(|group| {
            self.enter(group);
            work(self)
        })
    }

    /// Puts the group in charge that the host's next slot for `stream` goes to, and returns the
    /// stream that it goes to. It is chosen for each reclaim unit: where the group of `stream` has
    /// no room for another one, it is the same handle in the group that has most.
    pub fn choose_stream(&mut self, stream: StreamId) -> StreamId {
        let Some(groups) = &self.groups else { return stream };
        let mut placement = groups.placements[stream.index()];
        let frontier = &self.frontiers[placement.stream.index()];
        if frontier.needs_unit() || frontier.unit != placement.unit {
            placement = self.choose_group(stream, placement);
            if let Some(groups) = &mut self.groups {
                groups.placements[stream.index()] = placement;
            }
        }
        self.enter_for(FrontierId(placement.stream.0));
        placement.stream
    }

    #[cold]
    fn choose_group(&self, stream: StreamId, before: Placement) -> Placement {
        let own = self.group_of(FrontierId(stream.0));
        let handle = self.handle_of(stream).0;
        let in_group = |group: u32| StreamId(group as u16 * self.handles() + handle);
        let room = |group| self.room(group, in_group(group));
        let most = || (0..self.geometry.reclaim_groups()).max_by_key(|&group| room(group));
        // The unit of the last choice has been opened, and garbage collection may have filled it.
        let stays = before.unit.is_none()
            && !self.frontiers[before.stream.index()].needs_unit()
            && room(self.group_of(FrontierId(before.stream.0))) >= 0;
        let stream = if stays {
            before.stream
        } else if room(own) >= 0 {
            stream
        } else {
            most().map_or(stream, in_group)
        };
        let frontier = &self.frontiers[stream.index()];
        let unit = if frontier.needs_unit() { ReclaimUnitId::NONE } else { frontier.unit };
        Placement { stream, unit }
    }

    /// Slots of data that a group still holds with what garbage collection needs. What the host's
    /// open units may come to hold is taken, and another unit where `stream` needs one.
    fn room(&self, group: u32, stream: StreamId) -> i64 {
        let units = self.geometry.units_of_group(group);
        let per_unit = i64::from(self.geometry.slots_per_reclaim_unit);
        let needed = self.config.units_needed(self.geometry.reclaim_groups());
        let most = (units.len() as i64 - needed as i64) * per_unit;
        let valid: i64 = units.clone().map(|unit| i64::from(self.table.valid[unit as usize])).sum();
        let of_host = &self.frontiers[..usize::from(self.config.streams)];
        let is_here = |f: &&Frontier| !f.needs_unit() && units.contains(&f.unit.0);
        let unwritten: i64 =
            of_host.iter().filter(is_here).map(|f| i64::from(f.end - f.next)).sum();
        let another = if of_host[stream.index()].needs_unit() { per_unit } else { 0 };
        most - valid - unwritten - another
    }

    /// Where the relocated data of a unit go.
    #[inline]
    pub(crate) fn destination(&self, owner: Owner) -> FrontierId {
        match &self.groups {
            None => self.config.gc_destination.frontier(owner, self.config.streams),
            Some(groups) => self.destination_in_group(owner, groups.handles),
        }
    }

    #[cold]
    fn destination_in_group(&self, owner: Owner, handles: u16) -> FrontierId {
        let first = owner.stream.0 / handles * handles;
        let as_in_first = Owner { stream: StreamId(owner.stream.0 - first), ..owner };
        let FrontierId(found) = self.config.gc_destination.frontier(as_in_first, handles);
        let of_gc = if found < handles { 0 } else { self.config.streams - handles };
        FrontierId(first + found + of_gc)
    }

    /// The free units of all groups.
    pub(crate) fn all_free(&self) -> impl Iterator<Item = ReclaimUnitId> {
        self.free.iter().copied().chain(self.groups.iter().flat_map(|groups| groups.free()))
    }

    /// The victims of all groups.
    pub(crate) fn victims(&self) -> Vec<ReclaimUnitId> {
        let own = Some(self.collection.victim).filter(|victim| !victim.is_none());
        own.into_iter().chain(self.groups.iter().flat_map(|groups| groups.victims())).collect()
    }

    /// Whether each unit in use is of the group of its stream, and each victim scanned within it.
    pub(crate) fn groups_hold(&self) -> bool {
        let handles = self.handles();
        let Some(groups) = &self.groups else { return true };
        let size = self.geometry.ppas_per_reclaim_unit;
        let of_group = |(group, own): (u32, &Own)| {
            own.collection.next_position <= size
                && own.free.iter().all(|&unit| self.geometry.group_of(unit) == group)
        };
        groups.waiting().all(of_group)
            && (0..self.table.len()).map(ReclaimUnitId).all(|unit| {
                let is_free = self.table.state[unit.index()] == UnitState::Free;
                let stream = self.table.owner[unit.index()].stream.0;
                is_free || u32::from(stream / handles) == self.geometry.group_of(unit)
            })
    }

    pub(crate) fn restore_groups<R: Read>(
        &mut self,
        input: &mut StateReader<R>,
    ) -> Result<(), CodecError> {
        let Some(groups) = &mut self.groups else { return Ok(()) };
        let length = input.u32s("ftl.groups_length", 1)?[0] as usize;
        let most =
            self.table.state.len() + 1 + WORDS * groups.others.len() + 2 * groups.placements.len();
        if length > most {
            return Err(damaged("ftl.groups_length"));
        }
        groups.restore(&input.u64s("ftl.groups", length)?)?;
        self.table.pool = self.geometry.units_of_group(u32::from(groups.in_charge));
        Ok(())
    }

    /// Counts the idle allocation units of each group in a state whose lists are right.
    pub(crate) fn count_idle_of_each(&mut self) {
        let in_charge = self.groups.as_ref().map(|groups| u32::from(groups.in_charge));
        self.in_each_group(|ftl| ftl.idle = ftl.count_idle());
        if let Some(group) = in_charge {
            self.enter(group);
        }
    }

    /// The reclaim units of the group in charge.
    pub(crate) fn pool(&self) -> Range<u32> {
        self.table.pool.clone()
    }
}
