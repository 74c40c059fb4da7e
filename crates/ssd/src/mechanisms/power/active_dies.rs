//! Limit on the number of dies that read, program or erase at the same time.
//!
//! A die is active from the command to the end of its operation or sensing; transfers to the
//! controller do not count. A suspended operation keeps the die active, so that the read that
//! suspended it does not wait. Dies become active in the order of their requests.

use std::collections::VecDeque;

use writecliff_base::saved;

use crate::DeviceConfig;
use crate::die::Die;

#[derive(Clone, Debug, Default)]
pub(crate) struct ActiveDies {
    most: u32,
    active: u32,
    is_active: Vec<bool>,
    waiting: VecDeque<u16>,
    waits: Vec<bool>,
}

// The operations of the dies imply which dies are active.
saved! { ActiveDies { waiting } }

impl ActiveDies {
    fn activate(&mut self, die: usize) {
        self.active += u32::from(!self.is_active[die]);
        debug_assert!(self.active as usize <= self.is_active.len(), "a die is counted twice");
        self.is_active[die] = true;
    }

    fn wait(&mut self, die: usize) {
        if !self.waits[die] {
            self.waits[die] = true;
            self.waiting.push_back(die as u16);
        }
    }

    /// Returns `None` for a drive without power states.
    pub(crate) fn of(config: &DeviceConfig) -> Option<Box<Self>> {
        let dies = config.geometry.dies;
        let power = config.sections.power.as_ref()?;
        (!power.max_active_dies.is_empty()).then(|| {
            Box::new(Self {
                most: config.max_active_dies().unwrap_or(dies),
                is_active: vec![false; dies as usize],
                waits: vec![false; dies as usize],
                ..Self::default()
            })
        })
    }

    /// Returns `false` if the die, which is about to start an operation, must wait.
    pub(crate) fn admits(&mut self, die: usize) -> bool {
        let is_admitted = self.is_active[die] || self.active < self.most;
        if is_admitted {
            self.activate(die);
        } else {
            self.wait(die);
        }
        is_admitted
    }

    /// Handles the end of an operation or of sensing.
    pub(crate) fn released(&mut self, die: usize) {
        debug_assert!(self.active > 0 || !self.is_active[die], "an active die was not counted");
        self.active -= u32::from(self.is_active[die]);
        self.is_active[die] = false;
    }

    /// Removes and returns the next die in the queue that may start an operation now.
    pub(crate) fn next_die(&mut self) -> Option<usize> {
        let may = self.active < self.most;
        let die = usize::from(may.then(|| self.waiting.pop_front()).flatten()?);
        self.waits[die] = false;
        Some(die)
    }

    pub(crate) fn cleared(&mut self) {
        self.active = 0;
        self.is_active.fill(false);
        self.waiting.clear();
        self.waits.fill(false);
    }

    /// Starts waiting dies if the power state now has a higher limit.
    pub(crate) fn resumed(&mut self, dies: &[Die]) {
        let waiting = std::mem::take(&mut self.waiting);
        self.cleared();
        waiting.into_iter().map(usize::from).filter(|&die| die < dies.len()).for_each(|die| {
            self.wait(die);
        });
        let active = dies.iter().enumerate().filter(|(_, die)| die.is_active());
        active.for_each(|(die, _)| self.activate(die));
    }
}
