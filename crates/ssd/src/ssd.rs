//! The drive: processes host commands through controller, buffer, FTL and flash, on two clocks.

pub(crate) mod io;

use std::collections::VecDeque;

use writecliff_base::{Bytes, Lpn, Nanos, StreamId};
use writecliff_flash::geometry::SLOT_BYTES;
use writecliff_ftl::bad_blocks::BadBlocks;
use writecliff_ftl::{ConfigError, FastForward, Ftl};
use writecliff_host_interface::placement::{self, DataPlacementStatus, FdpStatistics};
use writecliff_host_interface::{
    Arrival, Barrier, Cause, Command, CommandTable, Completion, Drive, Frontend, Operation, Status,
    TimeByCause,
};

use crate::attribution::{Recorder, Unrecorded};
use crate::backend::Backend;
use crate::command::InFlight;
use crate::config::{DeviceConfig, ServiceOrder};
use crate::data_placement::administration::Administration;
use crate::data_placement::{DataPlacement, Interface};
use crate::event::{Lane, SsdEvent};
use crate::front::{AnyFront, Direct, Front, Placed, SlcCache, Write};
use crate::mechanisms::power::ActiveTime;
use crate::mechanisms::{Access, FlashMechanisms, Mechanisms, Steps};

/// Program units per die in one burst of the front's work: enough to keep the die busy until the
/// next check, but few enough that a command does not wait long.
const BURST_UNITS: u32 = 4;

/// A simulated SSD. Commands must be submitted in time order; `step` advances to the next
/// completion. `R` decides whether it records what the time of commands is spent on.
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Ssd<R = Unrecorded> {
    pub(crate) config: DeviceConfig,
    pub(crate) ftl: Ftl,
    pub(crate) backend: Backend<R>,
    pub(crate) frontend: Frontend,
    pub(crate) barrier: Option<Box<Barrier>>,
    pub(crate) data_placement: DataPlacement,
    pub(crate) commands: CommandTable<InFlight>,
    /// Free slots of the write buffer; negative while a command larger than the buffer is in it.
    pub(crate) buffer_free: i64,
    /// Buffer slots that are free whenever no data are on their way to flash.
    pub(crate) buffer_assured: i64,
    /// Writes waiting for buffer space, and the time when firmware had processed them.
    pub(crate) write_waiting: VecDeque<(u16, Nanos)>,
    /// Writes whose data are being transferred over the link.
    pub(crate) writes_in_transfer: u32,
    /// Additional firmware time of a read compared with other commands.
    pub(crate) longer_reads_by: Nanos,
    /// Additional firmware time of a write, during which its data are already on their way.
    pub(crate) longer_writes_by: Nanos,
    pub(crate) write_cache: bool,
    pub(crate) host_read_bytes: u64,
    /// Slots read that held no data.
    pub(crate) unmapped_read_slots: u64,
    pub(crate) last_activity: Nanos,
    pub(crate) idle_check_scheduled: bool,
    pub(crate) quiescing: bool,
    pub(crate) front: AnyFront,
    pub(crate) mechanisms: Mechanisms,
    /// Steps in which mechanisms, or what acts like them, take part.
    pub(crate) steps: Steps,
    pub(crate) active: ActiveTime,
    /// `true` if the recorded causes of latency are reported.
    pub reports_causes: bool,
}

/// Buffer slots that are free whenever no data are on their way to flash: all but those that partly
/// filled units may occupy.
fn buffer_assured(config: &DeviceConfig) -> i64 {
    let geometry = &config.geometry;
    let units = i64::from(config.ftl.streams) * i64::from(geometry.ppas_per_program_unit);
    let mechanisms = config.sections.buffer_bytes(geometry) / u64::from(SLOT_BYTES);
    i64::from(config.buffer_slots()) - units - mechanisms.cast_signed()
}

impl Ssd {
    pub fn new(config: DeviceConfig) -> Result<Self, ConfigError> {
        Self::recording(config)
    }
}

