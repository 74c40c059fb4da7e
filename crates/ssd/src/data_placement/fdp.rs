//! Flexible Data Placement: NVMe Base Specification 2.1, 8.1.10 (TP4146), for one endurance group
//! with one namespace. FDP is enabled with its only configuration; changing the configuration would
//! require a drive without namespaces.
//!
//! The upper bits of a placement identifier contain the reclaim group (RGIF bits; none if there is
//! one group), and the lower bits contain a placement handle. The namespace's list maps the
//! placement handle to a reclaim unit handle. A reclaim unit handle corresponds to an FTL stream in
//! each group; streams are numbered consecutively by group. A write without an identifier, or with
//! an invalid identifier, goes to placement handle 0 of group 0.

use writecliff_base::{Bytes, Nanos, StreamId, saved};
use writecliff_ftl::gc_destination::GcDestination;
use writecliff_ftl::gc_log::{GcEvent, GcLog};
use writecliff_host_interface::placement::{FdpConfiguration, FdpEventType, Isolation, Refusal};

use super::Sizes;
use super::config::DataPlacementConfig;
use super::events::{EventLog, MOVED_MAX};
use super::resources::UNROUTED;
use super::time_limit::TimeLimit;

#[derive(Clone, Debug)]
pub(crate) struct Fdp {
    pub(crate) events: EventLog,
    /// Reclaim unit handle of each placement handle.
    pub(crate) handles: Vec<u16>,
    /// Isolation type of each FTL stream.
    types: Vec<Isolation>,
    groups: u16,
    /// Number of reclaim unit handles, each with a stream in every group.
    pub(crate) reclaim_unit_handles: u16,
    /// Blocks left unwritten in units abandoned by the host or by a reset.
    pub(crate) abandoned_slots: u64,
    pub(crate) limit: Option<TimeLimit>,
}

saved! { Fdp { abandoned_slots, events, (limit) } }

impl Fdp {
    pub(crate) fn new(config: &DataPlacementConfig, streams: u16, policy: GcDestination) -> Self {
        let groups = config.reclaim_groups;
        let reclaim_unit_handles = streams / groups;
        assert!(streams.is_multiple_of(groups), "each reclaim group has as many handles");
        assert!(!config.handles.is_empty(), "the drive has a placement handle");
        assert!(config.handles.iter().all(|&handle| handle < reclaim_unit_handles));
        let isolation = |stream| {
            let for_good = policy.isolates(StreamId(stream % reclaim_unit_handles));
            if for_good { Isolation::Persistently } else { Isolation::Initially }
        };
        Self {
            events: EventLog::new(streams, reclaim_unit_handles),
            groups,
            reclaim_unit_handles,
            handles: config.handles.clone(),
            types: (0..streams).map(isolation).collect(),
            abandoned_slots: 0,
            limit: config.time_limit.map(|limit| TimeLimit::new(limit, streams)),
        }
    }

    pub(crate) fn routes(&self) -> Vec<u16> {
        let ids = || self.identifiers();
        let last = ids().map(|(id, _)| id).max().unwrap_or(0);
        let mut routes = vec![UNROUTED; usize::from(last) + 1];
        ids().for_each(|(id, stream)| routes[usize::from(id)] = stream);
        routes
    }

    /// Reclaim Group Identifier Format: number of upper bits of an identifier for the group.
    fn rgif(&self) -> u32 {
        self.groups.next_power_of_two().trailing_zeros()
    }

    /// Returns the placement identifiers with their FTL streams, ordered by group.
    pub(crate) fn identifiers(&self) -> impl Iterator<Item = (u16, u16)> {
        let lower = u16::BITS - self.rgif();
        debug_assert!(self.handles.len() <= 1 << lower, "identifiers of two groups are equal");
        (0..self.groups).flat_map(move |group| {
            let upper = u16::try_from(u32::from(group) << lower).unwrap_or(0);
            (upper..)
                .zip(&self.handles)
                .map(move |(id, &handle)| (id, group * self.reclaim_unit_handles + handle))
        })
    }

