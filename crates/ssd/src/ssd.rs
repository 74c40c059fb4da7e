//! Drive model that decodes, places and completes commands, timed or fast-forwarded.

use std::io::{Read, Write};

use writecliff_base::codec::CodecError;
use writecliff_base::fields::Impossible;
use writecliff_base::saved_state::{self, RestoreError};
use writecliff_base::{Bytes, Lpn, Nanos, SLOT_BYTES, StreamId, ensure, reject};
use writecliff_flash::geometry::Values;
use writecliff_ftl::{ConfigError, FastForward, Ftl};
use writecliff_host_interface::placement::DataPlacement;
use writecliff_host_interface::{
    Arrival, Cause, Command, Completion, Drive, Meters, Operation, Status, TimeByCause,
};

use crate::attribution::{Recorder, Unrecorded};
use crate::backend::Outcome;
use crate::command::{Commands, InFlight};
use crate::config::DeviceConfig;
use crate::data_placement::administration::Administration;
use crate::event::{Lane, SsdEvent};
use crate::front::{Front, SlcCache, place_directly};
use crate::idle::IdleTime;
use crate::mechanisms::power::{ActiveTime, Energy};
use crate::mechanisms::power_loss::PowerCut;
use crate::mechanisms::{Access, MappedSlots, Mechanism, Mechanisms, hook, steps};
use crate::storage::Storage;
use crate::write_buffer::WriteBuffer;

/// A simulated SSD. Commands must be submitted in time order; `step` advances to the next
/// completion. The recorder `R` determines whether latency causes are recorded.
pub struct Ssd<R = Unrecorded> {
    pub(crate) config: DeviceConfig,
    pub(crate) commands: Commands,
    pub(crate) buffer: WriteBuffer,
    pub(crate) storage: Storage<R>,
    pub(crate) mechanisms: Mechanisms,
    /// Steps in which mechanisms, or other optional components of the drive, take part.
    pub(crate) steps: u8,
    pub(crate) idle: IdleTime,
    pub(crate) active: ActiveTime,
    pub(crate) host_read_bytes: u64,
    /// `true` if the recorded latency causes are reported.
    pub reports_causes: bool,
}

impl Ssd {
    /// Returns a new drive that does not record latency causes.
    pub fn new(config: DeviceConfig) -> Result<Self, ConfigError> {
        Self::recording(config)
    }
}

impl<R: Recorder> Ssd<R> {
    /// Returns a new drive with a recorder.
    pub fn recording(mut config: DeviceConfig) -> Result<Self, ConfigError> {
        reject! { Values,
            "max_active_dies" if config.max_active_dies().is_some() && !R::LIMITS_DIES =>
                "a limit on active dies in power state 0 is modelled only by tests and workloads";
        }
        config.check_addresses()?;
        let storage = Storage::new(&mut config)?;
        let commands = Commands::of(&config);
        let mechanisms = Mechanisms::of(&config);
        let reads = !storage.reads_slots_alone || config.sections.ecc.is_some();
        let writes = !storage.front.is_direct()
            || config.ftl.bad_blocks.is_some()
            || storage.data_placement.is_limited;
        let steps = mechanisms.steps()
            | (u8::from(commands.barrier.is_some()) * steps::COMMANDS)
            | (u8::from(reads) * steps::READS)
            | (u8::from(writes) * steps::WRITES)
            | (u8::from(config.ftl.volatile_buffer) * steps::ADMISSION);
        Ok(Self {
            commands,
            buffer: WriteBuffer::of(&config),
            storage,
            mechanisms,
            steps,
            idle: IdleTime::of(&config),
            active: ActiveTime::NONE,
            host_read_bytes: 0,
            reports_causes: R::RECORDS,
            config,
        })
    }

    /// Returns the drive configuration.
    pub fn config(&self) -> &DeviceConfig {
        &self.config
    }

    /// Returns the FTL: mapping, garbage collection and wear.
    pub fn ftl(&self) -> &Ftl {
        &self.storage.ftl
    }

    /// Returns the storage: FTL, front and flash
    pub fn storage(&self) -> &Storage<R> {
        &self.storage
    }

    /// Returns a mutable reference to the recorder.
    pub fn recorder_mut(&mut self) -> &mut R {
        &mut self.storage.backend.recorder
    }