impl<R: Recorder> Ssd<R> {
    /// A drive with a recorder of its own.
    pub fn recording(mut config: DeviceConfig) -> Result<Self, ConfigError> {
        if config.max_active_dies().is_some() && !R::LIMITS_DIES {
            let message =
                "a limit on active dies in power state 0 is modelled by tests and loads only"
                    .to_owned();
            return Err(ConfigError { key: "max_active_dies", message });
        }
        config.check_addresses()?;
        let mut ftl = Ftl::new(config.geometry.clone(), config.ftl.clone())?;
        // Its addresses are those that the FTL allocates.
        config.geometry = ftl.geometry().clone();
        let data_placement = DataPlacement::new(&config);
        if let Interface::Fdp(_) = data_placement.interface {
            ftl.gc_log_mut().listen(config.ftl.streams);
        }
        let controller = &config.controller;
        let frontend = Frontend::new(&config.link, controller.command_time, controller.latency);
        let backend = Backend::new(&config);
        let front = AnyFront::of(&config);
        let has_barrier = controller.service_order == ServiceOrder::Barrier;
        let mechanisms = Mechanisms::of(&config);
        let mut steps = mechanisms.steps();
        steps.commands |= has_barrier;
        steps.reads |=
            front.log().is_some() || config.sections.ecc.is_some() || !config.reads_slots_alone();
        steps.writes |=
            !front.is_direct() || config.ftl.bad_blocks.is_some() || data_placement.is_limited;
        steps.admission |= config.ftl.volatile_buffer;
        let mut ssd = Self {
            ftl,
            backend,
            frontend,
            barrier: has_barrier.then(Box::default),
            data_placement,
            commands: CommandTable::default(),
            buffer_free: 0,
            buffer_assured: buffer_assured(&config),
            write_waiting: VecDeque::new(),
            writes_in_transfer: 0,
            longer_reads_by: controller.read_command_time - controller.command_time,
            longer_writes_by: controller.write_command_time - controller.command_time,
            write_cache: config.controller.write_cache,
            host_read_bytes: 0,
            unmapped_read_slots: 0,
            last_activity: Nanos::ZERO,
            idle_check_scheduled: false,
            quiescing: false,
            front,
            mechanisms,
            steps,
            active: ActiveTime::NONE,
            reports_causes: R::RECORDS,
            config,
        };
        ssd.resynchronise_buffer();
        Ok(ssd)
    }

    pub fn config(&self) -> &DeviceConfig {
        &self.config
    }

    pub fn ftl(&self) -> &Ftl {
        &self.ftl
    }

    /// Returns the log of the front, an SLC cache.
    pub fn log(&self) -> Option<&SlcCache> {
        self.front.log()
    }

    pub fn now(&self) -> Nanos {
        self.backend.now
    }

    /// Bytes allocated on flash so far, for any reason.
    #[inline]
    pub fn nand_write_bytes(&self) -> u64 {
        let in_front = self.front.programmed_slots();
        let moved = self.ftl.bad_blocks().map_or(0, BadBlocks::moved_slots);
        let others = in_front + moved + Mechanisms::own_slots(self);
        self.main_write_bytes() + others * u64::from(SLOT_BYTES)
    }

    /// The same, excluding the SLC cache.
    #[inline]
    pub(crate) fn main_write_bytes(&self) -> u64 {
        self.ftl.allocated().total().0
    }

    /// Does what is due until `limit` while the host has nothing outstanding.
    #[inline(never)]
    fn work_until(&mut self, limit: Nanos) {
        let lost = self.step(limit);
        assert!(lost.is_none(), "completion without a command");
    }

    #[expect(clippy::inline_always)]
    #[inline(always)]
    fn handle(&mut self, event: SsdEvent) -> Option<Completion> {
        match event {
            SsdEvent::Sensed { die } => {
                if let Some(data) = self.backend.sensed(die as usize) {
                    self.host_data(die, die, data);
                }
                None
            }
            SsdEvent::DieDone { die } => {
                let outcome = self.backend.die_done(die as usize);
                self.flash_outcome(die, outcome);
                None
            }
            SsdEvent::ReadReady { command } => {
                self.read(command);
                None
            }
            SsdEvent::WriteArrived { command } => self.arrived(command),
            SsdEvent::Completed { command } => Some(self.complete(command)),
            rare => {
                self.handle_rare(rare);
                None
            }
        }
    }

    /// The FDP statistics of any drive.
    pub fn statistics(&self) -> FdpStatistics {
        FdpStatistics {
            host_bytes: self.host_write_bytes(),
            media_bytes: self.nand_write_bytes(),
            erased_bytes: self.ftl.wear().total() * self.data_placement.sizes.reclaim_unit.0,
        }
    }

