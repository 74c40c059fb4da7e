//! Durations of flash operations.

use writecliff_base::Nanos;
use writecliff_flash::{FlashTiming, SLOT_BYTES};

use crate::attribution::FlashRead;
use crate::die::{
    FRONT_MEDIUM, MEDIA, PAGE_TYPES, PROGRAM_TYPES, SENSE_MASK, SENSE_MEDIUM, Suspension, is_plain,
    medium_of_sense, program_medium,
};
use crate::mechanisms::Mechanisms;
use crate::{DeviceConfig, FlashOperation, front};

/// Durations of flash operations, in fixed-size tables.
#[derive(Clone, Debug)]
pub(crate) struct Times {
    pub flash: FlashTiming,
    /// tR by page type.
    reads: [Nanos; PAGE_TYPES],
    /// tPROG by program type.
    programs: [Nanos; PROGRAM_TYPES],
    /// Channel time of a program, by program type.
    loads: [Nanos; PROGRAM_TYPES],
    /// tR by medium.
    media: [Nanos; MEDIA],
    slot_transfer: Nanos,
    retry: Nanos,
}

/// Returns the time until an operation of `duration`, with `left` remaining, has run for a multiple
/// of `step`. Before the operation starts, returns the time until its start.
fn time_until_step(duration: Nanos, left: Nanos, step: Nanos) -> Nanos {
    if step == Nanos::ZERO {
        return Nanos::ZERO;
    }
    match duration.0.checked_sub(left.0) {
        Some(elapsed) => Nanos(elapsed.next_multiple_of(step.0) - elapsed),
        None => left - duration,
    }
}

impl Times {
    pub(crate) fn new(config: &DeviceConfig) -> Self {
        let (geometry, flash) = (&config.geometry, config.timing.clone());
        let load = |bytes| flash.command + flash.bus.time_for(bytes);
        let page = load(u64::from(geometry.slots_per_read_group * SLOT_BYTES));
        let mut times = Self {
            reads: std::array::from_fn(|page_type| flash.read_time(page_type as u32)),
            programs: std::array::from_fn(|page_type| flash.program_time(page_type as u32)),
            loads: [load(geometry.unit_bytes()); PROGRAM_TYPES],
            media: [Nanos::ZERO; MEDIA],
            slot_transfer: flash.bus.time_for(u64::from(SLOT_BYTES)),
            retry: config.sections.ecc.as_ref().map_or(Nanos::ZERO, |ecc| ecc.retry_time),
            flash,
        };
        let front = front::medium(config).map(|medium| (FRONT_MEDIUM, medium));
        for (number, medium) in front.into_iter().chain(Mechanisms::media(config)) {
            let kind = usize::from(program_medium(number));
            (times.programs[kind], times.loads[kind]) = (medium.program, page);
            times.media[usize::from(number)] = medium.read;
        }
        times
    }

    /// Returns the sensing time including all retries. `sense` must not carry a plane mark.
    #[inline]
    pub(crate) fn sensing(&self, sense: u16) -> Nanos {
        let first = self.reads[sense as usize % PAGE_TYPES];
        if is_plain(sense) { first } else { self.sensing_otherwise(first, sense) }
    }

    /// Returns the sensing time with retries, or the tR of a medium other than the FTL's flash.
    #[cold]
    fn sensing_otherwise(&self, first: Nanos, sense: u16) -> Nanos {
        if sense & SENSE_MEDIUM > 0 {
            return self.media[medium_of_sense(sense)];
        }
        first + self.retrying(sense)
    }

    fn retrying(&self, sense: u16) -> Nanos {
        Nanos(self.retry.0 * u64::from((sense & SENSE_MASK) / PAGE_TYPES as u16))
    }

    #[inline]
    pub(crate) fn transfer(&self, slots: u8) -> Nanos {
        Nanos(self.slot_transfer.0 * u64::from(slots))
    }

    /// Returns the channel time of a program, and the tPROG that follows.
    #[inline]
    pub(crate) fn program(&self, page_type: u8) -> (Nanos, Nanos) {
        let kind = page_type as usize % PROGRAM_TYPES;
        (self.loads[kind], self.programs[kind])
    }

    /// Returns the suspension of an operation of which `left` remains; `None` if it has none.
    pub(crate) fn suspension(&self, operation: FlashOperation, left: Nanos) -> Option<Suspension> {
        let flash = &self.flash;
        let (cost, after) = match operation {
            FlashOperation::Program { page_type, .. } => {
                let duration = self.programs[page_type as usize % PROGRAM_TYPES];
                let step = flash.program_suspend_step;
                (flash.program_suspend, time_until_step(duration, left, step))
            }
            FlashOperation::Upkeep { suspendable: true, .. } => {
                (flash.program_suspend, Nanos::ZERO)
            }
            FlashOperation::Erase { .. } => {
                let step = flash.erase_suspend_step;
                (flash.erase_suspend, time_until_step(flash.erase, left, step))
            }
            FlashOperation::Read { .. } | FlashOperation::Upkeep { .. } => return None,
        };
        cost.map(|cost| Suspension { after, cost })
    }

    /// Returns the times of a corrected read that starts at `now` and reaches the die at `begun`.
    #[inline]
    pub(crate) fn recorded_read(
        &self,
        now: Nanos,
        sense: u16,
        begun: Nanos,
        corrected: Nanos,
    ) -> FlashRead {
        debug_assert!(now <= begun && begun <= corrected, "the steps of a read are in order");
        let (addressed, sensed) = (begun - self.flash.command, corrected - self.retrying(sense));
        FlashRead { started: now, addressed, sensed, corrected }
    }
}
