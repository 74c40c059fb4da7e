//! Timing of flash operations on dies and their shared channels.
//!
//! | operation | channel | die |
//! |---|---|---|
//! | read | command | tR, then busy until its data are transferred |
//! | data of a read | slots × 4 KiB | – |
//! | program | command + whole unit | tPROG after it |
//! | erase | command | tBERS after it |
//! | upkeep | command | the time of the work, which includes the command |
//!
//! A channel is represented by the time until which it is busy, and serves requests in arrival
//! order. An operation therefore needs only one or two events, regardless of its size.

mod channels;
mod held_erases;
mod sink;
mod state;
mod times;

use writecliff_base::Nanos;
use writecliff_flash::{FlashLocation, Geometry};
use writecliff_ftl::{FrontierId, ProgramUnit};
use writecliff_host_interface::Cause;

use crate::die::{
    Die, DieState, FRONT_MEDIUM, Next, SENSE_FAILING, SENSE_PLANE, SENSE_STRIPE, is_plain,
    program_medium, sense,
};
use crate::event::EventQueue;
use crate::fill::{Fills, NO_FILL};
use crate::front::{self, FrontFlash};
use crate::mechanisms::ecc::Retries;
use crate::mechanisms::power::BusyTimes;
use crate::mechanisms::{FlashMechanisms, die_parity, each};
use crate::{DeviceConfig, FillId, FlashOperation, Lane, ReadFor, Recorder, SsdEvent};
use channels::Channels;
use held_erases::HeldErases;
use times::Times;

pub(crate) use state::Unfinished;

/// `slots` slots of a host read leave the die at time `at`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostData {
    pub(crate) command: u16,
    pub slots: u32,
    pub at: Nanos,
}

/// Result of finishing a flash operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    /// No command depends on the operation.
    Nothing,
    /// A program unit is on flash. Commands that wait for it complete before its fill is reused.
    Programmed { unit: ProgramUnit, frontier: FrontierId, fill: FillId },
    /// Arrival of the data of a mechanism's read in the controller.
    Read {
        /// Mechanism and token, as in `ReadFor::Mechanism`.
        request: u32,
    },
}

/// Routes flash operations to dies and channels.
pub(crate) struct Backend<R> {
    pub(crate) now: Nanos,
    pub queue: EventQueue,
    pub(crate) fills: Fills,
    /// Command whose write is being placed, if it completes only when its data are on flash.
    pub(crate) awaiting: Option<u16>,
    /// Number of program units that this command waits for.
    pub(crate) awaited: u32,
    pub(crate) geometry: Geometry,
    pub(crate) times: Times,
    pub(crate) front: FrontFlash,
    pub(crate) reads_in_a_row: u32,
    suspends_per_operation: u32,
    /// Suspensions since the last write was mapped; `None` if suspensions take no firmware time.
    pub(crate) suspensions: Option<u64>,
    pub(crate) held_erases: HeldErases,
    pub(crate) dies: Vec<Die>,
    pub(crate) channels: Channels,
    pub(crate) busy: BusyTimes,
    pub(crate) recorder: R,
    pub(crate) mechanisms: FlashMechanisms,
}

/// Backend components that are needed to start an operation, except for its die.
struct Starter<'a, R> {
    times: &'a Times,
    channels: &'a mut Channels,
    busy: &'a mut BusyTimes,
    queue: &'a mut EventQueue,
    recorder: &'a mut R,
    now: Nanos,
}

#[inline]
fn is_of_plane(operation: FlashOperation) -> bool {
    let FlashOperation::Read { sense, .. } = operation else { return false };
    !is_plain(sense) && sense & SENSE_PLANE > 0
}