    /// FTL stream to which a write with stream number `number` would go now.
    pub fn routed(&self, number: u16) -> Option<StreamId> {
        self.data_placement.routed(number, self.config.ftl.streams)
    }

    /// Returns the administrative commands of the data placement interface.
    pub fn administration(&mut self) -> Administration<'_, R> {
        Administration(self)
    }

    /// Begins with a command that has waited at the host.
    #[inline(never)]
    fn begin_waiting(&mut self, command: Command, submitted: Nanos) {
        self.begin(command, submitted);
    }

    #[expect(clippy::inline_always)]
    #[inline(always)]
    fn begin(&mut self, command: Command, submitted: Nanos) {
        if self.steps.commands {
            self.begin_among_upkeep(command, submitted);
        } else {
            let arrival = self.decoded(&command, submitted);
            self.begin_decoded(command, arrival, Nanos::ZERO);
        }
    }

    #[expect(clippy::inline_always)]
    #[inline(always)]
    fn decoded(&mut self, command: &Command, submitted: Nanos) -> Arrival {
        Arrival { submitted, entered: self.backend.now, decoded: self.decode(command) }
    }

    /// Decodes a command; returns when it is ready.
    #[expect(clippy::inline_always)]
    #[inline(always)]
    fn decode(&mut self, command: &Command) -> Nanos {
        match command.operation {
            Operation::Read => self.frontend.decode(self.backend.now, self.longer_reads_by),
            Operation::Write => {
                self.frontend.decode_before(self.backend.now, self.longer_writes_by)
            }
            _ => self.frontend.decode(self.backend.now, Nanos::ZERO),
        }
    }

    /// `hiccup` is additional latency; writes have their own later.
    #[expect(clippy::inline_always)]
    #[inline(always)]
    fn begin_decoded(&mut self, command: Command, arrival: Arrival, hiccup: Nanos) {
        self.active.begin(self.backend.now);
        let first = command.offset / u64::from(SLOT_BYTES);
        let end = (command.offset + u64::from(command.length)).div_ceil(u64::from(SLOT_BYTES));
        let number = self.commands.insert(InFlight {
            command,
            slots: (end - first) as u32,
            pending: 0,
            unsent: command.length,
            status: Status::Success,
        });
        // Its host announced it long ago if many are outstanding.
        self.ftl.prefetch_now(Lpn(first as u32));
        self.backend.recorder.begun(number, arrival, self.backend.now);
        match command.operation {
            Operation::Read => {
                let ready = arrival.decoded.max(self.backend.now) + hiccup;
                self.backend.recorder.spent(number, Cause::Housekeeping, ready);
                self.backend.queue.push(
                    Lane::Ready,
                    ready,
                    SsdEvent::ReadReady { command: number },
                );
            }
            Operation::Write => {
                // If others are already waiting, admission cannot have changed.
                let slots = (end - first) as u32;
                if self.write_waiting.is_empty() && self.admits_write(slots) {
                    self.admit(number, slots, command.length, arrival.decoded);
                } else {
                    self.write_waiting.push_back((number, arrival.decoded));
                }
            }
            Operation::Trim | Operation::Flush => {
                let ready = arrival.decoded.max(self.backend.now);
                let received = self.frontend.receive(ready, 0);
                let at = received + hiccup;
                self.backend.recorder.spent(number, Cause::Link, received);
                self.backend.recorder.spent(number, Cause::Housekeeping, at);
                self.backend.queue.push(
                    Lane::Arrived,
                    at,
                    SsdEvent::WriteArrived { command: number },
                );
            }
        }
    }

    #[expect(clippy::inline_always)]
    #[inline(always)]
    fn complete(&mut self, number: u16) -> Completion {
        let InFlight { command: done, status, .. } = self.commands.remove(number);
        let at = self.backend.now;
        self.backend.recorder.completed(number, at);
        if let Some((next, submitted)) = self.frontend.leave(&done) {
            self.begin_waiting(next, submitted);
        }
        if self.barrier.is_some() && done.operation != Operation::Write {
            self.pass_barrier();
        }
        if self.commands.in_flight() == 0 {
            self.last_activity = at;
            self.active.end(at);
            self.schedule_idle_check(at + self.config.controller.idle_delay);
        }
        Completion { at, tag: done.tag, operation: done.operation, status }
    }

    /// Writes data whose placement a mechanism affects.
    #[cold]
    fn fast_forward_otherwise(&mut self, command: &Command) {
        if self.is_refused() {
            return;
        }
        Mechanisms::before_write(self, &Access::untimed(command));
        let write = self.routed_write(command);
        let placed = self.front.place(write, &mut self.ftl, &mut FastForward);
        self.note_elsewhere(command, placed);
    }

    /// Routes a write to a stream of the FTL.
    #[inline]
    pub(crate) fn routed_write<'a>(&mut self, command: &'a Command) -> Write<'a> {
        let now = self.backend.now;
        let stream = self.data_placement.route(command.stream, command.length, now);
        Write { command, stream }
    }

    pub(crate) fn note_elsewhere(&mut self, command: &Command, placed: Placed) {
        if placed.elsewhere_bytes > 0 {
            self.data_placement.tally.overflow(command.stream.0, placed.elsewhere_bytes);
        }
    }

    /// Handles the events that few commands cause.
    pub(crate) fn handle_rare(&mut self, event: SsdEvent) {
        match event {
            SsdEvent::IdleCheck => self.idle_check(),
            SsdEvent::Due { mechanism, token } => self.mechanism_due(mechanism, token),
            SsdEvent::PlaneDone { reader } => {
                if let Some(plane) = FlashMechanisms::plane_done(&mut self.backend, reader) {
                    self.host_data(plane.die, plane.read, plane.data);
                }
            }
            _ => unreachable!("events of commands and dies are handled before"),
        }
    }

    /// Handles an event or the end of a flash read that a mechanism has scheduled.
    #[cold]
    pub(crate) fn mechanism_due(&mut self, mechanism: u8, token: u16) {
        if Mechanisms::due(self, mechanism, token) {
            self.admit_writes();
        }
    }

    pub(crate) fn begin_among_upkeep(&mut self, command: Command, submitted: Nanos) {
        Mechanisms::before_command(self);
        let arrival = self.decoded(&command, submitted);
        if self.barrier.as_mut().is_none_or(|barrier| barrier.admit(&command, arrival)) {
            self.begin_admitted(command, arrival);
        }
    }

    /// Called when a write is accepted, and when any other command has completed, on a drive with a
    /// barrier.
    #[cold]
    #[inline(never)]
    pub(crate) fn pass_barrier(&mut self) {
        if let Some(barrier) = &mut self.barrier {
            barrier.passed();
        }
        while let Some((command, arrival)) = self.barrier.as_mut().and_then(|b| b.release()) {
            self.begin_admitted(command, arrival);
        }
    }

    fn begin_admitted(&mut self, command: Command, arrival: Arrival) {
        Mechanisms::command_begins(self);
        let is_write = command.operation == Operation::Write;
        let delay = if is_write { Nanos::ZERO } else { self.mechanisms.command_delay() };
        self.begin_decoded(command, arrival, delay);
    }

    /// Keeps the firmware from commands for `time`, from `at` on.
    pub(crate) fn stall_firmware(&mut self, at: Nanos, time: Nanos) {
        let until = self.frontend.stall(at, time);
        self.backend.recorder.firmware_stalled(until - time, until);
    }

    pub(crate) fn schedule_idle_check(&mut self, at: Nanos) {
        if !self.idle_check_scheduled && !self.quiescing && self.wants_idle_time() {
            self.idle_check_scheduled = true;
            self.backend.queue.push(Lane::DieLong, at, SsdEvent::IdleCheck);
        }
    }

    /// Folds and garbage-collects in the background while the host is idle, about one read group of
    /// each die at a time.
    pub(crate) fn idle_check(&mut self) {
        self.idle_check_scheduled = false;
        if self.commands.in_flight() > 0 || self.quiescing {
            return;
        }
        let now = self.backend.now;
        let due = self.last_activity + self.config.controller.idle_delay;
        if now < due {
            self.schedule_idle_check(due);
            return;
        }
        if self.backend.is_quiet() && !self.work_in_front() {
            for _ in 0..self.config.geometry.dies {
                let sink = &mut self.front.sink(&mut self.backend);
                if !self.ftl.gc_in_background(sink) {
                    return;
                }
            }
        }
        self.schedule_idle_check(now + self.config.timing.program_mean());
    }

    /// Lets the front work on a burst of slots; returns `false` if it had no work.
    fn work_in_front(&mut self) -> bool {
        let geometry = &self.config.geometry;
        let burst = i64::from(BURST_UNITS * geometry.dies * geometry.slots_per_program_unit);
        let burst = burst.min(self.buffer_free);
        let done = self.front.idle_work(burst, &mut self.ftl, &mut self.backend);
        self.buffer_free -= done.unwrap_or(0);
        done.is_some()
    }

    /// Returns `true` if there is work to do in idle time.
    #[inline]
    fn wants_idle_time(&self) -> bool {
        self.ftl.needs_background_gc() || self.front.wants_idle_time()
    }
}

