//! Work in progress on the flash: saving it, restoring it, and losing it in a power loss.

use writecliff_base::{Nanos, ReclaimUnitId, saved};
use writecliff_ftl::ProgramUnit;

use super::Backend;
use crate::attribution::Recorder;
use crate::die::{Die, DieState, FlashOperation};
use crate::event::{EventQueue, Packed, SsdEvent};
use crate::fill::Fills;
use crate::mechanisms::{FlashMechanism, flash_hook};

saved! {
    <R: Recorder> Backend<R> {
        now, queue, fills, held_erases, [dies], channels, mechanisms, busy, (suspensions),
    } check resume
}

/// Flash operations that have not ended.
#[derive(Debug, Default)]
pub(crate) struct Unfinished {
    /// Programs that have started.
    pub torn: Vec<ProgramUnit>,
    /// Full program units whose programs have not started.
    pub waiting: Vec<ProgramUnit>,
    /// Erases of blocks of the front's own flash that wait for programs.
    pub held_log_erases: u64,
    /// Other erases that have not ended, each with its die.
    pub erases: Vec<(ReclaimUnitId, u32)>,
    /// Number of these erases that have started.
    pub erasing: u32,
    /// Time that the dies would need to finish these programs and erases.
    pub time: Nanos,
}

impl<R: Recorder> Backend<R> {
    /// Resumes the restored work. Returns `false` if the restored state is impossible.
    fn resume(&mut self) -> bool {
        let (dies, fills) = (self.dies.len(), self.fills.len());
        // A saved drive has no outstanding host commands.
        let can_occur = |event: Packed| match event.event() {
            SsdEvent::Sensed { die } | SsdEvent::DieDone { die } => usize::from(die) < dies,
            event => event == SsdEvent::IdleCheck,
        };
        let lost_die = self.mechanisms.die_parity.as_ref().and_then(|parity| parity.lost);
        let is_possible = self.queue.events().all(|e| e.due().is_some() || can_occur(e))
            && self.dies.iter().all(|die| die.is_possible(fills))
            && self.held_erases.iter().all(|held| (held.fill as usize) < fills)
            && lost_die.is_none_or(|die| (die as usize) < dies);
        if !is_possible {
            return false;
        }
        self.recorder = R::default();
        for (index, die) in (0..).zip(&self.dies) {
            if let DieState::Busy(operation) | DieState::Sensing(operation) = die.state {
                self.recorder.die_does(index, self.now, Some(operation.cause(&self.fills)));
            }
        }
        flash_hook!(self, m => m.resumed(&self.dies));
        self.start_waiting();
        true
    }

    /// Drops all operations in a power loss, and returns them.
    pub(crate) fn power_off(&mut self) -> Unfinished {
        let mut lost = Unfinished::default();
        let mut begun = Vec::new();
        for (index, die) in (0..).zip(&self.dies) {
            let running = match die.state {
                DieState::Busy(operation) => Some(operation),
                _ => None,
            };
            let suspended = die.suspended.map(|suspended| suspended.operation);
            let started = running.into_iter().chain(suspended);
            let mut time = 0;
            for (operation, is_begun) in
                started.map(|o| (o, true)).chain(die.work.iter().map(|&o| (o, false)))
            {
                match operation {
                    FlashOperation::Program { fill, page_type } => {
                        if is_begun {
                            begun.push(fill);
                        }
                        time += self.times.program(page_type).1.0;
                    }
                    FlashOperation::Erase { unit } => {
                        lost.erases.push((unit, index));
                        lost.erasing += u32::from(is_begun);
                        time += self.times.flash.erase.0;
                    }
                    FlashOperation::Read { .. } | FlashOperation::Upkeep { .. } => {}
                }
            }
            lost.time = lost.time.max(Nanos(time));
        }
        let (log, main): (Vec<_>, Vec<_>) =
            self.held_erases.iter().partition(|held| self.front.has_block(held.unit));
        lost.held_log_erases = log.len() as u64;
        let dies = |unit| self.geometry.dies_of(unit);
        lost.erases
            .extend(main.into_iter().flat_map(|held| dies(held.unit).map(|die| (held.unit, die))));
        let outstanding: Vec<_> = self.fills.outstanding().collect();
        for fill in outstanding {
            let Some(unit) = self.fills.get(fill).unit else { continue };
            if begun.contains(&fill) { &mut lost.torn } else { &mut lost.waiting }.push(unit);
        }
        let front_flash = usize::from(self.front.frontier.index() == self.fills.frontiers() - 1);
        let units = self.geometry.reclaim_units as usize + front_flash;
        self.fills = Fills::new(self.fills.frontiers(), units);
        self.queue = EventQueue::default();
        self.held_erases.clear();
        self.dies.fill(Die::default());
        flash_hook!(self, m => m.cleared());
        self.channels.clear(self.now);
        lost
    }
}