impl<R: Recorder> Starter<'_, R> {
    /// Returns `true` if the start of an operation involves neither a mechanism nor the recorder.
    #[inline]
    fn starts(operation: FlashOperation) -> bool {
        !R::RECORDS && !is_of_plane(operation)
    }

    #[inline(always)] // `start_other` is the only frequent caller
    fn start(&mut self, die: &mut Die, index: usize, operation: FlashOperation) {
        let command = self.times.flash.command;
        let end = match operation {
            FlashOperation::Read { .. } => {
                self.start_read(die, index, operation);
                return;
            }
            FlashOperation::Program { page_type, .. } => {
                let (load, time) = self.times.program(page_type);
                self.busy.program += time.0;
                self.take_channel(index, load) + time
            }
            FlashOperation::Erase { .. } => {
                let time = self.times.flash.erase;
                self.busy.erase += time.0;
                self.take_channel(index, command) + time
            }
            FlashOperation::Upkeep { nanos, .. } => {
                let begun = self.take_channel(index, command);
                let end = begun.max(self.now + Nanos(u64::from(nanos)));
                self.busy.program += (end - begun).0;
                end
            }
        };
        self.begin_work(die, index, operation, Lane::DieLong, end);
    }

    /// Starts a read of all planes.
    #[inline(always)]
    fn start_read(&mut self, die: &mut Die, index: usize, operation: FlashOperation) {
        let FlashOperation::Read { sense, .. } = operation else {
            unreachable!("only reads are queued with the priority of host reads");
        };
        let begun = self.take_channel(index, self.times.flash.command);
        let sensed = begun + self.times.sensing(sense);
        let read = self.times.recorded_read(self.now, sense, begun, sensed);
        self.recorder.read_started(index as u16, self.channels.of_die[index], read);
        self.busy.read += (sensed - begun).0;
        die.sense(operation, sensed);
        self.queue.push(Lane::Sensed, sensed, SsdEvent::Sensed { die: index as u16 });
    }

    #[inline]
    fn begin_work(
        &mut self,
        die: &mut Die,
        index: usize,
        operation: FlashOperation,
        lane: Lane,
        until: Nanos,
    ) {
        die.begin(operation, until);
        self.queue.push(lane, until, SsdEvent::DieDone { die: index as u16 });
    }

    #[inline]
    fn take_channel(&mut self, die: usize, duration: Nanos) -> Nanos {
        self.busy.transfer += duration.0;
        self.channels.take(die, self.now, duration)
    }
}

impl<R: Recorder> Backend<R> {
    pub(crate) fn new(config: &DeviceConfig) -> Self {
        let geometry = config.geometry.clone();
        let (frontiers, units) = (2 * config.ftl.streams as usize, geometry.reclaim_units);
        let front_flash = usize::from(front::medium(config).is_some());
        Self {
            now: Nanos::ZERO,
            queue: EventQueue::default(),
            fills: Fills::new(
                frontiers + front_flash,
                units as usize + front_flash,
                config.ftl.volatile_buffer,
            ),
            awaiting: None,
            awaited: 0,
            times: Times::new(config),
            front: FrontFlash::of(config),
            reads_in_a_row: config.controller.reads_in_a_row,
            suspends_per_operation: config.controller.suspends_per_operation,
            suspensions: (config.controller.suspend_time > Nanos::ZERO).then_some(0),
            held_erases: HeldErases::new(config.ftl.volatile_buffer),
            dies: vec![Die::default(); geometry.dies as usize],
            channels: Channels::new(&geometry),
            busy: BusyTimes::default(),
            recorder: R::default(),
            mechanisms: FlashMechanisms::of(config),
            geometry,
        }
    }

    /// Draws the random outcome of a read of `slots` slots at a location. Returns the page type and
    /// retries of the read, encoded by [`sense`], and `true` if no retry corrects the data.
    #[inline]
    pub(crate) fn sense(&mut self, location: &FlashLocation, slots: u32) -> (u16, bool) {
        let retries = match &mut self.mechanisms.ecc {
            Some(ecc) => ecc.retries(location, slots, self.now),
            None => Retries::default(),
        };
        (sense(location.page_type, retries.count), retries.fails)
    }

    /// Returns `true` if no operation is running or waiting.
    pub(crate) fn is_quiet(&self) -> bool {
        self.dies.iter().all(|d| d.is_quiet(self.now)) && self.fills.outstanding().next().is_none()
    }

    /// Queues a read with the priority of a host read.
    #[inline(always)]
    pub(crate) fn queue_read(&mut self, index: usize, operation: FlashOperation) {
        let die = &mut self.dies[index];
        if matches!(die.state, DieState::Sensing(_)) {
            // This branch is the most frequent case: nothing starts before sensing ends.
            die.reads.push(operation);
            return;
        }
        if die.is_quiet(self.now) && !die.wake_scheduled && self.may_start(index) {
            // The common case bypasses the queue.
            self.dies[index].reads_in_a_row += 1;
            if Starter::<R>::starts(operation) {
                let (dies, mut starter) = self.split();
                starter.start_read(&mut dies[index], index, operation);
            } else {
                self.start_noted(index, operation);
            }
            return;
        }
        self.dies[index].reads.push(operation);
        self.wake(index);
    }