    /// Returns the administrative commands of the data placement interface.
    pub fn administration(&mut self) -> Administration<'_, R> {
        Administration(self)
    }

    /// Cuts the power immediately and powers the drive up again.
    ///
    /// # Panics
    /// Panics if [`Storage::refuses_power_cut`] returns a reason.
    pub fn cut_power(&mut self) -> PowerCut {
        let cut = PowerCut::of(self);
        cut.power_up(self);
        cut
    }

    /// Does the work that is due until `limit`. The host must have no outstanding commands.
    #[inline(never)]
    fn work_until(&mut self, limit: Nanos) {
        let lost = self.step(limit);
        assert!(lost.is_none(), "completion without a command");
    }

    #[inline(never)]
    fn begin_waiting(&mut self, command: Command, submitted: Nanos) {
        self.begin(command, submitted);
    }

    #[inline(always)]
    fn begin(&mut self, command: Command, submitted: Nanos) {
        if self.steps & steps::COMMANDS > 0 {
            self.begin_among_upkeep(command, submitted);
        } else {
            let arrival = self.commands.decode(&command, submitted, self.storage.backend.now);
            self.begin_decoded(command, arrival, Nanos::ZERO);
        }
    }

    fn begin_among_upkeep(&mut self, command: Command, submitted: Nanos) {
        hook!(self, m => m.before_command(self));
        let arrival = self.commands.decode(&command, submitted, self.storage.backend.now);
        let barrier = self.commands.barrier.as_mut();
        if barrier.is_none_or(|barrier| barrier.admit(&command, arrival)) {
            self.begin_admitted(command, arrival);
        }
    }

    /// With a barrier, called when a write is accepted and when another command has completed.
    #[cold]
    #[inline(never)]
    fn pass_barrier(&mut self) {
        self.commands.barrier.iter_mut().for_each(|barrier| barrier.passed());
        while let Some((command, arrival)) =
            self.commands.barrier.as_mut().and_then(|barrier| barrier.release())
        {
            self.begin_admitted(command, arrival);
        }
    }

    fn begin_admitted(&mut self, command: Command, arrival: Arrival) {
        hook!(self, m => m.command_begins(self));
        let is_write = command.operation == Operation::Write;
        let delay = if is_write { Nanos::ZERO } else { self.mechanisms.command_delay() };
        self.begin_decoded(command, arrival, delay);
    }

    /// Starts a decoded command. `hiccup` is additional latency, which writes incur later.
    #[inline(always)]
    fn begin_decoded(&mut self, command: Command, arrival: Arrival, hiccup: Nanos) {
        let now = self.storage.backend.now;
        self.active.begin(now);
        let first = command.offset / SLOT_BYTES;
        let slots =
            (command.offset % SLOT_BYTES + u64::from(command.length)).div_ceil(SLOT_BYTES) as u32;
        let number = self.commands.begin(command, slots);
        // If many commands are outstanding, the host may have submitted this command long ago.
        self.storage.ftl.prefetch_now(Lpn(first as u32));
        let backend = &mut self.storage.backend;
        backend.recorder.begun(number, arrival, now);
        match command.operation {
            Operation::Read => {
                let ready = arrival.decoded.max(now) + hiccup;
                backend.recorder.spent(number, Cause::Housekeeping, ready);
                backend.queue.push(Lane::Ready, ready, SsdEvent::ReadReady { command: number });
            }
            Operation::Write => {
                // If other writes are already waiting, this write must also wait.
                if self.buffer.waiting.front().is_none() && self.admits_write(slots) {
                    self.admit(number, slots, command.length, arrival.decoded);
                } else {
                    self.buffer.waiting.push((number, arrival.decoded));
                }
            }
            Operation::Trim | Operation::Flush => {
                let received = self.commands.frontend.receive(arrival.decoded.max(now), 0);
                let at = received + hiccup;
                backend.recorder.spent(number, Cause::Link, received);
                backend.recorder.spent(number, Cause::Housekeeping, at);
                backend.queue.push(Lane::Arrived, at, SsdEvent::WriteArrived { command: number });
            }
        }
    }

    #[inline(always)]
    fn complete(&mut self, number: u16) -> Completion {
        let InFlight { command: done, status, .. } = self.commands.end(number);
        let at = self.storage.backend.now;
        self.storage.backend.recorder.completed(number, at);
        if let Some((next, submitted)) = self.commands.frontend.leave(&done) {
            self.begin_waiting(next, submitted);
        }
        if self.commands.barrier.is_some() && done.operation != Operation::Write {
            self.pass_barrier();
        }
        if self.commands.in_flight() == 0 {
            self.active.end(at);
            self.idle.begin(&mut self.storage);
        }
        Completion { at, tag: done.tag, operation: done.operation, status }
    }

    /// Starts the data transfer of waiting writes while the buffer has space.
    #[inline]
    pub(crate) fn admit_writes(&mut self) {
        while let Some((number, ready)) = self.buffer.waiting.front() {
            let (slots, length) = {
                let c = self.commands.get(number);
                (c.slots, c.command.length)
            };
            if !self.admits_write(slots) {
                return;
            }
            self.buffer.waiting.remove_front();
            self.admit(number, slots, length, ready);
        }
    }

    /// Returns `true` if the next write may be transferred now; otherwise, records that it waits.
    #[inline(always)]
    fn admits_write(&mut self, slots: u32) -> bool {
        let may_wait = self.steps & steps::ADMISSION > 0;
        if may_wait && (Mechanisms::holds_writes(self) || self.storage.holds_writes()) {
            return false;
        }
        let has_room = self.buffer.has_room(slots);
        if !has_room {
            let backend = &mut self.storage.backend;
            backend.recorder.writes_wait(backend.now, Cause::BufferOther);
        }
        has_room
    }

    /// Starts the data transfer of a write that firmware finished processing at `ready`.
    #[inline(always)]
    fn admit(&mut self, number: u16, slots: u32, length: u32, ready: Nanos) {
        self.buffer.admit(slots);
        if self.commands.barrier.is_some() {
            self.pass_barrier();
        }
        let backend = &mut self.storage.backend;
        let received = self.commands.frontend.receive(ready.max(backend.now), length);
        let at = received + self.mechanisms.command_delay();
        backend.recorder.admitted(number, backend.now);
        backend.recorder.spent(number, Cause::Link, received);
        backend.recorder.spent(number, Cause::Housekeeping, at);
        backend.queue.push(Lane::Arrived, at, SsdEvent::WriteArrived { command: number });
    }

    /// Handles the arrival of a command and its data. Returns `true` if it may complete.
    #[inline(always)]
    fn arrived(&mut self, number: u16) -> bool {
        let command = self.commands.get(number).command;
        if command.operation != Operation::Write {
            return self.arrived_without_data(number);
        }
        self.buffer.arrived();
        let is_plain = self.steps & (steps::WRITES | steps::MAPPING) == 0;
        if is_plain && self.buffer.completes_writes() {
            self.storage.place_plain(&command);
            true
        } else {
            self.write_otherwise(number)
        }
    }

    #[inline(never)]
    fn arrived_without_data(&mut self, number: u16) -> bool {
        let command = self.commands.get(number).command;
        match command.operation {
            Operation::Trim => {
                let freed = self.storage.trim(&command, |lpn| self.mechanisms.trimmed(lpn));
                if freed > 0 {
                    self.buffer.release(i64::from(freed));
                    self.admit_writes();
                }
                true
            }
            Operation::Flush => {
                // The drive also journals the mapping so that deallocations survive a power cut.
                self.storage.backend.recorder.journaled();
                let is_volatile = self.buffer.is_volatile();
                let units = if is_volatile { self.storage.await_all_units(number) } else { 0 };
                self.commands.get(number).pending = units;
                units == 0
            }
            Operation::Read | Operation::Write => {
                unreachable!("reads do not transfer data to the drive, and writes do")
            }
        }
    }

    /// Places the data of a write if mechanisms take part, or if the command completes only when
    /// its data are on flash. Returns `true` if the command may complete.
    #[cold]
    fn write_otherwise(&mut self, number: u16) -> bool {
        let in_flight = *self.commands.get(number);
        let write = in_flight.access(number);
        if self.storage.ftl.refuses_write() {
            self.commands.get(number).status = Status::WriteProtected;
            self.buffer.release(i64::from(write.slots));
            self.admit_writes();
            return true;
        }
        hook!(self, m => m.before_write(self, &write));
        let storage = &mut self.storage;
        let counters = storage.ftl.counters();
        let (moved, host) = (counters.moved_slots(), counters.host_slots);
        let folded_slots = |front: &Front| front.log().map_or(0, |log| log.counters.folds);
        let folded = folded_slots(&storage.front);
        let merged = storage.slots_to_merge(&write);
        let awaiting = (!self.buffer.completes_writes()).then_some(number);
        let placed = storage.place(write.command, awaiting);
        self.buffer.release(-placed.extra_slots);
        if awaiting.is_some() {
            let units = storage.await_placed(number, placed, self.buffer.in_transfer > 0);
            self.commands.get(number).pending = units;
        }
        if let Front::Reduced = self.storage.front {
            self.admit_writes();
        }
        // If the drive fills up a unit, it maps all slots of the unit.
        let storage = &mut self.storage;
        let counters = storage.ftl.counters();
        let host = match storage.front {
            Front::LargeUnits(_) => (counters.host_slots - host) as u32,
            _ => write.slots,
        };
        let mapped = MappedSlots {
            host,
            moved: counters.moved_slots() - moved,
            merged,
            folded: folded_slots(&storage.front) - folded,
            suspensions: storage.backend.suspensions.as_mut().map_or(0, std::mem::take),
        };
        let now = storage.backend.now;
        hook!(self, m => m.after_write(now, &mapped));
        self.commands.get(number).pending == 0
    }

    /// Starts the flash reads of a command unless a mechanism holds the command.
    #[inline(always)]
    fn read(&mut self, number: u16) {
        let c = self.commands.get(number);
        let (first, length, slots) = (c.first(), c.command.length, c.slots);
        self.host_read_bytes += u64::from(length);
        if self.steps & steps::READS > 0 || slots > 1 {
            self.read_otherwise(number);
            return;
        }
        c.pending = 1;
        if self.storage.read_slot(number, first, false) == 0 {
            self.commands.awaits(number, 0, &mut self.storage.backend);
        }
    }

    /// Reads several slots, or reads on a drive with mechanisms that take part.
    #[inline(never)]
    fn read_otherwise(&mut self, number: u16) {
        if !Mechanisms::holds_read(self, number) {
            self.read_held(number);
        }
    }

    /// Starts the flash reads of a command that no mechanism holds.
    #[inline(never)]
    pub(crate) fn read_held(&mut self, number: u16) {
        let in_flight = *self.commands.get(number);
        let read = in_flight.access(number);
        let (reads, outcome) = self.storage.read(number, read.first, read.slots);
        self.commands.get(number).status = self.mechanisms.read(&read, outcome);
        self.commands.awaits(number, reads, &mut self.storage.backend);
    }

    #[inline(always)]
    fn flash_outcome(&mut self, die: u16, outcome: Outcome) {
        match outcome {
            Outcome::Nothing => {}
            Outcome::Read { request } => {
                Mechanisms::due(self, (request >> 16) as u8, request as u16);
            }
            Outcome::Programmed { unit, frontier, fill } => {
                if self.steps & steps::PROGRAMS > 0 {
                    hook!(self, m => m.programmed(self));
                }
                self.commands.programmed(fill, die, &mut self.storage.backend);
                let is_of_host = self.storage.is_of_host(frontier);
                let backend = &mut self.storage.backend;
                if is_of_host {
                    self.buffer.release(i64::from(unit.data_slots - unit.moved_slots));
                    backend.recorder.buffer_freed(die, backend.now);
                }
                if is_of_host || backend.held_erases.is_volatile {
                    self.admit_writes();
                }
            }
        }
    }
}

