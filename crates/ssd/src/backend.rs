//! Timing of flash operations on dies and the channels that they share.
//!
//! | operation | channel | die |
//! |---|---|---|
//! | read | command | tR, then busy until its data are transferred |
//! | data of a read | slots × 4 KiB | – |
//! | program | command + whole unit | tPROG after it |
//! | erase | command | tBERS after it |
//! | upkeep | command | the time of the work, which includes the command |
//!
//! A channel is represented by the time until which it is busy and serves requests first come first
//! served. An operation therefore costs one or two events, regardless of its size.

mod recording;
pub(crate) mod sink;
mod state;

use writecliff_base::{Nanos, ReclaimUnitId};
use writecliff_flash::geometry::{FlashLocation, SLOT_BYTES};
use writecliff_flash::{FlashTiming, Geometry};
use writecliff_ftl::ProgramUnit;
use writecliff_ftl::frontier::FrontierId;

use crate::attribution::Recorder;
use crate::config::DeviceConfig;
use crate::die::{
    Die, DieState, FRONT_MEDIUM, FlashOperation, MEDIA, Next, PAGE_TYPES, PROGRAM_TYPES, ReadFor,
    SENSE_FAILING, SENSE_MASK, SENSE_MEDIUM, SENSE_PLANE, SENSE_STRIPE, Suspended, medium_of_sense,
    program_medium, sense,
};
use crate::event::{EventQueue, Lane, SsdEvent};
use crate::fill::{FillId, Fills, NO_FILL};
use crate::front;
use crate::mechanisms::Mechanisms;
use crate::mechanisms::die_parity::DieParity;
use crate::mechanisms::ecc::Ecc;
use crate::mechanisms::plane_reads::Planes;
use crate::mechanisms::power::BusyTimes;
use crate::mechanisms::power::active_dies::ActiveDies;
use sink::HeldErase;

/// `slots` slots of a host read leave the die at time `at`.
#[derive(Clone, Copy, Debug)]
pub struct HostData {
    pub command: u16,
    pub slots: u32,
    pub at: Nanos,
}

/// Result of the end of a flash operation.
#[derive(Clone, Copy, Debug)]
pub enum Outcome {
    Nothing,
    /// A program unit is on flash. Commands may wait for its fill, whose number is about to be
    /// reused.
    Programmed {
        unit: ProgramUnit,
        frontier: FrontierId,
        fill: FillId,
    },
    /// Arrival of the data of a mechanism's read in the controller.
    Read {
        request: u32,
    },
}

pub struct Backend<R> {
    pub now: Nanos,
    pub queue: EventQueue,
    pub fills: Fills,
    /// `true` if data that are not on flash are lost with the power.
    pub(crate) is_volatile: bool,
    /// Command whose write is being placed, if it completes only when its data are on flash.
    pub(crate) awaiting: Option<u16>,
    /// Number of units that this command waits for.
    pub(crate) awaited: u32,
    pub(crate) geometry: Geometry,
    pub(crate) timing: FlashTiming,
    /// tR and tPROG by page type, in tables of fixed size.
    pub(crate) read_times: [Nanos; PAGE_TYPES],
    pub(crate) program_times: [Nanos; PROGRAM_TYPES],
    /// Channel time of a program.
    pub(crate) program_loads: [Nanos; PROGRAM_TYPES],
    /// tR by medium.
    pub(crate) medium_reads: [Nanos; MEDIA],
    /// The frontier of the front's own flash, numbered after those of the FTL.
    pub(crate) front_frontier: FrontierId,
    /// The front's own flash among the reclaim units: one after the last.
    /// In operations, those after it are its blocks after the first.
    pub(crate) front_unit: ReclaimUnitId,
    /// Slots of a block of the front's own flash on all dies.
    pub(crate) front_block_slots: u32,
    pub(crate) reads_in_a_row: u32,
    pub(crate) suspends_per_operation: u32,
    /// Erases that wait for programs.
    pub(crate) held_erases: Vec<HeldErase>,
    pub(crate) dies: Vec<Die>,
    pub(crate) channel_of: Vec<u16>,
    /// Time until which each channel is busy.
    pub(crate) channels: Vec<Nanos>,
    pub(crate) slot_transfer: Nanos,
    pub(crate) ecc: Option<Box<Ecc>>,
    pub(crate) retry_time: Nanos,
    pub(crate) die_parity: Option<Box<DieParity>>,
    pub(crate) busy: BusyTimes,
    pub(crate) recorder: R,
    pub(crate) active_dies: Option<Box<ActiveDies>>,
    pub(crate) planes: Option<Box<Planes>>,
}

