//! FTL front, which places the slots of host writes in both timed and fast-forwarded operation.
//!
//! Each drive has exactly one front. Most fronts pass data to the FTL unchanged. An SLC cache first
//! writes the data to its own log, data reduction packs them, and large indirection units complete
//! them.

use std::ops::Range;

use writecliff_base::{Lpn, Ppa, StreamId, saved};
use writecliff_flash::geometry::{FlashLocation, SLOT_BYTES};
use writecliff_ftl::frontier::FrontierId;
use writecliff_ftl::power_up::Unwritten;
use writecliff_ftl::{FastForward, Ftl};
use writecliff_host_interface::Command;

use crate::config::DeviceConfig;
use crate::mechanisms::MechanismSection;
use crate::mechanisms::Medium;
use crate::mechanisms::indirection_units::LargeUnits;
use crate::mechanisms::reclaim_groups::Grouped;
use crate::mechanisms::reduction::Reduced;
use crate::mechanisms::slc_cache::InFront;
pub(crate) use crate::mechanisms::slc_cache::{FrontFlash, LogSink, SlcCache, block_slots};

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

    /// Returns the slots of the write, each with the number of bytes that the host writes to the
    /// slot.
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
    /// Number of slots that pass through the buffer in addition to the command's slots; negative if
    /// some of the command's slots have left the buffer.
    pub extra_slots: i64,
    /// `true` if data of the command equal data that are still in the buffer.
    pub repeats_buffered: bool,
    /// Bytes that went to another reclaim group because the stream's group was full.
    pub elsewhere_bytes: u32,
}

/// Receiver of a write's effects: the flash of the timed drive, or a sink without effects.
pub(crate) trait PlacementSink: LogSink {
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
}

impl PlacementSink for FastForward {}

