//! FTL front, which places the slots of host writes in both timed and fast-forwarded operation.
//!
//! Each drive has exactly one front. Most fronts pass data to the FTL unchanged. An SLC cache first
//! writes to its own log, data reduction packs data, and large indirection units complete them.

use std::ops::Range;

use writecliff_base::{Lpn, StreamId, saved};
use writecliff_flash::geometry::{FlashLocation, SLOT_BYTES};
use writecliff_ftl::frontier::FrontierId;
use writecliff_ftl::power_up::Unwritten;
use writecliff_ftl::{FastForward, FlashSink, Ftl};
use writecliff_host_interface::Command;

use crate::config::DeviceConfig;
use crate::mechanisms::indirection_units::LargeUnits;
use crate::mechanisms::{Medium, reclaim_groups, reduction};

pub(crate) use crate::mechanisms::slc_cache::{FrontFlash, InFront, SlcCache};

/// A host write, and the FTL stream that receives it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write<'a> {
    pub command: &'a Command,
    pub stream: StreamId,
}

impl Write<'_> {
    /// Returns the slots of the write if it fully covers all of them.
    #[inline]
    pub(crate) fn whole_slots(&self) -> Option<Range<u32>> {
        let Command { offset, length, .. } = *self.command;
        let (slot, length) = (u64::from(SLOT_BYTES), u64::from(length));
        let are_whole = (offset | length).is_multiple_of(slot);
        let first = (offset / slot) as u32;
        are_whole.then(|| first..first + (length / slot) as u32)
    }

    /// Returns the slots of the write, each with the number of bytes that the host writes to it.
    #[inline]
    pub(crate) fn slots(&self) -> impl Iterator<Item = (Lpn, u32)> + use<> {
        let Command { offset, length, .. } = *self.command;
        let end = offset + u64::from(length);
        let slot = u64::from(SLOT_BYTES);
        let are_whole = (offset | end).is_multiple_of(slot);
        ((offset / slot) as u32..end.div_ceil(slot) as u32).map(move |lpn| {
            let lpn = Lpn(lpn);
            (lpn, if are_whole { SLOT_BYTES } else { slot_overlap(lpn, offset, end) })
        })
    }
}

/// Returns the number of bytes of a slot that lie in `offset..end`.
#[inline]
pub(crate) fn slot_overlap(lpn: Lpn, offset: u64, end: u64) -> u32 {
    let start = u64::from(lpn.0) * u64::from(SLOT_BYTES);
    debug_assert!(start < end && offset < start + u64::from(SLOT_BYTES), "no slot of the range");
    (end.min(start + u64::from(SLOT_BYTES)) - offset.max(start)) as u32
}

/// Effects of a write beyond its own slots.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Placed {
    /// Slots that pass through the buffer beyond the command's; negative if some have left it.
    pub extra_slots: i64,
    /// `true` if data of the command equal data that are still in the buffer.
    pub repeats_buffered: bool,
    /// Bytes that went to another reclaim group because the stream's group was full.
    pub elsewhere_bytes: u32,
}

/// Receiver of a write's effects: the flash of the timed drive, or a sink without effects.
pub(crate) trait PlacementSink: FlashSink {
    /// `false` in fast-forward, where commands never wait and data are not buffered.
    const IS_TIMED: bool = false;

    /// Returns `true` if the command completes only when its data are on flash.
    #[inline]
    fn awaits(&self) -> bool {
        false
    }

    /// Makes the command wait for the unit that `frontier` is filling.
    #[inline]
    fn await_unit(&mut self, _frontier: FrontierId) {}

    /// Returns `true` if the program unit at a location is full but not on flash.
    #[inline]
    fn is_in_flight(&self, _location: &FlashLocation) -> bool {
        false
    }

    /// Reads slots of a unit of the SLC cache for the unit that `frontier` fills.
    fn read_slc_for(&mut self, _frontier: FrontierId, _unit: u32, _slots: u32) {}

    /// Programs a unit of the SLC cache with `data_slots` slots; `since` as in `ProgramUnit`.
    fn program_slc(&mut self, _unit: u32, _data_slots: u32, _since: u64) {}