impl<R: Recorder> Backend<R> {
    pub fn new(config: &DeviceConfig) -> Self {
        let geometry = config.geometry.clone();
        let timing = config.timing.clone();
        let (frontiers, units) = (2 * config.ftl.streams as usize, geometry.reclaim_units);
        let front = front::medium(config);
        let own = usize::from(front.is_some());
        let load = |bytes| timing.command + timing.transfer(bytes);
        let mut program_times = std::array::from_fn(|t| timing.program_time(t as u32));
        let mut program_loads = [load(geometry.unit_bytes()); PROGRAM_TYPES];
        let mut medium_reads = [Nanos::ZERO; MEDIA];
        let page = load(u64::from(geometry.slots_per_read_group * SLOT_BYTES));
        for (number, medium) in
            front.map(|front| (FRONT_MEDIUM, front)).into_iter().chain(Mechanisms::media(config))
        {
            let kind = usize::from(program_medium(number));
            (program_times[kind], program_loads[kind]) = (medium.program, page);
            medium_reads[usize::from(number)] = medium.read;
        }
        Self {
            now: Nanos::ZERO,
            queue: EventQueue::default(),
            fills: Fills::new(frontiers + own, units as usize + own),
            is_volatile: config.ftl.volatile_buffer,
            awaiting: None,
            awaited: 0,
            reads_in_a_row: config.controller.reads_in_a_row,
            suspends_per_operation: config.controller.suspends_per_operation,
            read_times: std::array::from_fn(|t| timing.read_time(t as u32)),
            program_times,
            program_loads,
            medium_reads,
            front_frontier: front::own_frontier(config),
            front_unit: ReclaimUnitId(units),
            front_block_slots: front::block_slots(&geometry) as u32,
            held_erases: Vec::new(),
            dies: vec![Die::default(); geometry.dies as usize],
            channel_of: (0..geometry.dies).map(|die| geometry.channel_of(die) as u16).collect(),
            channels: vec![Nanos::ZERO; geometry.shape.channels as usize],
            slot_transfer: timing.transfer(u64::from(SLOT_BYTES)),
            retry_time: config.sections.ecc.as_ref().map_or(Nanos::ZERO, |ecc| ecc.retry_time),
            ecc: Ecc::of(config),
            die_parity: DieParity::of(config.sections.die_parity),
            busy: BusyTimes::default(),
            recorder: R::default(),
            active_dies: ActiveDies::of(config),
            planes: Planes::of(config),
            geometry,
            timing,
        }
    }

    /// Page type and retries of a read of `slots` slots at a location.
    #[inline]
    pub(crate) fn sense(&mut self, location: &FlashLocation, slots: u32) -> u16 {
        let retries = match &mut self.ecc {
            Some(ecc) => ecc.retries(location.reclaim_unit, location.die, slots, self.now),
            None => 0,
        };
        sense(location.page_type, retries)
    }

    /// Returns `true` if no operation is running or waiting.
    pub fn is_quiet(&self) -> bool {
        self.dies.iter().all(|d| d.is_quiet(self.now)) && self.fills.outstanding().next().is_none()
    }

    /// Reads `slots` slots of the read group at `location` for a host command.
    #[expect(clippy::inline_always)]
    #[inline(always)]
    pub fn host_read(&mut self, command: u16, location: FlashLocation, slots: u32) {
        let (sense, purpose) = (self.sense(&location, slots), ReadFor::Host { command });
        let operation = FlashOperation::Read { sense, slots: slots as u8, purpose };
        self.queue_read(location.die as usize, operation);
    }

