//! A limit on the dies that work at once, as a power state sets it: `active_dies` of `[power]`.
//!
//! A die works while it senses, programs or erases. When as many work as may, one that has something
//! to do waits for its turn; turns go to dies in the order in which they began to wait. A suspended
//! operation gives its turn up and waits for another one.
//!
//! Drives without a limit pay nothing for it: reads are marked (`SENSE_LIMITED`) only with one, and
//! marked ones take the path of reads that are rare anyway.

use std::collections::VecDeque;

use writecliff_base::codec::CodecError;
use writecliff_base::words::{WordReader, WordWriter};
use writecliff_host_interface::Cause;

use super::Backend;
use crate::attribution::Recorder;
use crate::die::{DieState, FlashOperation, ReadFor};

pub(super) struct ActiveDies {
    limit: u32,
    working: u32,
    /// Dies that wait, the longest first.
    waiting: VecDeque<u16>,
    /// Whether each die is among them.
    waits: Vec<bool>,
}

impl ActiveDies {
    /// `None` if all dies may work.
    pub(super) fn of(limit: Option<u32>, dies: u32) -> Option<Box<Self>> {
        let limit = limit.filter(|&limit| limit < dies)?;
        let waits = vec![false; dies as usize];
        Some(Box::new(Self { limit, working: 0, waiting: VecDeque::new(), waits }))
    }

    /// The power is off: nothing works or waits.
    pub(super) fn reset(&mut self) {
        self.working = 0;
        self.waiting.clear();
        self.waits.fill(false);
    }

    fn wait(&mut self, die: usize) {
        if !std::mem::replace(&mut self.waits[die], true) {
            self.waiting.push_back(die as u16);
        }
    }

    /// The die whose turn it is.
    fn next(&mut self) -> Option<usize> {
        if self.working >= self.limit {
            return None;
        }
        let die = usize::from(self.waiting.pop_front()?);
        self.waits[die] = false;
        Some(die)
    }
}

/// Whether an operation in this state counts as work of its die.
fn works(state: DieState) -> bool {
    match state {
        DieState::Sensing(_) => true,
        DieState::Busy(operation) => !matches!(operation, FlashOperation::Read { .. }),
        DieState::Idle | DieState::Sending => false,
    }
}

impl<R: Recorder> Backend<R> {
    /// Takes a turn for a die that begins an operation; false: it waits.
    #[cold]
    #[inline(never)]
    pub(super) fn takes_turn(&mut self, index: usize) -> bool {
        let Some(limit) = &mut self.active_dies else { return true };
        if limit.working < limit.limit {
            limit.working += 1;
            return true;
        }
        limit.wait(index);
        self.dies[index].state = DieState::Idle;
        self.recorder.die_does(index as u16, self.now, Some(Cause::Throttling));
        false
    }

    /// The same for an operation that was taken from its queue, to which it returns.
    #[cold]
    #[inline(never)]
    pub(super) fn must_wait(&mut self, index: usize, operation: FlashOperation) -> bool {
        if self.takes_turn(index) {
            return false;
        }
        let die = &mut self.dies[index];
        match operation {
            FlashOperation::Read { purpose: ReadFor::Host { .. }, .. } => {
                die.reads_in_a_row = die.reads_in_a_row.saturating_sub(1);
                die.reads.push_front(operation);
            }
            _ => die.work.push_front(operation),
        }
        true
    }

    /// A die has ended its work, or suspended it: the next one may begin.
    #[inline]
    pub(super) fn has_worked(&mut self) {
        if self.active_dies.is_some() {
            self.ends_turn();
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn ends_turn(&mut self) {
        let Some(limit) = &mut self.active_dies else { return };
        limit.working -= 1;
        while let Some(die) = self.active_dies.as_mut().and_then(|limit| limit.next()) {
            self.start_next(die);
        }
    }

    pub(super) fn save_turns(&self, out: &mut WordWriter) {
        if let Some(limit) = &self.active_dies {
            out.list(limit.waiting.iter(), |out, &die| out.put(u64::from(die)));
        }
    }

    /// Restores who waits; the dies are restored.
    pub(super) fn restore_turns(&mut self, input: &mut WordReader<'_>) -> Result<(), CodecError> {
        let Some(limit) = &mut self.active_dies else { return Ok(()) };
        limit.reset();
        limit.working = self.dies.iter().filter(|die| works(die.state)).count() as u32;
        for die in input.list(WordReader::narrow::<u16>)? {
            if usize::from(die) < limit.waits.len() {
                limit.wait(usize::from(die));
            }
        }
        Ok(())
    }
}
