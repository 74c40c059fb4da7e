//! Interfaces through which a host controls where its writes go: NVMe and SCSI streams, FDP.
//!
//! A write carries the number that the host assigns to its stream: a stream identifier or a
//! placement identifier. A table maps it to an FTL stream; only numbers that are not in the table
//! need further handling. Drives with and without an interface therefore share one path.

pub mod administration;
pub mod config;
pub mod events;
pub mod fdp;
mod resources;
pub mod scsi;
pub mod streams;
pub(crate) mod time_limit;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use writecliff_base::{Bytes, Nanos, SLOT_BYTES, StreamId, saved};
use writecliff_host_interface::Command;
use writecliff_host_interface::placement::{
    BlockLimitsExtension, FdpConfiguration, StreamParameters,
};

use self::fdp::Fdp;
use self::resources::{Resources, UNROUTED};
use self::streams::NvmeStreams;
use self::time_limit::TimeLimit;
use crate::DeviceConfig;
use crate::front::Placed;

pub use config::{DataPlacementConfig, InterfaceKind, Overflow};

/// Stream numbers whose overflow is counted individually.
const STREAM_NUMBERS_COUNTED: usize = 64;

/// Sizes reported by the interfaces, from the drive's geometry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// A program unit.
    pub(crate) write_size: Bytes,
    /// Program units per reclaim unit.
    pub(crate) granularity: u32,
    pub(crate) reclaim_unit: Bytes,
}

impl Sizes {
    fn of(config: &DeviceConfig) -> Self {
        let g = &config.geometry;
        let bytes = |slots: u32| Bytes(u64::from(slots) * SLOT_BYTES);
        Self {
            write_size: bytes(g.slots_per_program_unit),
            granularity: g.program_units_per_reclaim_unit,
            reclaim_unit: bytes(g.slots_per_reclaim_unit),
        }
    }
}

/// Counters of stream resources since the drive was new.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) opened: u64,
    /// Streams that the controller released to make room.
    pub(crate) released: u64,
    /// Writes to a stream that went to the default stream instead.
    pub(crate) overflow_writes: u64,
    pub(crate) overflow_bytes: u64,
    /// Bytes of these writes by stream number; the last entry counts all higher numbers.
    pub(crate) overflow_by_number: BTreeMap<u16, u64>,
}

impl Tally {
    pub(crate) fn overflow(&mut self, number: u16, bytes: u32) {
        self.overflow_writes += 1;
        self.overflow_bytes += u64::from(bytes);
        let full = self.overflow_by_number.len() == STREAM_NUMBERS_COUNTED;
        let is_counted = self.overflow_by_number.contains_key(&number);
        let number = if full && !is_counted { u16::MAX } else { number };
        *self.overflow_by_number.entry(number).or_default() += u64::from(bytes);
    }
}

/// Parameters reported by the interface of a new drive, for listings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// Return Parameters of the Streams directive.
    Nvme(StreamParameters),
    /// Block Limits Extension VPD page.
    Scsi(BlockLimitsExtension),
    /// FDP configuration.
    Fdp(FdpConfiguration),
}