    /// Erases a block of the SLC cache on all dies, once the data that replace it are on flash.
    fn erase_slc(&mut self, _block: u32) {}
}

impl PlacementSink for FastForward {}

/// Passes the slots of a write to the FTL unchanged.
#[inline(always)]
pub(crate) fn place_directly<S: PlacementSink>(write: Write<'_>, ftl: &mut Ftl, sink: &mut S) {
    // Whole slots, the most frequent case, have separate code where their size is a constant.
    let Some(lpns) = write.whole_slots() else {
        return place_in_part(write, ftl, sink);
    };
    for lpn in lpns.map(Lpn) {
        await_slot(write.stream, ftl, sink);
        ftl.write_inlined(lpn, write.stream, SLOT_BYTES, sink);
    }
}

/// Places a write that does not fill its first or last slot.
#[cold]
fn place_in_part<S: PlacementSink>(write: Write<'_>, ftl: &mut Ftl, sink: &mut S) {
    for (lpn, bytes) in write.slots() {
        await_slot(write.stream, ftl, sink);
        ftl.write(lpn, write.stream, bytes, sink);
    }
}

/// Lets the command wait for the unit of its next slot, if it completes when its data are on flash.
#[inline]
fn await_slot<S: PlacementSink>(stream: StreamId, ftl: &mut Ftl, sink: &mut S) {
    if sink.awaits() {
        let frontier = ftl.host_frontier(stream);
        ftl.prepare(frontier, sink);
        sink.await_unit(frontier);
    }
}

#[derive(Debug)]
pub(crate) enum Front {
    /// No mechanism of the drive places data.
    Direct,
    Logged(Box<SlcCache>),
    /// Passes reduced data to the FTL.
    Reduced,
    LargeUnits(LargeUnits),
    /// Passes data to the FTL stream of their reclaim group.
    Grouped,
}

saved! { enum Front { Logged, LargeUnits } }

/// Returns the timing of the front's own flash; `None` if it has none.
pub(crate) fn medium(config: &DeviceConfig) -> Option<Medium> {
    let slc = config.sections.slc_cache?;
    Some(Medium { read: slc.read, program: slc.program })
}

impl Front {
    pub(crate) fn of(config: &DeviceConfig) -> Self {
        if let Some(cache) = SlcCache::of(config) {
            Self::Logged(cache)
        } else if config.ftl.reduction.is_some() {
            Self::Reduced
        } else if config.indirection_slots > 1 {
            Self::LargeUnits(LargeUnits::new(config))
        } else if config.geometry.reclaim_groups > 1 {
            Self::Grouped
        } else {
            Self::Direct
        }
    }

    /// Returns `true` if the FTL receives data unchanged.
    pub(crate) fn is_direct(&self) -> bool {
        matches!(self, Self::Direct)
    }

    /// Returns `true` if the front may have newer data than the FTL.
    pub(crate) fn stores_data(&self) -> bool {
        matches!(self, Self::Logged(_) | Self::LargeUnits(_))
    }

    /// Returns the SLC cache, the only front with its own flash.
    pub(crate) fn log(&self) -> Option<&SlcCache> {
        if let Self::Logged(log) = self { Some(log) } else { None }
    }

    pub(crate) fn log_mut(&mut self) -> Option<&mut SlcCache> {
        if let Self::Logged(log) = self { Some(log) } else { None }
    }

    /// Returns the frontier of the front's own flash.
    pub(crate) fn frontier(&self) -> Option<FrontierId> {
        self.log().map(|log| log.frontier)
    }

    pub(crate) fn place<S: PlacementSink>(
        &mut self,
        write: Write<'_>,
        ftl: &mut Ftl,
        sink: &mut S,
    ) -> Placed {
        match self {
            Self::Direct => place_directly(write, ftl, sink),
            Self::Logged(log) => return log.place(write, ftl, sink),
            Self::Reduced => return reduction::place(write, ftl, sink),
            Self::LargeUnits(units) => return units.place(write, ftl, sink),
            Self::Grouped => return reclaim_groups::place(write, ftl, sink),
        }
        Placed::default()
    }