impl<R: Recorder> Drive for Ssd<R> {
    fn capacity(&self) -> Bytes {
        self.config.user_capacity
    }

    #[inline]
    fn now(&self) -> Nanos {
        self.now()
    }

    #[inline]
    fn submit(&mut self, at: Nanos, command: Command) {
        debug_assert!(at >= self.backend.now);
        debug_assert!(command.offset.is_multiple_of(512) && command.length.is_multiple_of(512));
        debug_assert!(command.offset + u64::from(command.length) <= self.config.user_capacity.0);
        self.backend.now = at;
        if self.frontend.enter(&command, at) {
            self.begin(command, at);
        }
    }

    // Always inlined, as is what it calls for an event: idle time has a copy of it, and the
    // compiler would otherwise make functions of what both share.
    #[expect(clippy::inline_always)]
    #[inline(always)]
    fn step(&mut self, limit: Nanos) -> Option<Completion> {
        let end = Nanos(limit.0.saturating_add(1));
        while let Some((time, packed)) = self.backend.queue.pop_before(end) {
            self.backend.now = time;
            if let Some((mechanism, token)) = packed.due() {
                self.mechanism_due(mechanism, token);
            } else if let Some(completion) = self.handle(packed.event()) {
                return Some(completion);
            }
        }
        None
    }

