//! The dies when the power fails.

use writecliff_base::{Nanos, ReclaimUnitId};
use writecliff_ftl::ProgramUnit;

use crate::attribution::Recorder;
use crate::backend::Backend;
use crate::die::{Die, DieState, FlashOperation};
use crate::event::EventQueue;
use crate::fill::Fills;

/// Flash operations that have not ended.
#[derive(Debug, Default)]
pub(crate) struct Unfinished {
    /// Programs that have started.
    pub torn: Vec<ProgramUnit>,
    /// Full program units whose programs have not started.
    pub waiting: Vec<ProgramUnit>,
    /// Erases of blocks of the front's own flash that wait for programs.
    pub held_log_erases: u64,
    /// Other erases that have not ended, with their dies.
    pub erases: Vec<(ReclaimUnitId, u32)>,
    /// Erases among them that have started.
    pub erasing: u32,
    /// Time that the dies would need to finish all of them.
    pub time: Nanos,
}

impl<R: Recorder> Backend<R> {
    /// Drops all operations, as a loss of power does.
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
                        time += self.program_times[page_type as usize % self.program_times.len()].0;
                    }
                    FlashOperation::Erase { unit } => {
                        lost.erases.push((unit, index));
                        lost.erasing += u32::from(is_begun);
                        time += self.timing.erase.0;
                    }
                    FlashOperation::Read { .. } | FlashOperation::Upkeep { .. } => {}
                }
            }
            lost.time = lost.time.max(Nanos(time));
        }
        let is_log = |unit: ReclaimUnitId| unit.0 >= self.front_unit.0;
        lost.held_log_erases =
            self.held_erases.iter().filter(|held| is_log(held.unit)).count() as u64;
        let held = self.held_erases.iter().filter(|held| !is_log(held.unit));
        let dies = |unit| self.geometry.dies_of(unit);
        lost.erases.extend(held.flat_map(|held| dies(held.unit).map(|die| (held.unit, die))));
        let outstanding: Vec<_> = self.fills.outstanding().collect();
        for fill in outstanding {
            let Some(unit) = self.fills.get(fill).unit else { continue };
            if begun.contains(&fill) { &mut lost.torn } else { &mut lost.waiting }.push(unit);
        }
        let own = usize::from(self.front_frontier.index() == self.fills.frontiers() - 1);
        let units = self.geometry.reclaim_units as usize + own;
        self.fills = Fills::new(self.fills.frontiers(), units);
        self.queue = EventQueue::default();
        self.held_erases.clear();
        self.dies.fill(Die::default());
        if let Some(dies) = &mut self.active_dies {
            dies.clear();
        }
        if let Some(planes) = &mut self.planes {
            planes.clear();
        }
        self.channels.fill(self.now);
        lost
    }
}
