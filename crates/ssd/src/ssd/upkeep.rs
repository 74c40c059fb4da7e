//! What may delay the start of commands: the barrier between reads and writes, and the firmware's
//! background work (media work, work that follows programs, endurance throttling).

use writecliff_base::Nanos;
use writecliff_host_interface::{Arrival, Cause, Command, Operation};

use super::Ssd;
use crate::attribution::Recorder;
use crate::event::{Lane, SsdEvent};

impl<R: Recorder> Ssd<R> {
    /// When the drive does something next, if it is left alone.
    pub fn next_event(&self) -> Option<Nanos> {
        self.backend.queue.next_time()
    }

    /// Handles the events that few commands cause.
    pub(crate) fn handle_rare(&mut self, event: SsdEvent) {
        match event {
            SsdEvent::IdleCheck => self.idle_check(),
            SsdEvent::CoreCaughtUp => self.core_caught_up(),
            SsdEvent::ThrottleExpired => self.plan_allows(),
            SsdEvent::ThermalPeriod => self.thermal_period(),
            SsdEvent::MediaWork => self.media_work(),
            SsdEvent::MappingFetched { load } => self.mapping_loaded(load),
            SsdEvent::PlaneDone { reader } => {
                if let Some((die, data)) = self.backend.plane_done(reader) {
                    self.host_data(die, self.backend.read_number(reader), data);
                }
            }
            _ => unreachable!("events of commands and dies are handled before"),
        }
    }

    pub(crate) fn begin_among_upkeep(&mut self, command: Command, submitted: Nanos) {
        self.patrol();
        self.refresh();
        self.repair();
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

    /// Called when a command starts: media work is scheduled from now on. Work that started in idle
    /// time and has not ended keeps its die busy for the rest of its time.
    fn begin_admitted(&mut self, command: Command, arrival: Arrival) {
        if self.housekeeping.as_ref().is_some_and(|h| !h.media_scheduled) {
            self.schedule_media_work();
        }
        self.resume_thermal();
        let is_write = command.operation == Operation::Write;
        let hiccup = if is_write { Nanos::ZERO } else { self.hiccup() };
        self.begin_decoded(command, arrival, hiccup);
    }

    #[cold]
    fn schedule_media_work(&mut self) {
        let now = self.backend.now;
        let Some(housekeeping) = &mut self.housekeeping else { return };
        let Some(work) = housekeeping.media() else { return };
        while let Some(next) = housekeeping.next_media(now) {
            if next.at > now {
                housekeeping.media_scheduled = true;
                self.backend.queue.push(Lane::DieLong, next.at, SsdEvent::MediaWork);
                return;
            }
            housekeeping.media_begun();
            let rest = next.at + work.time - now;
            self.backend.upkeep(next.die, rest.0 as u32, work.suspendable);
        }
    }

    /// Runs a media operation. While the host is idle it is not simulated; the next command
    /// computes what is still running.
    pub(crate) fn media_work(&mut self) {
        if let Some(housekeeping) = &mut self.housekeeping {
            housekeeping.media_scheduled = false;
        }
        if self.commands.in_flight() > 0 {
            self.schedule_media_work();
        }
    }

    /// Lets the firmware read what its patrol has had to read until now.
    #[inline]
    fn patrol(&mut self) {
        let Some(patrol) = self.housekeeping.as_mut().and_then(|h| h.patrol()) else { return };
        let time = patrol.time();
        while let Some(at) = patrol.due(self.backend.now, self.frontend.firmware_free()) {
            let until = self.frontend.stall(at, time);
            self.backend.recorder.firmware_stalled(until - time, until);
        }
    }

    /// Called when a program has ended: a journal page or a checkpoint may be due.
    #[cold]
    pub(crate) fn journal_program(&mut self) {
        let Some(housekeeping) = &mut self.housekeeping else { return };
        let due = housekeeping.programmed();
        if let Some((die, time)) = due.journal {
            self.backend.upkeep(die, time.0 as u32, true);
        }
        if due.stall == Nanos::ZERO {
            return;
        }
        let stops_writes = housekeeping.checkpoint_stops_writes;
        match &mut self.mapping_core {
            Some(core) if stops_writes => core.stall(self.backend.now, due.stall),
            _ => {
                let until = self.frontend.stall(self.backend.now, due.stall);
                self.backend.recorder.firmware_stalled(until - due.stall, until);
            }
        }
    }

    /// Returns `true` if endurance throttling delays writes now, and schedules an event for the end
    /// of the delay.
    #[inline]
    pub(crate) fn is_ahead_of_plan(&mut self) -> bool {
        self.endurance.is_some() && self.waits_for_plan()
    }

    fn waits_for_plan(&mut self) -> bool {
        let (now, programmed) = (self.backend.now, self.main_write_bytes());
        let Some(plan) = &mut self.endurance else { return false };
        let Some(opens) = plan.opens_at(now, programmed) else { return false };
        self.backend.recorder.writes_wait(now, Cause::Throttling);
        if !plan.wake_scheduled {
            plan.hold_up(now, opens);
            self.backend.queue.push(Lane::DieLong, opens, SsdEvent::ThrottleExpired);
        }
        true
    }

    pub(crate) fn plan_allows(&mut self) {
        if let Some(plan) = &mut self.endurance {
            plan.wake_scheduled = false;
        }
        self.admit_writes();
    }

    /// Additional latency of a command due to internal tasks of the controller.
    #[inline]
    pub(crate) fn hiccup(&mut self) -> Nanos {
        self.housekeeping.as_mut().map_or(Nanos::ZERO, |housekeeping| housekeeping.hiccup())
    }
}