    fn next_event(&self) -> Option<Nanos> {
        self.backend.queue.next_time()
    }

    /// Leaves the drive idle until `time`; it may garbage-collect in the background meanwhile. The
    /// host must have nothing outstanding.
    ///
    /// If the drive has not completed a command since it was opened, filled on the fast-forward
    /// clock or quiesced, its idle delay counts from then.
    fn idle_until(&mut self, time: Nanos) {
        let due = self.last_activity + self.config.controller.idle_delay;
        self.schedule_idle_check(due.max(self.backend.now));
        while let Some(at) = Mechanisms::next_work(self, time) {
            self.work_until(at);
            self.backend.now = self.backend.now.max(at);
            let has_worked = Mechanisms::work(self, at);
            assert!(has_worked, "a mechanism has no work at the time that it has named");
        }
        self.work_until(time);
        self.backend.now = self.backend.now.max(time);
    }

    fn quiesce(&mut self) {
        assert_eq!(self.commands.in_flight() + self.frontend.waiting(), 0);
        self.quiescing = true;
        self.work_until(Nanos::MAX);
        self.quiescing = false;
        self.idle_check_scheduled = false;
        self.backend.settle();
        self.last_activity = self.backend.now;
        if let Some(ecc) = &mut self.backend.mechanisms.ecc {
            ecc.before_untimed(self.ftl.counters().host_slots);
        }
    }

    /// The fast-forward clock: applies the effect of a write or TRIM without its timing. Reads and
    /// flushes change nothing. The drive must be idle; call `end_fast_forward` after the last
    /// command.
    #[inline]
    fn fast_forward(&mut self, command: &Command) {
        match command.operation {
            Operation::Write => {
                if self.steps.writes {
                    return self.fast_forward_otherwise(command);
                }
                let write = self.routed_write(command);
                Direct.place(write, &mut self.ftl, &mut FastForward);
            }
            Operation::Trim => {
                self.trim(command);
                self.backend.recorder.journaled();
            }
            Operation::Read | Operation::Flush => {}
        }
    }

    fn end_fast_forward(&mut self) {
        self.resynchronise_buffer();
        self.resynchronise_errors();
    }

    fn fast_forward_read(&mut self, command: &Command) -> Status {
        self.mechanisms.read(&Access::untimed(command), Status::Success)
    }