impl<R: Recorder> Drive for Ssd<R> {
    fn capacity(&self) -> Bytes {
        self.config.user_capacity
    }

    #[inline]
    fn now(&self) -> Nanos {
        self.storage.backend.now
    }

    #[inline(always)] // once for each I/O
    fn submit(&mut self, at: Nanos, command: Command) {
        debug_assert!(at >= self.storage.backend.now);
        debug_assert!(command.offset.is_multiple_of(512) && command.length.is_multiple_of(512));
        debug_assert!(command.offset + u64::from(command.length) <= self.config.user_capacity.0);
        self.storage.backend.now = at;
        if self.commands.frontend.enter(&command, at) {
            self.begin(command, at);
        }
    }

    // This function and all calls that handle an event are always inlined. Idle time contains a
    // second copy, so the compiler would otherwise outline the shared code.
    #[inline(always)]
    fn step(&mut self, limit: Nanos) -> Option<Completion> {
        while let Some((time, packed)) = self.storage.backend.queue.pop_until(limit) {
            let backend = &mut self.storage.backend;
            backend.now = time;
            match packed.event() {
                SsdEvent::Completed { command } => return Some(self.complete(command)),
                SsdEvent::WriteArrived { command } => {
                    if self.arrived(command) {
                        return Some(self.complete(command));
                    }
                }
                SsdEvent::ReadReady { command } => self.read(command),
                SsdEvent::Sensed { die } => {
                    if let Some(data) = backend.sensed(die as usize) {
                        self.commands.send_read((die, die), data, backend);
                    }
                }
                SsdEvent::DieDone { die } => {
                    let outcome = backend.die_done(die as usize);
                    self.flash_outcome(die, outcome);
                }
                SsdEvent::PlaneDone { reader } => self.commands.plane_done(reader, backend),
                SsdEvent::IdleCheck => {
                    let has_commands = self.commands.in_flight() > 0;
                    self.idle.check(&mut self.storage, &mut self.buffer, has_commands);
                }
                SsdEvent::Due { mechanism, token } => Mechanisms::due(self, mechanism, token),
            }
        }
        None
    }

