//! Processing of commands: writes through the buffer to the FTL, reads from flash, flushes, TRIMs.

use writecliff_base::{Lpn, Nanos, Ppa};
use writecliff_flash::geometry::{FlashLocation, SLOT_BYTES};
use writecliff_ftl::bad_blocks::BadBlocks;
use writecliff_ftl::frontier::FrontierId;
use writecliff_host_interface::{Cause, Command, Completion, Operation, Status};

use super::Ssd;
use crate::attribution::Recorder;
use crate::backend::{HostData, Outcome};
use crate::command::InFlight;
use crate::die::ReadFor;
use crate::event::{Lane, SsdEvent};
use crate::fill::FillId;
use crate::front::{AnyFront, Direct, Front, FrontFlash, Placed};
use crate::mechanisms::{Access, FlashMechanisms, MappedSlots, Mechanisms, PageRead};

/// Location of slots that one flash read fetches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// With its plane.
    Ftl(FlashLocation, u32),
    /// A unit of the front's own flash.
    Front(u32),
}

impl<R: Recorder> Ssd<R> {
    /// Starts the data transfer of waiting writes while the buffer has space.
    #[inline]
    pub(crate) fn admit_writes(&mut self) {
        while let Some(&(number, ready)) = self.write_waiting.front() {
            let (slots, length) = {
                let c = self.commands.get(number);
                (c.slots, c.command.length)
            };
            if !self.admits_write(slots) {
                return;
            }
            self.write_waiting.pop_front();
            self.admit(number, slots, length, ready);
        }
    }

    /// Returns `true` if the next write may be transferred now; otherwise records that it waits.
    #[expect(clippy::inline_always)]
    #[inline(always)]
    pub(crate) fn admits_write(&mut self, slots: u32) -> bool {
        if self.steps.admission && (Mechanisms::holds_writes(self) || self.erase_is_held()) {
            return false;
        }
        // A command larger than what is assured need not wait for more.
        let has_space = self.buffer_free >= i64::from(slots).min(self.buffer_assured);
        if !has_space {
            self.backend.recorder.writes_wait(self.backend.now, Cause::BufferOther);
        }
        has_space
    }

    /// Starts the data transfer of a write that firmware has processed at `ready`.
    #[expect(clippy::inline_always)]
    #[inline(always)]
    pub(crate) fn admit(&mut self, number: u16, slots: u32, length: u32, ready: Nanos) {
        self.buffer_free -= i64::from(slots);
        self.writes_in_transfer += 1;
        if self.barrier.is_some() {
            self.pass_barrier();
        }
        let received = self.frontend.receive(ready.max(self.backend.now), length);
        let at = received + self.mechanisms.command_delay();
        self.backend.recorder.admitted(number, self.backend.now);
        self.backend.recorder.spent(number, Cause::Link, received);
        self.backend.recorder.spent(number, Cause::Housekeeping, at);
        self.backend.queue.push(Lane::Arrived, at, SsdEvent::WriteArrived { command: number });
    }

    /// Returns `true` if an erase waits for programs. Writes wait until it starts: the mapping must
    /// not run so far ahead of the flash that a loss of power leaves no unit free.
    fn erase_is_held(&mut self) -> bool {
        let is_held = !self.backend.held_erases.is_empty();
        if is_held {
            self.backend.recorder.writes_wait(self.backend.now, Cause::BufferOther);
        }
        is_held
    }

    pub(crate) fn arrived(&mut self, number: u16) -> Option<Completion> {
        let command = self.commands.get(number).command;
        match command.operation {
            Operation::Write => {
                self.writes_in_transfer -= 1;
                let completes = if self.steps.writes || self.steps.mapping {
                    self.write_otherwise(number)
                } else {
                    self.write_plain(number, &command)
                };
                completes.then(|| self.complete(number))
            }
            Operation::Trim => {
                self.trim(&command);
                Some(self.complete(number))
            }
            Operation::Flush => self.flush(number),
            Operation::Read => unreachable!("reads do not transfer data to the drive"),
        }
    }