    #[inline]
    fn announce(&self, offset: u64) {
        self.ftl.prefetch(Lpn((offset / u64::from(SLOT_BYTES)) as u32));
    }

    #[inline]
    fn time_by_cause(&self) -> Option<&TimeByCause> {
        self.reports_causes.then(|| self.backend.recorder.last()).flatten()
    }

    /// The limit of the interface, or the FTL's streams.
    fn streams(&self) -> u16 {
        match self.config.data_placement {
            Some(_) => u16::MAX,
            None => self.config.ftl.streams,
        }
    }

    fn routed(&self, number: StreamId) -> Option<StreamId> {
        Some(self.routed(number.0).unwrap_or_default())
    }

    fn is_read_only(&self) -> bool {
        self.ftl.is_read_only()
    }

    fn write_cache(&self) -> bool {
        self.write_cache
    }

    /// When the cache is disabled and there is no power-loss protection, a write completes once it
    /// is on flash.
    fn set_write_cache(&mut self, enabled: bool) {
        self.write_cache = enabled;
    }

    fn is_volatile(&self) -> bool {
        self.write_cache && !self.config.controller.power_loss_protection
    }

    /// Returns the drive to the state of "no writes": erases every block. Takes the time of one
    /// erase of every block in turn, on all dies at once.
    fn purge(&mut self) {
        self.quiesce();
        self.ftl.purge();
        let blocks = u64::from(self.config.geometry.reclaim_units) + self.front.purge();
        self.mechanisms.purged();
        self.data_placement.release_all_streams();
        self.resynchronise_buffer();
        self.resynchronise_errors();
        self.backend.erased_all(blocks);
    }

    /// A Controller Level Reset disables the Streams directive. Without power-loss protection, the
    /// drive also abandons its open units: reclaim unit handles then reference empty ones.
    fn controller_reset(&mut self) {
        self.quiesce();
        let now = self.backend.now;
        self.data_placement.reset_streams();
        if self.config.controller.power_loss_protection {
            return;
        }
        let modified = self.data_placement.abandon_all(&mut self.ftl, &mut self.backend);
        self.quiesce();
        if modified {
            self.data_placement.reset_modified_handles(now);
        }
    }

    /// Fails a die, which answers no further reads. Its current operation still ends.
    ///
    /// # Errors
    /// Fails without a section `[die_parity]`, if the drive does not have the die or has already
    /// lost a die, and if the other dies cannot hold the user capacity.
    fn lose_die(&mut self, die: u32) -> Result<(), String> {
        let now = self.backend.now;
        let Some(parity) = &mut self.backend.mechanisms.die_parity else {
            return Err("the drive has no section [die_parity]".to_owned());
        };
        if let Some(lost) = parity.lost {
            return Err(format!("the drive has already lost die {lost}"));
        }
        let dies = self.config.geometry.dies;
        if die >= dies {
            return Err(format!("die is {die}; it must be 0 to {}", dies - 1));
        }
        self.ftl.lose_die(die)?;
        parity.lose(die, now);
        Ok(())
    }

    #[inline]
    fn host_write_bytes(&self) -> u64 {
        self.front.host_bytes(self.ftl.counters().host_bytes)
    }

    #[inline]
    fn nand_write_bytes(&self) -> Option<u64> {
        Some(self.nand_write_bytes())
    }

    fn free_units(&self) -> Option<u32> {
        Some(self.ftl.free_units())
    }

    fn joules_until(&self, time: Nanos) -> Option<f64> {
        self.energy_until(time).map(|energy| energy.total())
    }

    fn celsius_at(&self, time: Nanos) -> Option<f64> {
        self.thermal_at(time).map(|thermal| thermal.celsius)
    }

    fn data_placement(&mut self) -> Option<Box<dyn placement::DataPlacement + '_>> {
        Some(Box::new(self.administration()))
    }

    /// `None` for a drive without an interface.
    fn data_placement_status(&mut self) -> Option<DataPlacementStatus> {
        self.data_placement.gather_events(&mut self.ftl, &mut self.backend);
        self.data_placement.status(&self.ftl, self.backend.now, self.statistics())
    }

    fn check_invariants(&self) -> Result<(), String> {
        self.ftl.check_invariants()?;
        self.front.check(&self.ftl)
    }
}