    fn next_event(&self) -> Option<Nanos> {
        self.storage.backend.queue.next_time()
    }

    /// If the drive has not completed a command since it was opened, filled on the fast-forward
    /// clock or quiesced, its idle delay counts from then.
    fn idle_until(&mut self, time: Nanos) {
        self.idle.wait(&mut self.storage);
        while let Some(at) = Mechanisms::next_work(self, time) {
            self.work_until(at);
            self.storage.backend.now = self.storage.backend.now.max(at);
            let has_worked = Mechanisms::work(self, at);
            assert!(has_worked, "a mechanism has no work at the time that it returned");
        }
        self.work_until(time);
        self.storage.backend.now = self.storage.backend.now.max(time);
    }

    fn quiesce(&mut self) {
        self.commands.assert_none();
        self.idle.quiesce();
        self.work_until(Nanos::MAX);
        self.storage.backend.settle();
        self.idle.quiesced(self.storage.backend.now);
        assert!(self.buffer.is_settled(), "a write has not arrived");
        if let Some(ecc) = &mut self.storage.backend.mechanisms.ecc {
            ecc.untimed_from = self.storage.ftl.counters().host_slots;
        }
    }

    #[inline]
    fn fast_forward(&mut self, command: &Command) {
        match command.operation {
            Operation::Write if self.steps & steps::WRITES > 0 => {
                if !self.storage.ftl.refuses_write() {
                    let write = Access::untimed(command);
                    hook!(self, m => m.before_write(self, &write));
                    self.storage.place_untimed(command);
                }
            }
            Operation::Write => {
                let write = self.storage.route(command);
                place_directly(write, &mut self.storage.ftl, &mut FastForward);
            }
            Operation::Trim => {
                self.storage.trim(command, |lpn| self.mechanisms.trimmed(lpn));
                self.storage.backend.recorder.journaled();
            }
            Operation::Read | Operation::Flush => {}
        }
    }