    #[expect(clippy::inline_always)]
    #[inline(always)]
    pub(crate) fn queue_read(&mut self, index: usize, operation: FlashOperation) {
        let may_start = self.may_activate(index);
        let die = &mut self.dies[index];
        if may_start && die.is_quiet(self.now) && !die.wake_scheduled {
            // Shortcut for the common case, which bypasses the queue.
            die.begin_read();
            self.activate(index);
            self.start(index, operation);
            return;
        }
        die.reads.push_back(operation);
        self.wake(index);
    }

    /// Queues internal firmware work behind the operations that wait for the die.
    pub fn upkeep(&mut self, die: u32, nanos: u32, suspendable: bool) {
        self.work(die as usize, FlashOperation::Upkeep { nanos, suspendable });
    }

    pub(crate) fn work(&mut self, die: usize, operation: FlashOperation) {
        self.dies[die].work.push_back(operation);
        self.wake(die);
    }

    /// Called after queueing an operation: starts it if the die is free, or suspends the running
    /// one if allowed.
    #[expect(clippy::inline_always)]
    #[inline(always)]
    pub(crate) fn wake(&mut self, index: usize) {
        let die = &mut self.dies[index];
        match die.state {
            DieState::Idle => self.start_next(index),
            DieState::Sending if die.busy_until <= self.now && !die.wake_scheduled => {
                die.state = DieState::Idle;
                self.start_next(index);
            }
            DieState::Sending if !die.wake_scheduled => {
                die.wake_scheduled = true;
                let event = SsdEvent::DieDone { die: index as u16 };
                self.queue.push(Lane::DieShort, die.busy_until, event);
            }
            DieState::Busy(operation) if !die.reads.is_empty() => self.suspend(index, operation),
            DieState::Reading => self.start_other_planes(index),
            _ => {}
        }
    }

    /// Suspends a program or erase for a host read, if the part supports it and enough time
    /// remains.
    pub(crate) fn suspend(&mut self, index: usize, operation: FlashOperation) {
        let cost = match operation {
            FlashOperation::Program { .. } | FlashOperation::Upkeep { suspendable: true, .. } => {
                self.timing.program_suspend
            }
            FlashOperation::Erase { .. } => self.timing.erase_suspend,
            FlashOperation::Read { .. } | FlashOperation::Upkeep { .. } => None,
        };
        let die = &mut self.dies[index];
        let Some(cost) = cost else { return };
        let remaining = die.busy_until.saturating_sub(self.now);
        if remaining <= cost || die.suspends >= self.suspends_per_operation {
            return;
        }
        die.suspends += 1;
        let event = SsdEvent::DieDone { die: index as u16 };
        self.queue.cancel(Lane::DieLong, die.busy_until, event);
        die.suspended = Some(Suspended { operation, remaining });
        // The die is free for the read after the suspend latency. `Sending` models this: the die is
        // busy, and no operation depends on its end.
        die.state = DieState::Sending;
        die.busy_until = self.now + cost;
        die.wake_scheduled = true;
        self.queue.push(Lane::DieShort, die.busy_until, event);
    }

    #[inline]
    pub(crate) fn start_next(&mut self, index: usize) {
        if self.waits_for_others(index) {
            return;
        }
        match self.dies[index].next(self.reads_in_a_row) {
            Next::Start(operation) => self.start(index, operation),
            Next::Resume(suspended) => {
                self.record_activity(index, suspended.operation);
                let end = self.now + suspended.remaining;
                self.begin_work(index, suspended.operation, Lane::DieLong, end);
            }
            Next::Nothing => {
                self.dies[index].state = DieState::Idle;
                self.recorder.die_does(index as u16, self.now, None);
            }
        }
    }

    #[expect(clippy::inline_always)]
    #[inline(always)]
    pub(crate) fn start(&mut self, index: usize, operation: FlashOperation) {
        self.record_activity(index, operation);
        match operation {
            FlashOperation::Read { sense, .. } => self.start_read(index, operation, sense),
            _ => self.start_work(index, operation),
        }
    }