/// Front of an FTL. The default methods suit a front that does not store data itself.
pub(crate) trait Front {
    /// Places the slots of a write.
    fn place<S: PlacementSink>(&mut self, write: Write<'_>, ftl: &mut Ftl, sink: &mut S) -> Placed;

    /// Returns the sink for the FTL's own work, for example garbage collection.
    fn sink<'a, S>(&'a mut self, sink: &'a mut S) -> InFront<'a, S> {
        InFront::direct(sink)
    }

    /// Returns the front's address of a logical page; `Ppa::NONE` if the FTL has the page's newest
    /// data.
    fn location(&self, _lpn: Lpn) -> Ppa {
        Ppa::NONE
    }

    /// Returns the front's unit with the newest data of a logical page, and `true` if the data are
    /// still in the buffer; `None` if the FTL has the newest data.
    fn find(&self, _lpn: Lpn) -> Option<(u32, bool)> {
        None
    }

    /// Discards the data of a deallocated logical page. Returns the number of buffer slots that
    /// this frees.
    fn trim(&mut self, _lpn: Lpn) -> u32 {
        0
    }

    /// Discards all data and returns the number of blocks per plane to erase.
    fn purge(&mut self) -> u64 {
        0
    }

    /// Returns the number of slots that the front has programmed in its own flash since the drive
    /// was new.
    fn programmed_slots(&self) -> u64 {
        0
    }

    /// Returns the number of erases of the front's own blocks, each on all dies, since the drive
    /// was new.
    fn erases(&self) -> u64 {
        0
    }

    /// Returns the number of slots that the front passed to the FTL after the host's write
    /// completed.
    fn folded_slots(&self) -> u64 {
        0
    }

    /// Returns the number of bytes written by the host; `of_ftl` is the FTL's count.
    fn host_bytes(&self, of_ftl: u64) -> u64 {
        of_ftl
    }

    /// Returns the frontier of the front's own flash.
    fn frontier(&self) -> Option<FrontierId> {
        None
    }

    /// Returns the number of slots that the front holds in the buffer: slots in the partly filled
    /// unit of its own flash, or in units that wait for further data.
    fn filled(&self) -> u32 {
        0
    }

    /// Returns the number of these slots that a power cut programs, which excludes slots that an
    /// earlier cut has programmed.
    fn take_unsaved(&mut self) -> u32 {
        self.filled()
    }

    /// Closes the unit of the front's own flash that is being filled.
    fn pad<S: LogSink>(&mut self, _sink: &mut S) {}

    /// Returns `true` if a flush must close the unit of a stream because the unit may hold data
    /// that the host has written since the last flush.
    fn is_open(&self, _stream: u16) -> bool {
        true
    }

    /// Records that a flush has closed all units.
    fn flushed(&mut self) {}

    /// Returns `true` if there is work to do while the host is idle.
    fn wants_idle_time(&self) -> bool {
        false
    }

    /// Does background work on at most `burst` slots that pass through the buffer. Returns the
    /// number of these slots; `None` if no work remained.
    fn idle_work<S: LogSink>(&mut self, _burst: i64, _ftl: &mut Ftl, _sink: &mut S) -> Option<i64> {
        None
    }

    /// Checks the front's invariants and returns the first violated invariant.
    fn check(&self, _ftl: &Ftl) -> Result<(), String> {
        Ok(())
    }

    /// Returns the number of written units in the front's open block.
    fn units_in_open_block(&self) -> u64 {
        0
    }

    /// Undoes the last `count` erases, which had not started when the power failed.
    fn unerase(&mut self, _count: u64) {}

    /// Maps a logical page to its address before a change that a power loss has undone.
    fn return_to(&mut self, change: &Unwritten, ftl: &mut Ftl) {
        ftl.return_to(change.lpn, change.before);
    }

    /// Continues after a power loss; `waiting` are the full units of the front's own flash that
    /// were not programmed.
    fn power_up(&mut self, _waiting: Vec<u32>) {}
}

/// Front of a drive without a mechanism that places data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Direct;

impl Front for Direct {
    #[expect(clippy::inline_always)]
    #[inline(always)]
    fn place<S: PlacementSink>(&mut self, write: Write<'_>, ftl: &mut Ftl, sink: &mut S) -> Placed {
        // Whole slots are the most frequent case and have separate code, in which the slot size is
        // a constant.
        let Some(lpns) = write.whole_slots() else {
            Self::place_in_part(write, ftl, sink);
            return Placed::default();
        };
        for lpn in lpns.map(Lpn) {
            Self::await_slot(write.stream, ftl, sink);
            ftl.write_inlined(lpn, write.stream, SLOT_BYTES, sink);
        }
        Placed::default()
    }
}

impl Direct {
    /// Places a write that does not fill its first or last slot.
    #[cold]
    fn place_in_part<S: PlacementSink>(write: Write<'_>, ftl: &mut Ftl, sink: &mut S) {
        for (lpn, bytes) in write.slots() {
            Self::await_slot(write.stream, ftl, sink);
            ftl.write(lpn, write.stream, bytes, sink);
        }
    }

