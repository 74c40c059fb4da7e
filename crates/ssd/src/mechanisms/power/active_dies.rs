//! A limit on the number of dies that read, program or erase at the same time.
//!
//! A die is active from the command to the end of its operation, or of sensing: transfers to the
//! controller do not count. A suspended operation keeps the die active, so that the read that
//! suspended it does not wait. Dies become active in the order of their requests.

use std::collections::VecDeque;

use writecliff_base::codec::CodecError;
use writecliff_base::words::{WordReader, WordWriter};
use writecliff_host_interface::Cause;

use crate::attribution::Recorder;
use crate::backend::Backend;
use crate::config::DeviceConfig;
use crate::die::{Die, DieState, FlashOperation};

/// The active dies, and the dies that wait to become active.
#[derive(Clone, Debug)]
pub(crate) struct ActiveDies {
    most: u32,
    active: u32,
    is_active: Vec<bool>,
    waiting: VecDeque<u16>,
    waits: Vec<bool>,
}

impl ActiveDies {
    /// `None` for a drive without power states.
    pub(crate) fn of(config: &DeviceConfig) -> Option<Box<Self>> {
        let dies = config.geometry.dies;
        let power = config.sections.power.as_ref()?;
        (!power.max_active_dies.is_empty()).then(|| {
            Box::new(Self {
                most: config.max_active_dies().unwrap_or(dies),
                active: 0,
                is_active: vec![false; dies as usize],
                waiting: VecDeque::new(),
                waits: vec![false; dies as usize],
            })
        })
    }

    /// Returns `true` if the die is active or may become active now.
    fn allows(&self, die: usize) -> bool {
        self.is_active[die] || self.active < self.most
    }

    fn activate(&mut self, die: usize) {
        self.active += u32::from(!self.is_active[die]);
        self.is_active[die] = true;
    }

    /// Adds a die to the queue.
    fn wait(&mut self, die: usize) {
        if !self.waits[die] {
            self.waits[die] = true;
            self.waiting.push_back(die as u16);
        }
    }

    /// Records that the die is no longer active.
    fn release(&mut self, die: usize) {
        self.active -= u32::from(self.is_active[die]);
        self.is_active[die] = false;
    }

    /// Takes the next die from the queue, if the limit permits.
    fn next(&mut self) -> Option<usize> {
        let may = self.active < self.most;
        let die = usize::from(may.then(|| self.waiting.pop_front()).flatten()?);
        self.waits[die] = false;
        Some(die)
    }

    pub(crate) fn clear(&mut self) {
        self.active = 0;
        self.is_active.fill(false);
        self.waiting.clear();
        self.waits.fill(false);
    }
}

/// Returns `true` if an operation of the die other than a transfer by all planes is in progress.
fn works(die: &Die) -> bool {
    let running = match die.state {
        DieState::Sensing(_) | DieState::Reading => true,
        DieState::Busy(operation) => !matches!(operation, FlashOperation::Read { .. }),
        DieState::Idle | DieState::Sending => false,
    };
    running || die.suspended.is_some()
}

impl<R: Recorder> Backend<R> {
    /// Returns `true` if a quiet die may start an operation at once.
    #[inline]
    pub(crate) fn may_activate(&self, index: usize) -> bool {
        !R::LIMITS_DIES || self.active_dies.as_ref().is_none_or(|dies| dies.allows(index))
    }

    #[inline]
    pub(crate) fn activate(&mut self, index: usize) {
        if R::LIMITS_DIES
            && let Some(dies) = &mut self.active_dies
        {
            dies.activate(index);
        }
    }

    /// Queues a free die that has work but may not start it; returns `true` if the die waits.
    #[inline]
    pub(crate) fn waits_for_others(&mut self, index: usize) -> bool {
        if !R::LIMITS_DIES {
            return false;
        }
        let Some(dies) = &mut self.active_dies else { return false };
        let die = &mut self.dies[index];
        if die.suspended.is_none() && die.reads.is_empty() && die.work.is_empty() {
            return false;
        }
        if dies.allows(index) {
            dies.activate(index);
            return false;
        }
        dies.wait(index);
        die.state = DieState::Idle;
        self.recorder.die_does(index as u16, self.now, Some(Cause::Throttling));
        true
    }

    /// Called at the end of an operation or of sensing: lets another die start.
    #[inline]
    pub(crate) fn release_die(&mut self, index: usize) {
        if R::LIMITS_DIES
            && self.dies[index].suspended.is_none()
            && let Some(dies) = &mut self.active_dies
        {
            dies.release(index);
            self.activate_waiting();
        }
    }

    fn activate_waiting(&mut self) {
        while let Some(next) = self.active_dies.as_mut().and_then(|dies| dies.next()) {
            self.start_next(next);
        }
    }

    /// Saves the waiting dies; the operations of the dies imply which are active.
    pub(crate) fn save_active_dies(&self, out: &mut WordWriter) {
        if let Some(dies) = &self.active_dies {
            out.list(dies.waiting.iter(), |out, &die| out.put(die));
        }
    }

    /// Restores the waiting dies. If the power state now has a higher limit, some of them start.
    pub(crate) fn restore_active_dies(
        &mut self,
        input: &mut WordReader<'_>,
    ) -> Result<(), CodecError> {
        let Some(dies) = &mut self.active_dies else { return Ok(()) };
        dies.clear();
        let waiting: Vec<u16> = input.list(WordReader::narrow)?;
        for die in waiting.into_iter().map(usize::from).filter(|&die| die < self.dies.len()) {
            dies.wait(die);
        }
        for (index, die) in self.dies.iter().enumerate() {
            if works(die) {
                dies.activate(index);
            }
        }
        self.activate_waiting();
        Ok(())
    }
}