    fn end_fast_forward(&mut self) {
        self.buffer.resynchronise(self.storage.filled());
        self.storage.after_untimed();
    }

    fn fast_forward_read(&mut self, command: &Command) -> Status {
        self.mechanisms.read(&Access::untimed(command), Status::Success)
    }

    #[inline]
    fn announce(&self, offset: u64) {
        self.storage.ftl.prefetch(Lpn((offset / SLOT_BYTES) as u32));
    }

    #[inline]
    fn time_by_cause(&self) -> Option<&TimeByCause> {
        self.reports_causes.then(|| self.storage.backend.recorder.last()).flatten()
    }

    /// Returns the number of streams that the interface permits; without one, that of the FTL.
    fn streams(&self) -> u16 {
        match self.config.data_placement {
            Some(_) => u16::MAX,
            None => self.config.ftl.streams,
        }
    }

    fn routed(&self, number: StreamId) -> Option<StreamId> {
        Some(self.storage.routed(number.0).unwrap_or_default())
    }

    fn is_read_only(&self) -> bool {
        self.storage.ftl.is_read_only()
    }

    fn write_cache(&self) -> bool {
        self.buffer.is_cache
    }

    fn set_write_cache(&mut self, enabled: bool) {
        self.buffer.is_cache = enabled;
    }

