//! Placement and location of data: the FTL with its front, and the flash with its timing.

use writecliff_base::{Lpn, Ppa, SLOT_BYTES, StreamId};
use writecliff_flash::geometry::FlashLocation;
use writecliff_ftl::frontier::FrontierId;
use writecliff_ftl::{ConfigError, FastForward, Ftl};
use writecliff_host_interface::{Cause, Command, Status};

use crate::attribution::Recorder;
use crate::backend::Backend;
use crate::config::DeviceConfig;
use crate::data_placement::{DataPlacement, Interface};
use crate::die::{FlashOperation, ReadFor, sense};
use crate::fill::FillId;
use crate::front::{Front, FrontFlash, Placed, SlcCache, Write, place_directly};
use crate::mechanisms::plane_reads::plane_mark;
use crate::mechanisms::{Access, each};

/// Program units per die in one burst of front work: enough to keep the die busy until the next
/// check, but few enough that a command does not wait long.
const BURST_UNITS: u32 = 4;

/// Location of slots fetched by one flash read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// Location in the FTL's flash, and the plane; `None` if a read takes all planes.
    Ftl(FlashLocation, Option<u32>),
    /// A unit of the front's own flash.
    Front(u32),
}

/// FTL, its front, the data placement interface, and the flash.
pub struct Storage<R> {
    pub(crate) ftl: Ftl,
    pub(crate) front: Front,
    pub(crate) backend: Backend<R>,
    pub(crate) data_placement: DataPlacement,
    pub(crate) unmapped_read_slots: u64,
    /// `true` if a read of a slot occupies its whole die, and the address alone determines the die.
    pub(crate) reads_slots_alone: bool,
}

impl<R: Recorder> Storage<R> {
    /// Creates the storage of a new drive. Gives `config` the geometry with the FTL's addresses.
    pub(crate) fn new(config: &mut DeviceConfig) -> Result<Self, ConfigError> {
        let mut ftl = Ftl::new(config.geometry.clone(), config.ftl.clone())?;
        config.geometry = ftl.geometry().clone();
        let data_placement = DataPlacement::new(config);
        if let Interface::Fdp(_) = data_placement.interface {
            ftl.gc_log_mut().listen(config.ftl.streams);
        }
        let front = Front::of(config);
        let reads_slots_alone = config.reads_slots_alone() && !front.stores_data();
        let backend = Backend::new(config);
        Ok(Self { ftl, front, backend, data_placement, unmapped_read_slots: 0, reads_slots_alone })
    }

    /// Returns the SLC cache; `None` if the front has none.
    pub fn log(&self) -> Option<&SlcCache> {
        self.front.log()
    }

    /// Returns the recorder of latency causes.
    pub fn recorder(&self) -> &R {
        &self.backend.recorder
    }

    /// Returns the FTL stream of a write with stream `number` now; `None` if it is invalid.
    pub fn routed(&self, number: u16) -> Option<StreamId> {
        let stream = self.data_placement.route.get(usize::from(number)).copied();
        stream.filter(|&stream| stream < self.ftl.config().streams).map(StreamId)
    }

    /// Returns the address that stores, or will store, a logical page's newest data. SLC cache
    /// addresses follow the addresses of the FTL's flash.
    pub fn location(&self, lpn: Lpn) -> Ppa {
        let in_front = self.front.log().map_or(Ppa::NONE, |log| log.location(lpn));
        if in_front.is_none() { self.ftl.lookup(lpn) } else { in_front }
    }

    /// Returns the number of erases of reclaim units and SLC cache blocks since the drive was new.
    pub fn erases(&self) -> u64 {
        self.ftl.wear().total() + self.front.log().map_or(0, SlcCache::erases)
    }

    /// Returns `true` if some data of a lost die have not been relocated yet.
    pub fn is_relocating(&self) -> bool {
        self.backend.mechanisms.die_parity.as_ref().is_some_and(|parity| parity.next.is_some())
    }

    /// Returns the number of bytes allocated by the FTL so far, for any reason.
    #[inline]
    pub(crate) fn main_write_bytes(&self) -> u64 {
        self.ftl.allocated().total().0
    }

    /// Returns the number of slots in partly filled units, which occupy the write buffer.
    pub(crate) fn filled(&self) -> u32 {
        let streams = 0..self.ftl.config().streams;
        streams.map(|s| self.ftl.filled(FrontierId(s))).sum::<u32>() + self.front.filled()
    }