    /// Makes the command wait for the unit of its next slot if it completes when its data are on
    /// flash.
    #[inline]
    fn await_slot<S: PlacementSink>(stream: StreamId, ftl: &mut Ftl, sink: &mut S) {
        if sink.awaits() {
            let frontier = ftl.host_frontier(stream);
            ftl.prepare(frontier, sink);
            sink.await_unit(frontier);
        }
    }
}

/// Front of any drive.
#[derive(Debug)]
pub(crate) enum AnyFront {
    Direct(Direct),
    Logged(Box<SlcCache>),
    Reduced(Reduced),
    LargeUnits(LargeUnits),
    Grouped(Grouped),
}

saved! { enum AnyFront { Logged, LargeUnits } }

/// Returns the timing of the front's own flash; `None` if it has none.
pub(crate) fn medium(config: &DeviceConfig) -> Option<Medium> {
    let slc = config.sections.slc_cache?;
    Some(Medium { read: slc.read, program: slc.program })
}

/// Returns the number of addresses of the front's own flash; `None` if it has none.
pub(crate) fn own_slots(config: &DeviceConfig) -> Option<u64> {
    config.sections.slc_cache.as_ref().map(MechanismSection::addresses)
}

/// Returns the frontier of the front's own flash, numbered after the FTL's frontiers.
pub(crate) fn own_frontier(config: &DeviceConfig) -> FrontierId {
    FrontierId(2 * config.ftl.streams)
}

/// Applies an expression to the front, regardless of its type.
macro_rules! any {
    ($front:expr, $name:ident => $value:expr) => {
        match $front {
            AnyFront::Direct($name) => $value,
            AnyFront::Logged($name) => $value,
            AnyFront::Reduced($name) => $value,
            AnyFront::LargeUnits($name) => $value,
            AnyFront::Grouped($name) => $value,
        }
    };
}

/// Forwards methods to the front, regardless of its type.
macro_rules! forward {
    ($(fn $name:ident(&self $(, $arg:ident: $type:ty)*) -> $result:ty;)*) => {$(
        fn $name(&self $(, $arg: $type)*) -> $result {
            any!(self, front => front.$name($($arg),*))
        }
    )*};
    ($(fn $name:ident(&mut self $(, $arg:ident: $type:ty)*) -> $result:ty;)*) => {$(
        fn $name(&mut self $(, $arg: $type)*) -> $result {
            any!(self, front => front.$name($($arg),*))
        }
    )*};
}

impl AnyFront {
    pub(crate) fn of(config: &DeviceConfig) -> Self {
        if let Some(cache) = SlcCache::of(config) {
            Self::Logged(cache)
        } else if config.ftl.reduction.is_some() {
            Self::Reduced(Reduced)
        } else if config.indirection_slots > 1 {
            Self::LargeUnits(LargeUnits::new(config))
        } else if config.geometry.reclaim_groups > 1 {
            Self::Grouped(Grouped)
        } else {
            Self::Direct(Direct)
        }
    }

    /// Returns `true` if the FTL receives data unchanged.
    pub(crate) fn is_direct(&self) -> bool {
        matches!(self, Self::Direct(_))
    }

    /// Returns `true` if the front may have newer data than the FTL.
    pub(crate) fn stores_data(&self) -> bool {
        matches!(self, Self::Logged(_) | Self::LargeUnits(_))
    }

    pub(crate) fn log(&self) -> Option<&SlcCache> {
        if let Self::Logged(log) = self { Some(log) } else { None }
    }
}

impl Front for AnyFront {
    fn place<S: PlacementSink>(&mut self, write: Write<'_>, ftl: &mut Ftl, sink: &mut S) -> Placed {
        any!(self, front => front.place(write, ftl, sink))
    }

    fn sink<'a, S>(&'a mut self, sink: &'a mut S) -> InFront<'a, S> {
        any!(self, front => front.sink(sink))
    }

    fn pad<S: LogSink>(&mut self, sink: &mut S) {
        any!(self, front => front.pad(sink));
    }

    fn idle_work<S: LogSink>(&mut self, burst: i64, ftl: &mut Ftl, sink: &mut S) -> Option<i64> {
        any!(self, front => front.idle_work(burst, ftl, sink))
    }

    forward! {
        fn location(&self, lpn: Lpn) -> Ppa;
        fn find(&self, lpn: Lpn) -> Option<(u32, bool)>;
        fn programmed_slots(&self) -> u64;
        fn erases(&self) -> u64;
        fn folded_slots(&self) -> u64;
        fn host_bytes(&self, of_ftl: u64) -> u64;
        fn frontier(&self) -> Option<FrontierId>;
        fn filled(&self) -> u32;
        fn is_open(&self, stream: u16) -> bool;
        fn wants_idle_time(&self) -> bool;
        fn check(&self, ftl: &Ftl) -> Result<(), String>;
        fn units_in_open_block(&self) -> u64;
    }

    forward! {
        fn trim(&mut self, lpn: Lpn) -> u32;
        fn take_unsaved(&mut self) -> u32;
        fn purge(&mut self) -> u64;
        fn flushed(&mut self) -> ();
        fn unerase(&mut self, count: u64) -> ();
        fn return_to(&mut self, change: &Unwritten, ftl: &mut Ftl) -> ();
        fn power_up(&mut self, waiting: Vec<u32>) -> ();
    }
}