    /// Queues an operation behind the other work of a die.
    #[inline]
    pub(crate) fn work(&mut self, index: usize, operation: FlashOperation) {
        let die = &mut self.dies[index];
        die.work.push(operation);
        if !die.is_undisturbed() {
            self.wake_for_work(index);
        }
    }

    #[inline(never)]
    fn wake_for_work(&mut self, index: usize) {
        self.wake(index);
    }

    /// Called after queueing an operation: starts it, or suspends the running one if allowed.
    #[inline(always)]
    fn wake(&mut self, index: usize) {
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
            DieState::Reading => each!(self, [plane_reads], m => m.start_reads(self, index)),
            _ => {}
        }
    }

    /// Suspends a program or erase for a host read, if the part can and enough time remains.
    fn suspend(&mut self, index: usize, operation: FlashOperation) {
        let die = &mut self.dies[index];
        let left = die.busy_until.saturating_sub(self.now);
        let Some(suspension) = self.times.suspension(operation, left) else { return };
        let end = die.suspend(self.now, suspension, self.suspends_per_operation);
        let Some(end) = end else { return };
        if let Some(suspensions) = &mut self.suspensions {
            *suspensions += 1;
        }
        let event = SsdEvent::DieDone { die: index as u16 };
        self.queue.cancel(Lane::DieLong, end, event);
        self.queue.push(Lane::DieShort, self.now + suspension.time(), event);
    }

    /// Returns `true` if a free die may start an operation now; otherwise, the die waits.
    #[inline]
    fn may_start(&mut self, index: usize) -> bool {
        !R::LIMITS_DIES || self.mechanisms.active_dies.as_mut().is_none_or(|a| a.admits(index))
    }

    #[inline(never)]
    fn start_next(&mut self, index: usize) {
        self.start_next_inlined(index);
    }

    #[inline(always)]
    fn start_next_inlined(&mut self, index: usize) {
        debug_assert!(self.dies[index].is_idle());
        if R::LIMITS_DIES && self.dies[index].has_operations() && !self.may_start(index) {
            self.recorder.die_does(index as u16, self.now, Some(Cause::Throttling));
            return;
        }
        let reads_in_a_row = self.reads_in_a_row;
        let (dies, mut starter) = self.split();
        let die = &mut dies[index];
        if !die.is_read_next(reads_in_a_row) {
            self.start_other(index);
            return;
        }
        let read = die.next_read();
        if Starter::<R>::starts(read) {
            starter.start_read(die, index, read);
        } else {
            self.start_noted(index, read);
        }
    }

    /// Starts the next operation of a free die other than a host read.
    #[inline(never)]
    fn start_other(&mut self, index: usize) {
        let (dies, mut starter) = self.split();
        let die = &mut dies[index];
        match die.next_other() {
            Next::Start(operation) if Starter::<R>::starts(operation) => {
                starter.start(die, index, operation);
            }
            Next::Start(operation) => self.start_noted(index, operation),
            Next::Resume(suspended) => {
                if R::RECORDS {
                    let cause = suspended.operation.cause(&self.fills);
                    self.recorder.die_does(index as u16, self.now, Some(cause));
                }
                let end = self.now + suspended.remaining;
                let (dies, mut starter) = self.split();
                let die = &mut dies[index];
                starter.begin_work(die, index, suspended.operation, Lane::DieLong, end);
            }
            Next::Nothing => self.recorder.die_does(index as u16, self.now, None),
        }
    }

    /// Starts an operation that involves a mechanism or the recorder.
    #[inline(never)]
    fn start_noted(&mut self, index: usize, operation: FlashOperation) {
        if R::RECORDS {
            let cause = operation.cause(&self.fills);
            self.recorder.die_does(index as u16, self.now, Some(cause));
        }
        if is_of_plane(operation) {
            let begun = self.take_channel(index, self.times.flash.command);
            each!(self, [plane_reads], m => m.start_first(self, index, operation, begun));
            return;
        }
        let (dies, mut starter) = self.split();
        starter.start(&mut dies[index], index, operation);
    }

    /// Returns the dies, and the starter for operations on them.
    #[inline(always)]
    fn split(&mut self) -> (&mut [Die], Starter<'_, R>) {
        let Self { dies, times, channels, busy, queue, recorder, now, .. } = self;
        (dies, Starter { times, channels, busy, queue, recorder, now: *now })
    }

    #[inline]
    pub(crate) fn take_channel(&mut self, die: usize, duration: Nanos) -> Nanos {
        self.split().1.take_channel(die, duration)
    }

    /// Accounts for all dies erasing `blocks` blocks in sequence.
    pub(crate) fn erased_all(&mut self, blocks: u64) {
        let time =
            Nanos(blocks * self.times.flash.erase.0 / u64::from(self.times.flash.erase_portions));
        self.busy.erase += time.0 * self.dies.len() as u64;
        self.now += time;
        self.recorder.purged();
    }

    /// Handles the end of tR on a die by transferring the data. Returns the data of a host read.
    #[inline(always)]
    pub(crate) fn sensed(&mut self, index: usize) -> Option<HostData> {
        let DieState::Sensing(operation) = self.dies[index].state else {
            unreachable!("a sensing die has a read operation");
        };
        let FlashOperation::Read { slots, purpose, sense } = operation else {
            unreachable!("only reads are sensed");
        };
        let transfer = self.times.transfer(slots);
        let sent = self.take_channel(index, transfer);
        self.release_die(index);
        let ReadFor::Host { command } = purpose else {
            let (dies, mut starter) = self.split();
            starter.begin_work(&mut dies[index], index, operation, Lane::DieShort, sent);
            return None;
        };
        if self.dies[index].send(sent) {
            self.queue.push(Lane::DieShort, sent, SsdEvent::DieDone { die: index as u16 });
        }
        self.recorder.read_transferred(index as u16, sent - transfer, sent);
        self.recorder.die_does(index as u16, sent, None);
        let mut slots = u32::from(slots);
        if sense & (SENSE_FAILING | SENSE_STRIPE) > 0 {
            die_parity::flash::sensed(self, index, operation);
            slots = 0;
        }
        Some(HostData { command, slots, at: sent })
    }

    #[inline(always)]
    pub(crate) fn die_done(&mut self, index: usize) -> Outcome {
        let state = self.dies[index].end();
        self.release_die(index);
        let is_sent = matches!(state, DieState::Sending);
        if is_sent && (!R::LIMITS_DIES || self.dies[index].is_idle()) {
            self.start_next_inlined(index);
            return Outcome::Nothing;
        }
        let outcome = match state {
            DieState::Busy(FlashOperation::Program { fill, .. }) if fill != NO_FILL => {
                let (unit, frontier) = self.fills.programmed(fill);
                self.recorder.unit_programmed(self.front.ppas_of_program(&self.geometry, &unit));
                if !self.held_erases.all.is_empty() {
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
        if self.dies[index].is_idle() {
            self.start_next_inlined(index);
        }
        outcome
    }

    /// Called at the end of an operation or sensing: releases the die, starts waiting dies.
    #[inline]
    fn release_die(&mut self, index: usize) {
        if R::LIMITS_DIES && self.dies[index].suspended.is_none() {
            if let Some(active) = &mut self.mechanisms.active_dies {
                active.released(index);
            }
            self.start_waiting();
        }
    }

    /// Starts the next operations of the waiting dies that may start now.
    #[inline]
    fn start_waiting(&mut self) {
        while let Some(next) = self.mechanisms.active_dies.as_mut().and_then(|a| a.next_die()) {
            self.start_next(next);
        }
    }

    /// Called when something that a fill waits for has ended: programs the fills that it held.
    #[inline]
    pub(crate) fn waited(&mut self, fill: FillId) {
        let Some(frontier) = self.fills.read_done(fill) else { return };
        while let Some(ready) = self.fills.release(frontier) {
            self.program(ready);
        }
    }

    fn program(&mut self, fill: FillId) {
        let unit = self.fills.get(fill).unit.expect("only full units are programmed");
        let die = self.geometry.die_of(unit.reclaim_unit, unit.unit) as usize;
        let page_type = if unit.reclaim_unit == self.front.unit {
            program_medium(FRONT_MEDIUM)
        } else {
            self.geometry.program_type(unit.unit) as u8
        };
        self.work(die, FlashOperation::Program { fill, page_type });
        each!(self, [die_parity], m => m.program_queued(self, &unit));
    }

    /// Completes the last transfers and resets the event queue; called when no events are left.
    pub(crate) fn settle(&mut self) {
        let ends = self.dies.iter().map(|die| die.busy_until);
        let ends = ends.chain(self.channels.busy_until.iter().copied());
        self.now = ends.fold(self.now, Nanos::max);
        assert!(self.is_quiet(), "an operation without an event");
        self.queue.clear();
        self.dies.fill(Die::default());
        self.mechanisms.cleared();
        self.recorder.settled();
    }
}