    fn is_volatile(&self) -> bool {
        self.buffer.is_volatile()
    }

    /// Erases every block, which returns the drive to its initial state. The operation takes the
    /// time to erase all blocks of a die in sequence, with all dies working in parallel.
    fn purge(&mut self) {
        self.quiesce();
        self.storage.ftl.purge();
        let blocks = u64::from(self.config.geometry.reclaim_units) + self.storage.front.purge();
        hook!(self, m => m.purged());
        self.storage.data_placement.release_all_streams();
        self.buffer.resynchronise(self.storage.filled());
        self.storage.after_untimed();
        self.storage.backend.erased_all(blocks);
    }

    /// Performs a Controller Level Reset, which disables the Streams directive. Without power-loss
    /// protection, the drive abandons its open units, and handles then reference empty ones.
    fn controller_reset(&mut self) {
        self.quiesce();
        let now = self.storage.backend.now;
        self.storage.data_placement.reset_streams();
        if self.config.controller.power_loss_protection {
            return;
        }
        self.storage.abandon_all(now);
        self.quiesce();
    }

    fn lose_die(&mut self, die: u32) -> Result<(), String> {
        let now = self.storage.backend.now;
        let Some(parity) = &mut self.storage.backend.mechanisms.die_parity else {
            return Err("the drive has no section [die_parity]".to_owned());
        };
        if let Some(lost) = parity.lost {
            return Err(format!("the drive has already lost die {lost}"));
        }
        let dies = self.config.geometry.dies;
        ensure!(die < dies, "die is {die}; it must be 0 to {}", dies - 1);
        self.storage.ftl.lose_die(die)?;
        parity.lose(die, now);
        Ok(())
    }

    fn meters(&self, time: Nanos) -> Meters {
        let Storage { ftl, front, .. } = &self.storage;
        let moved = ftl.bad_blocks().map_or(0, |bad| bad.counts.moved_slots);
        let in_front = front.log().map_or(0, SlcCache::programmed_slots);
        let others = in_front + moved + Mechanisms::own_slots(self);
        let main = self.storage.main_write_bytes();
        let joules = Energy::taken(self, time).map(|energy| energy.total());
        let thermal = joules.zip(self.mechanisms.thermal.as_ref());
        Meters {
            host_write_bytes: front.host_bytes(ftl.counters().host_bytes),
            nand_write_bytes: Some(main + others * SLOT_BYTES),
            free_units: Some(ftl.free_units()),
            joules,
            celsius: thermal.map(|(joules, thermal)| thermal.counters(time, joules).celsius),
        }
    }

    fn data_placement(&mut self) -> Option<Box<dyn DataPlacement + '_>> {
        Some(Box::new(self.administration()))
    }

    fn save_to(&self, out: &mut dyn Write) -> Result<(), CodecError> {
        self.commands.assert_none();
        let mut out = saved_state::begin(out, &self.config.canonical, self)?;
        self.storage.ftl.save(&mut out)?;
        out.finish().map(|_| ())
    }

    fn restore_from(&mut self, input: &mut dyn Read) -> Result<(), RestoreError> {
        self.commands.assert_none();
        let canonical = self.config.canonical.clone();
        let mut input = saved_state::open(input, &canonical, self)?;
        self.storage.ftl.restore(&mut input)?;
        input.end()?;
        let held = u64::from(self.storage.filled()) + self.storage.unprogrammed();
        if !self.buffer.can_hold(held) {
            return Err(Impossible.into());
        }
        self.storage.take_wear();
        Ok(())
    }

    fn check_invariants(&self) -> Result<(), String> {
        self.storage.ftl.check_invariants()?;
        self.storage.front.check(&self.storage.ftl)
    }
}
