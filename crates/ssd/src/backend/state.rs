//! Work in progress on the flash: saving and restoring it, and losing it in a power loss.

use writecliff_base::{Nanos, ReclaimUnitId, saved};
use writecliff_ftl::ProgramUnit;

use super::Backend;
use crate::die::{Die, DieState};
use crate::event::{END, EventQueue, Packed};
use crate::fill::{Fills, NO_FILL};
use crate::{FillId, FlashOperation, ReadFor, Recorder, SsdEvent};

saved! {
    <R: Recorder> Backend<R> {
        now, queue, fills, held_erases, [dies], channels, mechanisms, busy, (suspensions),
    } check resume
}

/// Latest time of a restored drive: no simulation from there reaches the end of time.
const LATEST: Nanos = Nanos(END.0 / 2);

#[derive(Debug, Default)]
pub(crate) struct Unfinished {
    /// Programs that have started.
    pub torn: Vec<ProgramUnit>,
    /// Full program units whose programming has not started.
    pub waiting: Vec<ProgramUnit>,
    /// Erases of blocks in the front's own flash that wait for programs.
    pub held_log_erases: u64,
    /// Other unfinished erases, each with its die.
    pub erases: Vec<(ReclaimUnitId, u32)>,
    /// Number of these erases that have started.
    pub erasing: u32,
    /// Time that the dies would need to finish these programs and erases.
    pub time: Nanos,
}

impl<R: Recorder> Backend<R> {
    /// Resumes the restored work. Returns `false` if the restored state is invalid.
    fn resume(&mut self) -> bool {
        let Self { geometry, front, queue, dies, .. } = self;
        // A saved drive has no outstanding host commands.
        let can_occur = |event: Packed| {
            use SsdEvent::{DieDone, Due, IdleCheck, Sensed};
            matches!(event.event(), Sensed { .. } | DieDone { .. } | IdleCheck | Due { .. })
        };
        let has = |unit: ReclaimUnitId| unit.0 < geometry.reclaim_units || front.has_block(unit);
        let can_erase = |operation: &FlashOperation| match *operation {
            FlashOperation::Erase { unit } => has(unit),
            _ => true,
        };
        let mut programs: Vec<(u32, FillId)> = Vec::new();
        for (index, die) in (0..).zip(&*dies) {
            let fills = die.operations().filter_map(|operation| match *operation {
                FlashOperation::Program { fill, .. } if fill != NO_FILL => Some(fill),
                _ => None,
            });
            programs.extend(fills.map(|fill| (index, fill)));
        }
        let ends = (0..).zip(&*dies).filter_map(|(index, die)| {
            die.scheduled(index).map(|(lane, event)| (lane, die.busy_until, event))
        });
        let is_possible = self.now <= LATEST
            && queue.next_time().is_none_or(|next| (self.now..=LATEST).contains(&next))
            && queue.events().all(can_occur)
            && queue.has_events(ends)
            && dies.iter().all(Die::is_possible)
            && dies.iter().flat_map(Die::operations).all(can_erase)
            && self.fills.resume(programs.iter().map(|&(_, fill)| fill), |frontier, unit| {
                front.can_fill(geometry, frontier, unit)
            })
            && programs.iter().all(|&(die, fill)| {
                let unit = self.fills.get(fill).unit;
                unit.is_some_and(|unit| geometry.die_of(unit.reclaim_unit, unit.unit) == die)
            })
            && self.held_erases.is_possible(&self.fills, has);
        let lost_die = self.mechanisms.die_parity.as_ref().and_then(|parity| parity.lost);
        if !is_possible || lost_die.is_some_and(|die| die as usize >= self.dies.len()) {
            return false;
        }
        self.recorder = R::default();
        for (index, die) in (0..).zip(&self.dies) {
            if let DieState::Busy(operation) | DieState::Sensing(operation) = die.state {
                self.recorder.die_does(index, self.now, Some(operation.cause(&self.fills)));
            }
        }
        if let Some(active) = &mut self.mechanisms.active_dies {
            active.resumed(&self.dies);
        }
        self.start_waiting();
        for index in 0..self.dies.len() {
            // The saved drive, unlike this drive, may have limited its active dies.
            if self.dies[index].is_idle() && self.dies[index].has_operations() {
                self.start_next(index);
            }
        }
        true
    }

    /// Returns `true` if the restored fills wait for exactly the reads of the dies, the held
    /// erases, and the mechanisms for which `awaiting` fills wait.
    pub(crate) fn completes_fills(&self, awaiting: impl Iterator<Item = FillId>) -> bool {
        let reads =
            self.dies.iter().flat_map(Die::operations).filter_map(|operation| match *operation {
                FlashOperation::Read { purpose: ReadFor::Fill { fill }, .. } => Some(fill),
                _ => None,
            });
        let erases = self.held_erases.all.iter().map(|held| held.fill);
        self.fills.wait_for(reads.chain(erases).chain(awaiting))
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
            self.held_erases.all.iter().partition(|held| self.front.has_block(held.unit));
        lost.held_log_erases = log.len() as u64;
        let dies = |unit| self.geometry.dies_of(unit);
        lost.erases
            .extend(main.into_iter().flat_map(|held| dies(held.unit).map(|die| (held.unit, die))));
        let outstanding: Vec<_> = self.fills.outstanding().collect();
        for fill in outstanding {
            let Some(unit) = self.fills.get(fill).unit else { continue };
            if begun.contains(&fill) { &mut lost.torn } else { &mut lost.waiting }.push(unit);
        }
        let front_flash = usize::from(self.front.frontier.index() == self.fills.current.len() - 1);
        let units = self.geometry.reclaim_units as usize + front_flash;
        self.fills = Fills::new(self.fills.current.len(), units, self.held_erases.is_volatile);
        self.queue = EventQueue::default();
        self.held_erases.all.clear();
        self.dies.fill(Die::default());
        self.mechanisms.cleared();
        self.channels.busy_until.fill(self.now);
        lost
    }
}
