//! Flexible Data Placement: NVMe Base Specification 2.1, 8.1.10 (TP4146), for one endurance group
//! with one reclaim group and one namespace. It is enabled with its only configuration; changing
//! that would require a drive without namespaces.
//!
//! A placement identifier is a placement handle (RGIF is 0: there is one reclaim group), and the
//! namespace's list maps it to a reclaim unit handle. A reclaim unit handle corresponds to an FTL
//! stream. A write without an identifier, or with an invalid one, goes to placement handle 0.

use writecliff_base::codec::CodecError;
use writecliff_base::{Nanos, StreamId};
use writecliff_ftl::gc_destination::GcDestination;
use writecliff_ftl::gc_log::{GcEvent, GcLog};

use super::Sizes;
use super::config::DataPlacementConfig;
use super::error::Refusal;
use super::events::{EventLog, EventType};
use super::time_limit::TimeLimit;
use writecliff_base::words::{WordReader, WordWriter};

/// Reclaim Unit Handle Type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Data are isolated until GC relocates them (1h).
    Initially,
    /// Data are always isolated (2h).
    Persistently,
}

impl Isolation {
    pub fn name(self) -> &'static str {
        match self {
            Self::Initially => "initially isolated",
            Self::Persistently => "persistently isolated",
        }
    }
}

/// The FDP configuration descriptor (log page 20h, 5.1.12.1.28).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FdpConfiguration {
    /// Reclaim Group Identifier Format: bits of an identifier that contain the reclaim group.
    pub rgif: u8,
    /// Whether a volatile write cache is present.
    pub fdpvwc: bool,
    pub reclaim_groups: u32,
    /// Type of each reclaim unit handle; the number of handles is NRUH.
    pub handles: Vec<Isolation>,
    /// Max Placement Identifiers.
    pub max_placement_ids: u16,
    /// Reclaim Unit Nominal Size.
    pub reclaim_unit_bytes: u64,
    /// Estimated Reclaim Unit Time Limit in seconds; 0 if not reported.
    pub time_limit_s: u32,
    /// The namespace's list: reclaim unit handle of each placement handle.
    pub placement_handles: Vec<u16>,
}

/// Reclaim unit handle status descriptor (I/O Management Receive, 7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandleStatus {
    pub placement_id: u16,
    pub handle: u16,
    /// Estimated Active Reclaim Unit Time Remaining, in seconds; 0 if not reported.
    pub time_remaining_s: u32,
    /// Reclaim Unit Available Media Writes: logical blocks until the unit is full.
    pub available_blocks: u64,
}

/// The FDP Statistics log page (22h, 5.1.12.1.30).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FdpStatistics {
    /// Host Bytes with Metadata Written.
    pub hbmw: u64,
    /// Media Bytes with Metadata Written, by host and controller.
    pub mbmw: u64,
    /// Media Bytes Erased.
    pub mbe: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Fdp {
    pub(crate) events: EventLog,
    pub(crate) handles: Vec<u16>,
    types: Vec<Isolation>,
    /// Blocks left unwritten in units that the host or a reset abandoned.
    pub(crate) abandoned_slots: u64,
    pub(crate) limit: Option<TimeLimit>,
}

impl Fdp {
    pub(crate) fn new(config: &DataPlacementConfig, streams: u16, policy: GcDestination) -> Self {
        let isolation = |stream| {
            let for_good = policy.isolates(StreamId(stream));
            if for_good { Isolation::Persistently } else { Isolation::Initially }
        };
        Self {
            events: EventLog::new(streams),
            handles: config.handles.clone(),
            types: (0..streams).map(isolation).collect(),
            abandoned_slots: 0,
            limit: config.time_limit.map(|limit| TimeLimit::new(limit, streams)),
        }
    }

    /// Route of each placement identifier.
    pub(crate) fn routes(&self) -> Vec<u16> {
        self.handles.clone()
    }

    pub(crate) fn configuration(&self, sizes: &Sizes, cache: bool) -> FdpConfiguration {
        FdpConfiguration {
            rgif: 0,
            fdpvwc: cache,
            reclaim_groups: 1,
            handles: self.types.clone(),
            max_placement_ids: self.handles.len() as u16,
            reclaim_unit_bytes: sizes.reclaim_unit_bytes,
            time_limit_s: self.limit.as_ref().map_or(0, TimeLimit::seconds),
            placement_handles: self.handles.clone(),
        }
    }

    /// The placement handle that is mapped to a reclaim unit handle.
    pub(crate) fn placement_id(&self, handle: u16) -> Option<u16> {
        self.handles.iter().position(|&listed| listed == handle).map(|index| index as u16)
    }

    /// The reclaim unit handles of a list of placement identifiers; an error if any is invalid.
    pub(crate) fn checked(&self, ids: &[u16]) -> Result<Vec<u16>, Refusal> {
        if ids.is_empty() || ids.len() > self.handles.len() {
            let (count, most) = (ids.len(), self.handles.len());
            let about = format!("{count} placement identifiers; 1 to {most} can be given");
            return Err(Refusal::InvalidField(about));
        }
        ids.iter().map(|&id| self.handle(id)).collect()
    }

    pub(crate) fn handle(&self, id: u16) -> Result<u16, Refusal> {
        self.handles.get(usize::from(id)).copied().ok_or_else(|| {
            let last = self.handles.len() - 1;
            Refusal::InvalidField(format!(
                "placement identifier {id}; the namespace has 0 to {last}"
            ))
        })
    }

    /// Handles a write with an invalid identifier; returns the handle that the controller chooses.
    pub(crate) fn route_invalid(&mut self, id: u16, now: Nanos) -> StreamId {
        let handle = self.handles[0];
        self.events.count(EventType::InvalidPlacementId, 1);
        self.events.about(EventType::InvalidPlacementId, now, handle, Some(id), None);
        StreamId(handle)
    }

    /// Generates events from the GC log.
    pub(crate) fn gather(&mut self, gc_log: GcLog, now: Nanos, blocks_per_slot: u32) {
        for (&kind, counts) in self.types.iter().zip(&gc_log.counts) {
            let moved = if kind == Isolation::Initially { counts.moved } else { 0 };
            self.events.count(EventType::MediaReallocated, moved);
            self.events.count(EventType::ImplicitlyModified, counts.rolled_over);
        }
        for event in gc_log.kept {
            match event {
                GcEvent::Moved { stream, slots } => {
                    // The standard has no such event for persistently isolated handles.
                    if self.types[stream.index()] == Isolation::Initially {
                        let blocks = u16::try_from(slots * blocks_per_slot).unwrap_or(u16::MAX);
                        self.about(EventType::MediaReallocated, now, stream, Some(blocks));
                    }
                }
                GcEvent::RolledOver { stream } => {
                    self.about(EventType::ImplicitlyModified, now, stream, None);
                }
            }
        }
    }

    fn about(&mut self, kind: EventType, now: Nanos, stream: StreamId, blocks: Option<u16>) {
        let id = self.placement_id(stream.0);
        self.events.about(kind, now, stream.0, id, blocks);
    }

    pub(crate) fn save(&self, out: &mut WordWriter) {
        out.put(self.abandoned_slots);
        self.events.save(out);
        if let Some(limit) = &self.limit {
            limit.save(out);
        }
    }

    pub(crate) fn restore(&mut self, input: &mut WordReader<'_>) -> Result<(), CodecError> {
        self.abandoned_slots = input.get()?;
        self.events.restore(input)?;
        match &mut self.limit {
            Some(limit) => limit.restore(input),
            None => Ok(()),
        }
    }
}