impl Report {
    /// Returns `None` for a drive without an interface.
    pub fn of(config: &DeviceConfig) -> Option<Self> {
        let DataPlacement { interface, sizes, .. } = DataPlacement::new(config);
        match interface {
            Interface::None => None,
            Interface::Nvme(nvme) => Some(Self::Nvme(nvme.parameters(&sizes))),
            Interface::Scsi(scsi) => Some(Self::Scsi(scsi.scsi_limits(&sizes))),
            Interface::Fdp(fdp) => {
                let is_volatile = !config.controller.power_loss_protection;
                Some(Self::Fdp(fdp.configuration(&sizes, is_volatile)))
            }
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Interface {
    /// No interface: the host's stream numbers are the FTL's stream numbers.
    None,
    Nvme(NvmeStreams),
    Scsi(Resources),
    Fdp(Fdp),
}

saved! { enum Interface { Nvme, Scsi, Fdp } }

#[derive(Clone, Debug)]
pub(crate) struct DataPlacement {
    /// Name of the interface in device files; `none` without one.
    pub(crate) name: &'static str,
    /// FTL stream of each host stream number.
    pub(crate) route: Vec<u16>,
    pub(crate) interface: Interface,
    pub(crate) tally: Tally,
    pub(crate) sizes: Sizes,
    /// `true` if the time that reclaim units stay open is limited; the first ends at `deadline`.
    pub(crate) is_limited: bool,
    pub(crate) deadline: Nanos,
}

saved! { DataPlacement { tally, interface } check reroute }

impl DataPlacement {
    /// Routes the restored streams. Returns `false` if the restored state is invalid.
    fn reroute(&mut self) -> bool {
        match &self.interface {
            Interface::None => true,
            Interface::Nvme(nvme) => nvme.resources.reroute(&mut self.route),
            Interface::Scsi(scsi) => scsi.reroute(&mut self.route),
            Interface::Fdp(fdp) => {
                self.deadline = fdp.limit.as_ref().map_or(Nanos::MAX, TimeLimit::deadline);
                true
            }
        }
    }

    pub(crate) fn new(config: &DeviceConfig) -> Self {
        let streams = config.ftl.streams;
        let (interface, route) = match &config.data_placement {
            None => (Interface::None, (0..streams).collect()),
            Some(section) => match section.interface {
                InterfaceKind::NvmeStreams => {
                    let interface = NvmeStreams::new(section.open_streams, section.overflow);
                    (Interface::Nvme(interface), all_closed())
                }
                InterfaceKind::ScsiStreams => {
                    (Interface::Scsi(Resources::new(section.open_streams)), all_closed())
                }
                InterfaceKind::NvmeFdp => {
                    let interface = Fdp::new(section, streams, config.ftl.gc_destination);
                    let route = interface.routes();
                    (Interface::Fdp(interface), route)
                }
            },
        };
        let is_limited = config.data_placement.as_ref().is_some_and(|p| p.time_limit.is_some());
        Self {
            name: config.data_placement.as_ref().map_or("none", |p| p.interface.name()),
            route,
            interface,
            tally: Tally::default(),
            sizes: Sizes::of(config),
            is_limited,
            deadline: Nanos::MAX,
        }
    }

    /// Returns the FTL stream of a write of `bytes` with stream number `number`.
    #[inline]
    pub(crate) fn route(&mut self, number: StreamId, bytes: u32, now: Nanos) -> StreamId {
        match self.route.get(number.index()) {
            Some(&stream) if stream != UNROUTED => StreamId(stream),
            _ => self.route_other(number.0, bytes, now),
        }
    }

    /// Counts the bytes that a write has placed in another reclaim group.
    pub(crate) fn note_elsewhere(&mut self, command: &Command, placed: Placed) {
        if placed.elsewhere_bytes > 0 {
            self.tally.overflow(command.stream.0, placed.elsewhere_bytes);
        }
    }

    #[cold]
    fn route_other(&mut self, number: u16, bytes: u32, now: Nanos) -> StreamId {
        let Self { route, interface, tally, .. } = self;
        let stream = match interface {
            Interface::None => {
                panic!("stream {number} is above the limit that the load was checked for")
            }
            Interface::Nvme(nvme) => nvme.route(route, number, tally),
            Interface::Scsi(scsi) => scsi.scsi_route(route, number, tally),
            Interface::Fdp(fdp) => {
                tally.overflow(number, bytes);
                return fdp.route_invalid(number, now);
            }
        };
        stream.unwrap_or_else(|| {
            tally.overflow(number, bytes);
            StreamId::DEFAULT
        })
    }
}

/// Routes of all identifiers while no stream is open; 0 is the default stream.
fn all_closed() -> Vec<u16> {
    let mut route = vec![UNROUTED; usize::from(u16::MAX) + 1];
    route[0] = 0;
    route
}