    /// Returns the sink for the FTL's own work, for example garbage collection.
    pub(crate) fn sink<'a, S>(&'a mut self, sink: &'a mut S) -> InFront<'a, S> {
        InFront::of(self.log_mut(), sink)
    }

    /// Returns the front's unit with the newest data of a logical page, and `true` if the data are
    /// still in the buffer; `None` if the FTL has the newest data.
    pub(crate) fn find(&self, lpn: Lpn) -> Option<(u32, bool)> {
        match self {
            Self::Logged(log) => log.find(lpn),
            Self::LargeUnits(units) => units.find(lpn),
            _ => None,
        }
    }

    /// Discards the data of a deallocated page; returns the buffer slots that this frees.
    pub(crate) fn trim(&mut self, lpn: Lpn) -> u32 {
        match self {
            Self::Logged(log) => log.trim(lpn),
            Self::LargeUnits(units) => return units.trim(lpn),
            _ => {}
        }
        0
    }

    /// Discards all data and returns the number of blocks per plane to erase.
    pub(crate) fn purge(&mut self) -> u64 {
        match self {
            Self::Logged(log) => return log.purge(),
            Self::LargeUnits(units) => units.purge(),
            _ => {}
        }
        0
    }

    /// Returns the number of bytes written by the host; `of_ftl` is the FTL's count.
    pub(crate) fn host_bytes(&self, of_ftl: u64) -> u64 {
        match self {
            Self::Logged(log) => log.host_bytes(of_ftl),
            Self::LargeUnits(units) => of_ftl + units.unpassed_bytes(),
            _ => of_ftl,
        }
    }

    /// Returns the number of slots that the front holds in the buffer: slots in the partly filled
    /// unit of its own flash, or in units that wait for further data.
    pub(crate) fn filled(&self) -> u32 {
        match self {
            Self::Logged(log) => log.filled(),
            Self::LargeUnits(units) => units.filled,
            _ => 0,
        }
    }

    /// Returns the number of these slots that a power cut programs, and no earlier cut has.
    pub(crate) fn take_unsaved(&mut self) -> u32 {
        match self {
            Self::LargeUnits(units) => units.take_unsaved(),
            _ => self.filled(),
        }
    }

    /// Closes the unit of the front's own flash that is being filled.
    pub(crate) fn pad<S: PlacementSink>(&mut self, sink: &mut S) {
        if let Self::Logged(log) = self {
            log.pad(sink);
        }
    }

    /// Records that a flush has closed all units.
    pub(crate) fn flushed(&mut self) {
        if let Self::Logged(log) = self {
            log.direct = 0;
        }
    }

    pub(crate) fn wants_idle_time(&self) -> bool {
        match self {
            Self::Logged(log) => log.wants_idle_time(),
            Self::LargeUnits(units) => units.wants_idle_time(),
            _ => false,
        }
    }

    /// Does background work on at most `burst` slots that pass through the buffer. Returns the
    /// number of these slots; `None` if no work remained.
    pub(crate) fn idle_work<S: PlacementSink>(
        &mut self,
        burst: i64,
        ftl: &mut Ftl,
        sink: &mut S,
    ) -> Option<i64> {
        match self {
            Self::Logged(log) => log.idle_work(burst, ftl, sink),
            Self::LargeUnits(units) => units.idle_work(burst, ftl, sink),
            _ => None,
        }
    }

    pub(crate) fn check(&self, ftl: &Ftl) -> Result<(), String> {
        match self {
            Self::Logged(log) => log.check_invariants(ftl),
            Self::LargeUnits(units) => units.check(),
            _ => Ok(()),
        }
    }

    /// Maps a logical page to its address before a change that a power loss has undone.
    pub(crate) fn return_to(&mut self, change: &Unwritten, ftl: &mut Ftl) {
        match self {
            Self::Logged(log) => log.return_to(change, ftl),
            _ => ftl.return_to(change.lpn, change.before),
        }
    }
}