    #[inline]
    pub(crate) fn start_work(&mut self, index: usize, operation: FlashOperation) {
        let command = self.timing.command;
        match operation {
            FlashOperation::Read { .. } => {}
            FlashOperation::Program { page_type, .. } => {
                let kind = page_type as usize % PROGRAM_TYPES;
                let loaded = self.take_channel(index, self.program_loads[kind]);
                let time = self.program_times[kind];
                self.busy.program += time.0;
                self.begin_work(index, operation, Lane::DieLong, loaded + time);
            }
            FlashOperation::Erase { .. } => {
                let begun = self.take_channel(index, command);
                self.busy.erase += self.timing.erase.0;
                self.begin_work(index, operation, Lane::DieLong, begun + self.timing.erase);
            }
            FlashOperation::Upkeep { nanos, .. } => {
                let begun = self.take_channel(index, command);
                let end = begun.max(self.now + Nanos(u64::from(nanos)));
                self.busy.program += (end - begun).0;
                self.begin_work(index, operation, Lane::DieLong, end);
            }
        }
    }

    #[expect(clippy::inline_always)]
    #[inline(always)]
    pub(crate) fn start_read(&mut self, index: usize, operation: FlashOperation, sense: u16) {
        let begun = self.take_channel(index, self.timing.command);
        let mut sensed = begun + self.read_times[sense as usize % PAGE_TYPES];
        if sense as usize >= PAGE_TYPES {
            if sense & SENSE_PLANE > 0 {
                return self.start_planes(index, operation, begun);
            }
            sensed = self.sensed_otherwise(begun, sensed, sense);
        }
        self.record_read((index, index as u16), sense, begun, sensed);
        self.busy.read += (sensed - begun).0;
        let die = &mut self.dies[index];
        die.state = DieState::Sensing(operation);
        die.busy_until = sensed;
        self.queue.push(Lane::Sensed, sensed, SsdEvent::Sensed { die: index as u16 });
    }

    /// When sensing ends for a read with retries, or of a medium.
    #[cold]
    pub(crate) fn sensed_otherwise(&self, begun: Nanos, sensed: Nanos, sense: u16) -> Nanos {
        if sense & SENSE_MEDIUM > 0 {
            return begun + self.medium_reads[medium_of_sense(sense)];
        }
        sensed + Nanos(self.retry_time.0 * u64::from((sense & SENSE_MASK) / PAGE_TYPES as u16))
    }

    #[inline]
    pub(crate) fn begin_work(
        &mut self,
        index: usize,
        operation: FlashOperation,
        lane: Lane,
        until: Nanos,
    ) {
        let die = &mut self.dies[index];
        die.state = DieState::Busy(operation);
        die.busy_until = until;
        self.queue.push(lane, until, SsdEvent::DieDone { die: index as u16 });
    }

    /// Uses the die's channel for `duration` as soon as it is free; returns the end time.
    #[inline]
    pub(crate) fn take_channel(&mut self, die: usize, duration: Nanos) -> Nanos {
        let channel = self.channel_of[die] as usize;
        let end = self.channels[channel].max(self.now) + duration;
        self.channels[channel] = end;
        self.busy.transfer += duration.0;
        end
    }

    /// Blocks all channels for new transfers for `duration`.
    pub fn stop_channels(&mut self, duration: Nanos) {
        for (channel, taken) in self.channels.iter_mut().enumerate() {
            let from = (*taken).max(self.now);
            *taken = from + duration;
            self.recorder.channel_stopped(channel as u16, from, *taken);
        }
    }

    /// Accounts for all dies erasing `blocks` blocks one after the other.
    pub fn erased_all(&mut self, blocks: u64) {
        let time = Nanos(blocks * self.timing.erase.0);
        self.busy.erase += time.0 * self.dies.len() as u64;
        self.now += time;
        self.recorder.purged();
    }

