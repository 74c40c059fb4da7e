//! Reports the activity of dies to the recorder.

use writecliff_base::Nanos;
use writecliff_host_interface::Cause;

use super::Backend;
use crate::attribution::{FlashRead, Recorder};
use crate::die::{DieState, FlashOperation, PAGE_TYPES, ReadFor, SENSE_MASK};
use crate::fill::NO_FILL;

impl<R: Recorder> Backend<R> {
    /// Records what a die does from now on.
    #[inline]
    pub(crate) fn record_activity(&mut self, index: usize, operation: FlashOperation) {
        if R::RECORDS {
            let activity = match operation {
                FlashOperation::Read {
                    purpose: ReadFor::Host { .. } | ReadFor::Mechanism { .. },
                    ..
                } => Cause::OtherReads,
                FlashOperation::Read { .. } => Cause::Collection,
                FlashOperation::Program { fill, .. }
                    if fill != NO_FILL && self.fills.is_moved(fill) =>
                {
                    Cause::Collection
                }
                FlashOperation::Program { .. } => Cause::Program,
                FlashOperation::Erase { .. } => Cause::Erase,
                FlashOperation::Upkeep { .. } => Cause::Housekeeping,
            };
            self.recorder.die_does(index as u16, self.now, Some(activity));
        }
    }

    /// Records the times of a read that starts now and has reached the die at `begun`, as those of
    /// `number`: the die, or a number of [`Self::read_number`].
    #[inline]
    pub(crate) fn record_read(
        &mut self,
        (index, number): (usize, u16),
        sense: u16,
        begun: Nanos,
        corrected: Nanos,
    ) {
        if R::RECORDS {
            let retries = (sense & SENSE_MASK) / PAGE_TYPES as u16;
            let retrying = Nanos(self.retry_time.0 * u64::from(retries));
            let read = FlashRead {
                started: self.now,
                addressed: begun - self.timing.command,
                sensed: corrected - retrying,
                corrected,
            };
            self.recorder.read_started(number, self.channel_of[index], read);
        }
    }

    /// Reports the current activity of the dies to a new recorder.
    pub(crate) fn record_restored(&mut self) {
        self.recorder = R::default();
        for index in 0..self.dies.len() {
            if let DieState::Busy(operation) | DieState::Sensing(operation) = self.dies[index].state
            {
                self.record_activity(index, operation);
            }
        }
    }
}
