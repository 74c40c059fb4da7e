//! What may delay the start of commands: mechanisms, and the barrier between reads and writes.

use writecliff_base::Nanos;
use writecliff_host_interface::{Arrival, Command, Operation};

use super::Ssd;
use crate::attribution::Recorder;
use crate::event::SsdEvent;
use crate::mechanisms::Mechanisms;

impl<R: Recorder> Ssd<R> {
    /// Handles the events that few commands cause.
    pub(crate) fn handle_rare(&mut self, event: SsdEvent) {
        match event {
            SsdEvent::IdleCheck => self.idle_check(),
            SsdEvent::Due { mechanism, token } => self.mechanism_due(mechanism, token),
            SsdEvent::PlaneDone { reader } => {
                if let Some((die, data)) = self.backend.plane_done(reader) {
                    self.host_data(die, self.backend.read_number(reader), data);
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
}
