//! Failure of a die: the stripe answers reads of its data, which the firmware relocates.

use writecliff_base::Nanos;

use crate::attribution::Recorder;
use crate::mechanisms::die_parity::DieParityCounters;
use crate::ssd::Ssd;

impl<R: Recorder> Ssd<R> {
    /// Fails a die, which answers no further reads. Its current operation still ends.
    ///
    /// # Errors
    /// Fails without a section `[die_parity]`, if the drive does not have the die or has already
    /// lost a die, and if the other dies cannot hold the user capacity.
    pub fn lose_die(&mut self, die: u32) -> Result<(), String> {
        let now = self.backend.now;
        let Some(parity) = &mut self.backend.die_parity else {
            return Err("the drive has no section [die_parity]".to_owned());
        };
        if let Some(lost) = parity.lost {
            return Err(format!("the drive has already lost die {lost}"));
        }
        let dies = self.config.geometry.dies;
        if die >= dies {
            return Err(format!("die is {die}; it must be 0 to {}", dies - 1));
        }
        self.ftl.lose_die(die)?;
        parity.lose(die, now);
        Ok(())
    }

    /// Returns `true` if some data of a lost die are not relocated yet.
    pub fn is_relocating(&self) -> bool {
        self.backend.die_parity.as_ref().is_some_and(|parity| parity.is_relocating())
    }

    /// Runs the relocations that are due until now.
    #[inline]
    pub(crate) fn repair(&mut self) {
        let now = self.backend.now;
        while self.repair_due(now).is_some() {
            self.repair_one();
        }
    }

    /// Returns the time of the next relocation from a lost die, if not after `until`.
    #[inline]
    pub(crate) fn repair_due(&self, until: Nanos) -> Option<Nanos> {
        self.backend.die_parity.as_ref().and_then(|parity| parity.due(until))
    }

    /// Relocates the data of a lost die in the reclaim unit that is due.
    #[cold]
    pub(crate) fn repair_one(&mut self) {
        let next = self.backend.die_parity.as_ref().and_then(|parity| parity.next());
        let Some((die, unit)) = next else { return };
        if self.backend.fills.outstanding().count() >= self.config.geometry.dies as usize {
            // Relocation is no faster than the dies program.
            self.backend.die_parity.as_mut().into_iter().for_each(|parity| parity.postpone());
            return;
        }
        let moved = self.ftl.relocate_from_die(unit, die, &mut self.backend);
        let units = self.config.geometry.reclaim_units;
        if let Some(parity) = &mut self.backend.die_parity {
            parity.relocated(units, moved);
        }
    }

    /// Returns the number of flash reads that a host command waits for after it started `reads`.
    #[inline]
    pub(crate) fn reads_of_stripes(&mut self, reads: u32) -> u32 {
        let Some(parity) = &mut self.backend.die_parity else { return reads };
        (i64::from(reads) + std::mem::take(&mut parity.more_reads)) as u32
    }

    /// Slots of parity programmed so far.
    #[inline]
    pub(crate) fn parity_slots(&self) -> u64 {
        self.ftl.parity_programs() * u64::from(self.config.geometry.slots_per_program_unit)
    }

    pub(crate) fn die_parity_counters(&self) -> Option<DieParityCounters> {
        let counts = self.backend.die_parity.as_ref()?.counts;
        Some(DieParityCounters { counts, parity_slots: self.parity_slots() })
    }
}