    /// Returns the FTL streams of a placement handle, one in each group.
    pub(crate) fn streams_of(&self, placement_handle: u16) -> Result<Vec<u16>, Refusal> {
        let handle = self.handles.get(usize::from(placement_handle)).copied();
        let groups = 0..self.groups;
        let handle = handle.ok_or_else(|| self.unknown("handle", placement_handle))?;
        Ok(groups.map(|group| group * self.reclaim_unit_handles + handle).collect())
    }

    pub(crate) fn configuration(&self, sizes: &Sizes, cache: bool) -> FdpConfiguration {
        FdpConfiguration {
            handles: self.types[..usize::from(self.reclaim_unit_handles)].to_vec(),
            placement_handles: self.handles.clone(),
            reclaim_unit: sizes.reclaim_unit,
            time_limit_s: self.limit.as_ref().map_or(0, TimeLimit::seconds),
            reclaim_groups: self.groups,
            rgif: self.rgif() as u8,
            volatile_cache: cache,
        }
    }

    /// Returns the placement identifier that maps to an FTL stream.
    pub(crate) fn placement_id(&self, stream: u16) -> Option<u16> {
        self.identifiers().find(|&(_, routed)| routed == stream).map(|(id, _)| id)
    }

    /// Returns the FTL streams of placement identifiers, or an error if any is invalid.
    pub(crate) fn checked(&self, ids: &[u16]) -> Result<Vec<u16>, Refusal> {
        let (count, most) = (ids.len(), self.handles.len() * usize::from(self.groups));
        if ids.is_empty() || count > most {
            let about = format!("{count} placement identifiers; 1 to {most} can be given");
            return Err(Refusal::InvalidField(about));
        }
        let stream = |&id: &u16| {
            let entry = self.identifiers().find(|&(listed, _)| listed == id);
            entry.map(|(_, stream)| stream).ok_or_else(|| self.unknown("identifier", id))
        };
        ids.iter().map(stream).collect()
    }

    fn unknown(&self, what: &str, number: u16) -> Refusal {
        let last = self.handles.len() - 1;
        let groups = match self.groups {
            1 => String::new(),
            groups => format!(" in each of {groups} reclaim groups"),
        };
        let message = format!(
            "placement {what} {number} does not exist; the namespace has 0 to {last}{groups}"
        );
        Refusal::InvalidField(message)
    }

    /// Handles a write with an invalid identifier; returns the handle that the drive selects.
    pub(crate) fn route_invalid(&mut self, id: u16, now: Nanos) -> StreamId {
        let handle = self.handles[0];
        self.events.count(FdpEventType::InvalidPlacementId, 1);
        self.events.about(FdpEventType::InvalidPlacementId, now, handle, Some(id), None);
        StreamId(handle)
    }

    pub(crate) fn gather(&mut self, gc_log: GcLog, now: Nanos, slot: Bytes) {
        debug_assert_eq!(self.types.len(), gc_log.counts.len(), "a count for each stream");
        for (&kind, counts) in self.types.iter().zip(&gc_log.counts) {
            let moved = if kind == Isolation::Initially { counts.moved } else { 0 };
            self.events.count(FdpEventType::MediaReallocated, moved);
            self.events.count(FdpEventType::ImplicitlyModified, counts.rolled_over);
        }
        for event in gc_log.events {
            match event {
                GcEvent::Moved { stream, slots } => {
                    // The standard defines no such event for persistently isolated handles.
                    if self.types[stream.index()] == Isolation::Initially {
                        let moved = Bytes(u64::from(slots) * slot.0).min(MOVED_MAX);
                        self.about(FdpEventType::MediaReallocated, now, stream, Some(moved));
                    }
                }
                GcEvent::RolledOver { stream } => {
                    self.about(FdpEventType::ImplicitlyModified, now, stream, None);
                }
            }
        }
    }

    fn about(&mut self, kind: FdpEventType, now: Nanos, stream: StreamId, moved: Option<Bytes>) {
        let id = self.placement_id(stream.0);
        self.events.about(kind, now, stream.0, id, moved);
    }
}