    #[inline]
    pub(crate) fn route<'a>(&mut self, command: &'a Command) -> Write<'a> {
        let now = self.backend.now;
        let stream = self.data_placement.route(command.stream, command.length, now);
        debug_assert!(stream.0 < self.ftl.config().streams, "routed to no stream of the drive");
        Write { command, stream }
    }

    /// Places a write that no mechanism affects.
    #[inline(always)]
    pub(crate) fn place_plain(&mut self, command: &Command) {
        debug_assert!(self.front.is_direct() && self.backend.awaiting.is_none());
        self.backend.recorder.writing(command.tag);
        let write = self.route(command);
        place_directly(write, &mut self.ftl, &mut self.backend);
    }

    /// Places any write, including writes that mechanisms affect. `awaiting` is the command number
    /// if it completes only when its data are on flash; then call [`Self::await_placed`].
    pub(crate) fn place(&mut self, command: &Command, awaiting: Option<u16>) -> Placed {
        debug_assert!(self.backend.awaiting.is_none() && self.backend.awaited == 0);
        let is_limited = self.data_placement.is_limited;
        if is_limited && self.backend.now >= self.data_placement.deadline {
            self.end_old_units();
        }
        self.backend.recorder.writing(command.tag);
        self.backend.awaiting = awaiting;
        let write = self.route(command);
        let placed = self.front.place(write, &mut self.ftl, &mut self.backend);
        self.backend.awaiting = None;
        debug_assert!(awaiting.is_some() || self.backend.awaited == 0, "nobody awaits units");
        if is_limited {
            self.note_units();
        }
        self.data_placement.note_elsewhere(command, placed);
        placed
    }

    pub(crate) fn place_untimed(&mut self, command: &Command) {
        let write = self.route(command);
        let placed = self.front.place(write, &mut self.ftl, &mut FastForward);
        self.data_placement.note_elsewhere(command, placed);
    }

    /// Returns the number of units that the newly placed command waits for. Closes these units,
    /// unless `more` writes that may fill them are being transferred.
    pub(crate) fn await_placed(&mut self, number: u16, placed: Placed, more: bool) -> u32 {
        let units = std::mem::take(&mut self.backend.awaited);
        if placed.repeats_buffered {
            return units + self.await_all_units(number);
        }
        if !more {
            self.close_units(true);
        }
        units
    }

    /// Makes a command wait for all units with host data not on flash; returns their number.
    pub(crate) fn await_all_units(&mut self, number: u16) -> u32 {
        self.close_units(false);
        let outstanding: Vec<FillId> = self.backend.fills.outstanding().collect();
        let mut units = 0;
        for id in outstanding {
            let fill = self.backend.fills.get(id);
            if self.front.frontier() == Some(fill.frontier)
                || self.ftl.is_host_frontier(fill.frontier)
            {
                fill.waiting.push(number);
                units += 1;
            }
        }
        units
    }

    /// Programs the host's open units; if `waited_for`, only those for which a command waits.
    fn close_units(&mut self, waited_for: bool) {
        for stream in 0..self.ftl.config().streams {
            let frontier = FrontierId(stream);
            if waited_for {
                let fill = self.backend.fills.current(frontier);
                if self.backend.fills.get(fill).waiting.is_empty() {
                    continue;
                }
            } else if self.front.log().is_some_and(|log| !log.is_open(stream)) {
                continue;
            }
            self.ftl.pad(frontier, &mut self.backend);
        }
        if let Some(frontier) = self.front.frontier() {
            let fill = self.backend.fills.current(frontier);
            if !waited_for || !self.backend.fills.get(fill).waiting.is_empty() {
                self.front.pad(&mut self.backend);
            }
        }
        if !waited_for {
            self.front.flushed();
        }
    }

    /// Returns `true` if an erase waits for programs. Writes wait until the erase starts: the
    /// mapping must not run so far ahead of the flash that a power loss leaves no free unit.
    pub(crate) fn holds_writes(&mut self) -> bool {
        let is_held = !self.backend.held_erases.all.is_empty();
        if is_held {
            self.backend.recorder.writes_wait(self.backend.now, Cause::BufferOther);
        }
        is_held
    }

    /// Returns the number of slots that a write covers partially and that hold data.
    pub(crate) fn slots_to_merge(&self, write: &Access<'_>) -> u32 {
        let Access { command, first, slots, .. } = *write;
        let end = command.offset + u64::from(command.length);
        let last = Lpn(first.0 + slots - 1);
        let is_mapped = |lpn: Lpn| u32::from(!self.ftl.lookup(lpn).is_none());
        let head = if command.offset.is_multiple_of(SLOT_BYTES) { 0 } else { is_mapped(first) };
        let is_merged = head == 1 && slots == 1;
        let tail = if is_merged || end.is_multiple_of(SLOT_BYTES) { 0 } else { is_mapped(last) };
        head + tail
    }

    /// Returns the number of host slots in full units that the buffer still holds.
    pub(crate) fn unprogrammed(&self) -> u64 {
        let fills = &self.backend.fills;
        let of_host = fills.full_units().filter(|(frontier, _)| self.is_of_host(*frontier));
        of_host.map(|(_, unit)| u64::from(unit.data_slots - unit.moved_slots)).sum()
    }

    /// Deallocates the slots that a command fully covers, and calls `trimmed` for each of them.
    /// Returns the number of buffer slots that this frees.
    pub(crate) fn trim(&mut self, command: &Command, mut trimmed: impl FnMut(Lpn)) -> u32 {
        let first = command.offset.div_ceil(SLOT_BYTES);
        let end = (command.offset + u64::from(command.length)) / SLOT_BYTES;
        debug_assert!(end <= u64::from(self.ftl.user_slots()), "a deallocation leaves the drive");
        let mut is_recorded = R::KEEPS_UNWRITTEN;
        if R::KEEPS_UNWRITTEN {
            self.backend.recorder.writing(command.tag);
            let slots = end.saturating_sub(first) as u32;
            is_recorded = !self.backend.recorder.journals(Lpn(first as u32), slots);
        }
        for lpn in first..end {
            let lpn = Lpn(lpn as u32);
            if is_recorded {
                let before = self.location(lpn);
                self.backend.recorder.trimmed(lpn, before);
            }
            self.ftl.trim(lpn);
            trimmed(lpn);
        }
        if self.front.is_direct() {
            return 0;
        }
        (first..end).map(|lpn| self.front.trim(Lpn(lpn as u32))).sum()
    }

    /// Starts the flash reads of a host read; returns their number and the status of the read.
    pub(crate) fn read(&mut self, number: u16, first: Lpn, slots: u32) -> (u32, Status) {
        let lost_before = self.backend.mechanisms.lost_reads();
        let reads = if slots == 1 && self.reads_slots_alone {
            self.read_slot(number, first, true)
        } else {
            self.read_slots(number, first, slots)
        };
        debug_assert!(reads <= slots, "more flash reads than slots");
        let is_lost = self.backend.mechanisms.lost_reads() > lost_before;
        let outcome = if is_lost { Status::UnrecoveredRead } else { Status::Success };
        let parity = self.backend.mechanisms.die_parity.as_mut();
        (parity.map_or(reads, |parity| parity.awaited_reads(reads)), outcome)
    }

    /// Starts the read of one slot, with retries if `retries`. Returns 0 if it is not on flash.
    #[inline(always)]
    pub(crate) fn read_slot(&mut self, number: u16, lpn: Lpn, retries: bool) -> u32 {
        let ppa = self.ftl.lookup(lpn);
        if ppa.is_none() {
            self.unmapped_read_slots += 1;
            return 0;
        }
        debug_assert!(self.backend.geometry.is_plain, "see `reads_slots_alone`");
        let location = self.backend.geometry.locate_plain(ppa);
        if self.is_buffered(ppa, &location) {
            return 0;
        }
        let sense =
            if retries { self.backend.sense(&location, 1).0 } else { sense(location.page_type, 0) };
        let purpose = ReadFor::Host { command: number };
        let read = FlashOperation::Read { sense, slots: 1, purpose };
        self.backend.queue_read(location.die as usize, read);
        1
    }

    /// Starts the flash reads of slots, one read per run in a read group; returns their number.
    fn read_slots(&mut self, number: u16, first: Lpn, slots: u32) -> u32 {
        // Reads are counted in allocation units, which are slots unless data are reduced.
        let per_group = self.backend.geometry.slots_per_read_group;
        let per_group = self.ftl.config().alloc_units(per_group);
        let mut run: Option<(Source, u32)> = None;
        let mut reads = 0;
        for n in 0..slots {
            let lpn = Lpn(first.0 + n);
            let Some(source) = self.source(lpn) else { continue };
            let units = match source {
                Source::Ftl(..) => self.ftl.alloc_units_of(lpn),
                Source::Front(_) => 1,
            };
            match &mut run {
                Some((start, count)) if *start == source => {
                    *count = (*count + units).min(per_group);
                }
                _ => {
                    reads += self.read_run(number, run);
                    run = Some((source, units));
                }
            }
        }
        reads + self.read_run(number, run)
    }

    fn read_run(&mut self, number: u16, run: Option<(Source, u32)>) -> u32 {
        match run {
            None => return 0,
            Some((Source::Ftl(location, plane), units)) => {
                let slots = self.ftl.config().slots_of(units);
                self.read_page(number, &location, plane, slots);
            }
            Some((Source::Front(unit), slots)) => {
                let purpose = ReadFor::Host { command: number };
                let geometry = &self.backend.geometry;
                let (die, operation) = FrontFlash::read(geometry, unit, slots, purpose);
                self.backend.queue_read(die, operation);
            }
        }
        1
    }

    /// Returns the location that a slot must be read from; `None` if the slot is not on flash.
    fn source(&mut self, lpn: Lpn) -> Option<Source> {
        if let Some((unit, filling)) = self.front.find(lpn) {
            let buffered = filling || self.backend.front.is_in_flight(&self.backend.fills, unit);
            return (!buffered).then_some(Source::Front(unit));
        }
        let ppa = self.ftl.lookup(lpn);
        if ppa.is_none() {
            self.unmapped_read_slots += 1;
            return None;
        }
        let location = self.backend.geometry.locate(ppa);
        let geometry = &self.backend.geometry;
        let plane = self.backend.mechanisms.plane_reads.as_ref().map(|_| geometry.plane_of(ppa));
        (!self.is_buffered(ppa, &location)).then_some(Source::Ftl(location, plane))
    }

    /// Starts the flash read of slots of one page: of one plane, or of all for `None`.
    fn read_page(
        &mut self,
        command: u16,
        location: &FlashLocation,
        plane: Option<u32>,
        slots: u32,
    ) {
        let backend = &mut self.backend;
        if backend.mechanisms.die_parity.is_some() {
            each!(backend, [die_parity], m => m.read_for_host(backend, command, location, slots));
            return;
        }
        let (sense, _) = backend.sense(location, slots);
        let sense = sense | plane.map_or(0, plane_mark);
        let purpose = ReadFor::Host { command };
        let operation = FlashOperation::Read { sense, slots: slots as u8, purpose };
        backend.queue_read(location.die as usize, operation);
    }

    /// Returns `true` if the slot is still in the write buffer (its unit is not yet on flash).
    #[inline]
    pub(crate) fn is_buffered(&self, ppa: Ppa, location: &FlashLocation) -> bool {
        self.ftl.is_filling(ppa, location.reclaim_unit)
            || self.backend.fills.is_in_flight(location.reclaim_unit.index(), location.unit)
    }

    #[inline]
    pub(crate) fn is_of_host(&self, frontier: FrontierId) -> bool {
        self.ftl.is_host_frontier(frontier) || self.front.frontier() == Some(frontier)
    }

    #[inline]
    pub(crate) fn wants_idle_time(&self) -> bool {
        self.ftl.needs_background_gc() || self.front.wants_idle_time()
    }

    /// Folds or garbage-collects in idle time, about one read group per die. Uses up to `free`
    /// slots of the write buffer and returns the number used; `None` if no work remained.
    pub(crate) fn work_when_idle(&mut self, free: i64) -> Option<i64> {
        let geometry = &self.backend.geometry;
        let (dies, unit) = (geometry.dies, geometry.slots_per_program_unit);
        let burst = i64::from(BURST_UNITS * dies * unit).min(free);
        let used = self.front.idle_work(burst, &mut self.ftl, &mut self.backend);
        if used.is_some() {
            return used;
        }
        for _ in 0..dies {
            let sink = &mut self.front.sink(&mut self.backend);
            if !self.ftl.gc_in_background(sink) {
                return None;
            }
        }
        Some(0)
    }

    /// Derives the cell state from the restored wear.
    pub(crate) fn take_wear(&mut self) {
        if let Some(ecc) = &mut self.backend.mechanisms.ecc {
            ecc.take_wear(self.ftl.wear());
        }
    }

    /// Derives the cell state from the fast-forwarded commands.
    pub(crate) fn after_untimed(&mut self) {
        if let Some(ecc) = &mut self.backend.mechanisms.ecc {
            ecc.after_untimed(self.ftl.wear(), self.ftl.table(), self.backend.now);
        }
    }
}