    /// Writes data in whose placement mechanisms take part. Returns whether the command may
    /// complete.
    #[cold]
    fn write_otherwise(&mut self, number: u16) -> bool {
        let in_flight = *self.commands.get(number);
        let (first, InFlight { command, slots, .. }) = (in_flight.first(), in_flight);
        let command = &command;
        let write = &Access { command, first, slots, is_timed: true };
        if self.is_refused() {
            self.commands.get(number).status = Status::WriteProtected;
            self.buffer_free += i64::from(slots);
            self.admit_writes();
            return true;
        }
        Mechanisms::before_write(self, write);
        let before = (self.ftl.counters().moved_slots(), self.front.folded_slots());
        let merged = self.slots_to_merge(write);
        let is_limited = self.data_placement.is_limited;
        if is_limited && self.backend.now >= self.data_placement.deadline {
            self.data_placement.end_old_units(&mut self.ftl, &mut self.backend);
        }
        let placed = self.place(number, command);
        if is_limited {
            self.data_placement.note_units(&self.ftl, self.backend.now);
        }
        let completes = self.settle(number, command, placed);
        // In a unit that the drive completes, all slots are mapped.
        let more = if let AnyFront::LargeUnits(_) = self.front { placed.extra_slots } else { 0 };
        let mapped = MappedSlots {
            host: slots + more as u32,
            moved: self.ftl.counters().moved_slots() - before.0,
            merged,
            folded: self.front.folded_slots() - before.1,
            suspensions: self.backend.suspensions.as_mut().map_or(0, std::mem::take),
        };
        self.mechanisms.after_write(self.backend.now, &mapped);
        completes
    }

    /// Returns `true` if a read-only drive rejects a write, and counts it.
    pub(crate) fn is_refused(&mut self) -> bool {
        let is_refused = self.ftl.is_read_only();
        if is_refused {
            self.ftl.bad_blocks_mut().into_iter().for_each(BadBlocks::refused);
        }
        is_refused
    }

    /// Slots of a write that it covers in part and that hold data.
    fn slots_to_merge(&self, write: &Access<'_>) -> u32 {
        let Access { command, first, slots, .. } = *write;
        let slot = u64::from(SLOT_BYTES);
        let end = command.offset + u64::from(command.length);
        let last = Lpn(first.0 + slots - 1);
        let is_mapped = |lpn: Lpn| u32::from(!self.ftl.lookup(lpn).is_none());
        let head = if command.offset.is_multiple_of(slot) { 0 } else { is_mapped(first) };
        let is_one = head == 1 && slots == 1;
        let tail = if is_one || end.is_multiple_of(slot) { 0 } else { is_mapped(last) };
        head + tail
    }

    /// Writes data whose placement no mechanism affects. Returns `true` if the command may
    /// complete.
    #[expect(clippy::inline_always)]
    #[inline(always)]
    fn write_plain(&mut self, number: u16, command: &Command) -> bool {
        if self.write_cache || self.config.controller.power_loss_protection {
            self.backend.recorder.writing(command.tag);
            let write = self.routed_write(command);
            Direct.place(write, &mut self.ftl, &mut self.backend);
            return true;
        }
        let placed = self.place(number, command);
        self.settle(number, command, placed)
    }

    /// Passes a write to the front. Commands whose data are not durable in the buffer wait for
    /// their units.
    fn place(&mut self, number: u16, command: &Command) -> Placed {
        self.backend.recorder.writing(command.tag);
        let durable = self.write_cache || self.config.controller.power_loss_protection;
        self.backend.awaiting = (!durable).then_some(number);
        let write = self.routed_write(command);
        match &mut self.front {
            AnyFront::Direct(front) => front.place(write, &mut self.ftl, &mut self.backend),
            front => front.place(write, &mut self.ftl, &mut self.backend),
        }
    }

    /// Accounts for the effects of a write on the buffer, and for the units that it waits for.
    /// Returns `true` if the command may complete.
    fn settle(&mut self, number: u16, command: &Command, placed: Placed) -> bool {
        self.buffer_free -= placed.extra_slots;
        self.note_elsewhere(command, placed);
        let waits = self.backend.awaiting.take().is_some();
        if waits {
            self.commands.get(number).pending += std::mem::take(&mut self.backend.awaited);
            if placed.repeats_buffered {
                self.wait_for_all_units(number);
            } else if self.writes_in_transfer == 0 {
                self.close_units(true);
            }
        }
        if let AnyFront::Reduced(_) = self.front {
            self.admit_writes();
        }
        !waits || self.commands.get(number).pending == 0
    }