    /// Handles the end of tR on a die: transfers the data. Returns those of a host read.
    #[expect(clippy::inline_always)]
    #[inline(always)]
    pub fn sensed(&mut self, index: usize) -> Option<HostData> {
        let DieState::Sensing(operation) = self.dies[index].state else {
            unreachable!("a sensing die has a read operation");
        };
        let FlashOperation::Read { slots, purpose, sense } = operation else {
            unreachable!("only reads are sensed");
        };
        let transfer = Nanos(self.slot_transfer.0 * u64::from(slots));
        let sent = self.take_channel(index, transfer);
        self.release_die(index);
        match purpose {
            ReadFor::Fill { .. } | ReadFor::Mechanism { .. } => {
                self.begin_work(index, operation, Lane::DieShort, sent);
                None
            }
            ReadFor::Host { command } => {
                let die = &mut self.dies[index];
                die.state = DieState::Sending;
                die.busy_until = sent;
                self.recorder.read_transferred(index as u16, sent - transfer, sent);
                self.recorder.die_does(index as u16, sent, None);
                let waits =
                    die.suspended.is_some() || !die.reads.is_empty() || !die.work.is_empty();
                die.wake_scheduled = waits;
                if waits {
                    self.queue.push(Lane::DieShort, sent, SsdEvent::DieDone { die: index as u16 });
                }
                let mut slots = u32::from(slots);
                if sense & (SENSE_FAILING | SENSE_STRIPE) > 0 {
                    self.sensed_for_stripe(index, operation);
                    slots = 0;
                }
                Some(HostData { command, slots, at: sent })
            }
        }
    }

    /// Handles the end of the operation on a die.
    #[expect(clippy::inline_always)]
    #[inline(always)]
    pub fn die_done(&mut self, index: usize) -> Outcome {
        let die = &mut self.dies[index];
        let state = std::mem::replace(&mut die.state, DieState::Idle);
        die.wake_scheduled = false;
        self.release_die(index);
        let outcome = match state {
            DieState::Busy(FlashOperation::Program { fill, .. }) if fill != NO_FILL => {
                let (unit, frontier) = self.fills.programmed(fill);
                self.recorder.landed(self.ppas_of_program(&unit));
                if !self.held_erases.is_empty() {
                    self.erase_held(fill);
                }
                Outcome::Programmed { unit, frontier, fill }
            }
            DieState::Busy(FlashOperation::Read { purpose: ReadFor::Fill { fill }, .. }) => {
                self.waited(fill);
                Outcome::Nothing
            }
            DieState::Busy(FlashOperation::Read {
                purpose: ReadFor::Mechanism { request },
                ..
            }) => Outcome::Read { request },
            DieState::Busy(FlashOperation::Erase { unit }) => {
                self.recorder.erased(unit, index as u32);
                Outcome::Nothing
            }
            _ => Outcome::Nothing,
        };
        // Releasing a unit may have started an operation on this die.
        if self.dies[index].state == DieState::Idle {
            self.start_next(index);
        }
        outcome
    }

    /// Called when something that a fill waits for has ended: programs what may be programmed now.
    #[inline]
    pub(crate) fn waited(&mut self, fill: FillId) {
        self.fills.read_done(fill);
        let frontier = self.fills.get(fill).frontier;
        while let Some(ready) = self.fills.release(frontier) {
            self.program(ready);
        }
    }

    pub(crate) fn program(&mut self, fill: FillId) {
        let unit = self.fills.get(fill).unit.expect("only full units are programmed");
        let die = self.geometry.die_of(unit.reclaim_unit, unit.unit) as usize;
        let page_type = if unit.reclaim_unit == self.front_unit {
            program_medium(FRONT_MEDIUM)
        } else {
            self.geometry.program_type(unit.unit) as u8
        };
        self.work(die, FlashOperation::Program { fill, page_type });
        if self.die_parity.is_some() {
            self.program_parity(&unit);
        }
    }

    /// Called when no events are left: completes the last transfers and resets the event queue.
    pub fn settle(&mut self) {
        let ends = self.dies.iter().map(|d| d.busy_until).chain(self.channels.iter().copied());
        self.now = ends.fold(self.now, Nanos::max);
        assert!(self.is_quiet(), "an operation without an event");
        self.queue.clear();
        self.dies.fill(Die::default());
        if let Some(dies) = &mut self.active_dies {
            dies.clear();
        }
        self.recorder.settled();
    }
}