    /// Pads and programs the open units of the host's frontiers; with `waited_for`, only those for
    /// which a command waits.
    pub(crate) fn close_units(&mut self, waited_for: bool) {
        for stream in 0..self.config.ftl.streams {
            let frontier = FrontierId(stream);
            if waited_for {
                let fill = self.backend.fills.current(frontier);
                if self.backend.fills.get(fill).waiting.is_empty() {
                    continue;
                }
            } else if !self.front.is_open(stream) {
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

    fn flush(&mut self, number: u16) -> Option<Completion> {
        // The mapping is journaled too, so that deallocations survive.
        self.backend.recorder.journaled();
        if self.config.controller.power_loss_protection || !self.write_cache {
            return Some(self.complete(number));
        }
        self.wait_for_all_units(number);
        (self.commands.get(number).pending == 0).then(|| self.complete(number))
    }

    /// The command completes when all that the host has written is on flash.
    pub(crate) fn wait_for_all_units(&mut self, number: u16) {
        self.close_units(false);
        let outstanding: Vec<FillId> = self.backend.fills.outstanding().collect();
        for id in outstanding {
            let fill = self.backend.fills.get(id);
            let in_front = self.front.frontier() == Some(fill.frontier);
            if in_front || self.ftl.is_host_frontier(fill.frontier) {
                fill.waiting.push(number);
                self.commands.get(number).pending += 1;
            }
        }
    }

    pub(crate) fn trim(&mut self, command: &Command) {
        let slot = u64::from(SLOT_BYTES);
        let first = command.offset.div_ceil(slot);
        let end = (command.offset + u64::from(command.length)) / slot;
        let mut is_told = R::KEEPS_UNWRITTEN;
        if R::KEEPS_UNWRITTEN {
            self.backend.recorder.writing(command.tag);
            let slots = end.saturating_sub(first) as u32;
            is_told = !self.backend.recorder.journals(Lpn(first as u32), slots);
        }
        for lpn in first..end {
            let lpn = Lpn(lpn as u32);
            if is_told {
                let before = self.location(lpn);
                self.backend.recorder.trimmed(lpn, before);
            }
            self.ftl.trim(lpn);
            self.mechanisms.trimmed(lpn);
        }
        if !self.front.is_direct() {
            (first..end).for_each(|lpn| self.front.trim(Lpn(lpn as u32)));
        }
    }

    /// Starts the flash reads of a command, one for each run of slots in a read group.
    #[expect(clippy::inline_always)]
    #[inline(always)]
    pub(crate) fn read(&mut self, number: u16) {
        let c = self.commands.get(number);
        let (first, length, slots) = (c.first(), c.command.length, c.slots);
        self.host_read_bytes += u64::from(length);
        if self.steps.reads || slots > 1 {
            return self.read_among_mechanisms(number);
        }
        let reads = self.read_slot(number, first);
        self.begin_reads(number, length, reads);
    }

    /// Starts the flash reads of a command unless a mechanism holds it.
    #[inline(never)]
    fn read_among_mechanisms(&mut self, number: u16) {
        let in_flight = *self.commands.get(number);
        let (first, InFlight { command, slots, .. }) = (in_flight.first(), in_flight);
        let read = Access { command: &command, first, slots, is_timed: true };
        if !Mechanisms::holds_read(self, number, &read) {
            self.read_held(number);
        }
    }

    /// Starts the flash reads of a command that no mechanism holds any more.
    pub(crate) fn read_held(&mut self, number: u16) {
        let in_flight = *self.commands.get(number);
        let (first, InFlight { command, slots, .. }) = (in_flight.first(), in_flight);
        let read = Access { command: &command, first, slots, is_timed: true };
        let reads = self.read_otherwise(number, &read);
        self.begin_reads(number, command.length, reads);
    }

    /// Records the number of flash reads that a command waits for; without any, its data leave at
    /// once.
    #[expect(clippy::inline_always)]
    #[inline(always)]
    fn begin_reads(&mut self, number: u16, length: u32, reads: u32) {
        self.commands.get(number).pending = reads;
        if reads == 0 {
            let at = self.frontend.send(self.backend.now, length, true);
            self.backend.recorder.spent(number, Cause::Link, at);
            self.backend.queue.push(Lane::Completed, at, SsdEvent::Completed { command: number });
        }
    }

    fn read_otherwise(&mut self, number: u16, read: &Access<'_>) -> u32 {
        let lost_before = self.backend.mechanisms.lost_reads();
        let reads = match read.slots {
            1 if self.config.reads_slots_alone() && self.front.log().is_none() => {
                self.read_slot(number, read.first)
            }
            slots => self.read_slots(number, read.first, slots),
        };
        let is_lost = self.backend.mechanisms.lost_reads() > lost_before;
        let outcome = if is_lost { Status::UnrecoveredRead } else { Status::Success };
        self.commands.get(number).status = self.mechanisms.read(read, outcome);
        self.backend.mechanisms.awaited_reads(reads)
    }

    /// Starts the read of one slot; returns the number of flash reads, 0 if the slot is not on
    /// flash.
    #[expect(clippy::inline_always)]
    #[inline(always)]
    fn read_slot(&mut self, number: u16, lpn: Lpn) -> u32 {
        let ppa = self.ftl.lookup(lpn);
        if ppa.is_none() {
            self.unmapped_read_slots += 1;
            return 0;
        }
        let location = self.config.geometry.locate_plain(ppa);
        if self.is_buffered(ppa, &location) {
            return 0;
        }
        self.backend.host_read_slot(number, location);
        1
    }

    /// Starts the flash reads of slots, one per run in a read group; returns their number.
    fn read_slots(&mut self, number: u16, first: Lpn, slots: u32) -> u32 {
        // Reads are counted in allocation units: slots, unless data are reduced.
        let per_group = self.config.ftl.alloc_units(self.config.geometry.slots_per_read_group);
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
                let slots = self.config.ftl.slots_of(units);
                let read = PageRead { location, plane, slots };
                FlashMechanisms::host_read(&mut self.backend, number, &read);
            }
            Some((Source::Front(unit), slots)) => {
                let purpose = ReadFor::Host { command: number };
                let geometry = &self.config.geometry;
                let (die, operation) = FrontFlash::read(geometry, unit, slots, purpose);
                self.backend.queue_read(die, operation);
            }
        }
        1
    }

    /// Returns the location from which a slot must be read; `None` if it is not on flash.
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
        let location = self.config.geometry.locate(ppa);
        let plane = self.backend.mechanisms.plane_of(&self.config.geometry, ppa);
        (!self.is_buffered(ppa, &location)).then_some(Source::Ftl(location, plane))
    }

    /// Returns `true` if the slot is still in the write buffer (its unit is not yet on flash).
    #[inline]
    pub(crate) fn is_buffered(&self, ppa: Ppa, location: &FlashLocation) -> bool {
        self.ftl.is_filling(ppa, location.reclaim_unit)
            || self.backend.fills.is_in_flight(location.reclaim_unit.index(), location.unit)
    }

    #[expect(clippy::inline_always)]
    #[inline(always)]
    pub(crate) fn flash_outcome(&mut self, die: u16, outcome: Outcome) {
        match outcome {
            Outcome::Nothing => {}
            Outcome::Read { request } => self.mechanism_due((request >> 16) as u8, request as u16),
            Outcome::Programmed { unit, frontier, fill } => {
                if self.steps.programs {
                    Mechanisms::programmed(self);
                }
                for number in self.backend.fills.take_waiting(fill) {
                    let c = self.commands.get(number);
                    c.pending -= 1;
                    if c.pending == 0 {
                        self.backend.recorder.programmed(number, die, self.backend.now);
                        let (now, event) =
                            (self.backend.now, SsdEvent::Completed { command: number });
                        self.backend.queue.push(Lane::Completed, now, event);
                    }
                }
                let from_host =
                    self.ftl.is_host_frontier(frontier) || self.front.frontier() == Some(frontier);
                if from_host {
                    self.buffer_free += i64::from(unit.data_slots - unit.moved_slots);
                    self.backend.recorder.buffer_freed(die, self.backend.now);
                }
                if from_host || self.config.ftl.volatile_buffer {
                    self.admit_writes();
                }
            }
        }
    }

    #[expect(clippy::inline_always)]
    #[inline(always)]
    pub(crate) fn host_data(&mut self, die: u16, read: u16, data: HostData) {
        let HostData { command: number, slots, at } = data;
        let c = self.commands.get(number);
        c.pending -= 1;
        let last = c.pending == 0;
        let bytes = if last { c.unsent } else { c.unsent.min(slots * SLOT_BYTES) };
        c.unsent -= bytes;
        let end = self.frontend.send(at, bytes, last);
        if last {
            self.backend.recorder.read_done(number, die, read);
            self.backend.recorder.spent(number, Cause::Link, end);
            self.backend.queue.push(Lane::Completed, end, SsdEvent::Completed { command: number });
        }
    }
}
