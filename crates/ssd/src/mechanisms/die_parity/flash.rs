//! Operations of parity across dies: programs of parity, and reads of stripes to rebuild data.

use writecliff_base::Ppa;
use writecliff_flash::geometry::FlashLocation;
use writecliff_ftl::ProgramUnit;
use writecliff_ftl::frontier::FrontierId;

use crate::attribution::Recorder;
use crate::backend::Backend;
use crate::die::{FlashOperation, PAGE_TYPES, ReadFor, SENSE_FAILING, SENSE_STRIPE};
use crate::fill::NO_FILL;

impl<R: Recorder> Backend<R> {
    /// Reads for a host command, from the stripe if the die cannot return the data.
    #[inline]
    pub fn host_read_or_rebuild(&mut self, command: u16, location: FlashLocation, slots: u32) {
        if self.die_parity.is_none() {
            return self.host_read(command, location, slots);
        }
        self.host_read_protected(command, &location, slots);
    }

    #[cold]
    #[inline(never)]
    fn host_read_protected(&mut self, command: u16, location: &FlashLocation, slots: u32) {
        let purpose = ReadFor::Host { command };
        if self.is_lost(location.die) {
            let sense = location.page_type as u16 | SENSE_STRIPE;
            let reads = self.read_stripe(location.die, sense, slots, purpose);
            self.note_failed(reads);
            if let Some(parity) = &mut self.die_parity {
                parity.more_reads += i64::from(reads) - 1;
            }
            return;
        }
        let mut sense = self.sense(location, slots);
        let has_failed = self.ecc.as_mut().is_some_and(|ecc| ecc.take_failed());
        if has_failed && self.may_rebuild(location, slots) {
            sense |= SENSE_FAILING;
            if let Some(parity) = &mut self.die_parity {
                parity.more_reads += i64::from(parity.config.stripe - 1);
            }
        }
        let operation = FlashOperation::Read { sense, slots: slots as u8, purpose };
        self.queue_read(location.die as usize, operation);
    }

    /// Reads for a fill. The stripe is read at the same time as a failing read, not after it: the
    /// program waits for the last of these reads.
    #[cold]
    #[inline(never)]
    pub(crate) fn fill_read_protected(&mut self, frontier: FrontierId, from: Ppa, slots: u32) {
        let (fill, location) = (self.fills.current(frontier), self.geometry.locate(from));
        let purpose = ReadFor::Fill { fill };
        let page_type = location.page_type as u16;
        let mut reads = 0;
        if self.is_lost(location.die) {
            reads += self.read_stripe(location.die, page_type, slots, purpose);
        } else {
            let sense = self.sense(&location, slots);
            let operation = FlashOperation::Read { sense, slots: slots as u8, purpose };
            self.work(location.die as usize, operation);
            reads += 1;
            if self.ecc.as_mut().is_some_and(|ecc| ecc.take_failed()) {
                reads += self.read_stripe(location.die, page_type, slots, purpose);
            }
        }
        self.fills.get(fill).reads_pending += reads;
    }

    /// Returns the number of flash reads that a host command waits for after it started `reads`.
    #[inline]
    pub(crate) fn with_stripes(&mut self, reads: u32) -> u32 {
        let Some(parity) = &mut self.die_parity else { return reads };
        (i64::from(reads) + std::mem::take(&mut parity.more_reads)) as u32
    }

    /// Counts a failed host read, which `reads` reads of the stripe answer; 0 if they cannot.
    fn note_failed(&mut self, reads: u32) {
        let Some(parity) = &mut self.die_parity else { return };
        if reads > 0 {
            parity.counts.rebuilt += 1;
        } else {
            parity.counts.unrecovered += 1;
        }
    }

    /// Flash reads that neither a retry nor parity has corrected. Reads for relocation count only
    /// on drives without `[die_parity]`.
    pub(crate) fn lost_reads(&self) -> u64 {
        match (&self.die_parity, &self.ecc) {
            (Some(parity), _) => parity.counts.unrecovered,
            (None, Some(ecc)) => ecc.counters.uncorrectable_reads,
            (None, None) => 0,
        }
    }

    fn is_lost(&self, die: u32) -> bool {
        self.die_parity.as_ref().is_some_and(|parity| parity.lost == Some(die))
    }

    /// Returns `true` if the other dies of the stripe can rebuild the data of a failed read; counts
    /// the outcome.
    fn may_rebuild(&mut self, location: &FlashLocation, slots: u32) -> bool {
        let Some(stripes) = self.geometry.stripes() else {
            self.note_failed(0);
            return false;
        };
        let others: Vec<u32> = stripes.others(location.die).collect();
        let mut may = true;
        for die in others {
            let other = FlashLocation { die, ..*location };
            self.sense(&other, slots);
            let fails = self.ecc.as_mut().is_some_and(|ecc| ecc.take_failed());
            may &= !fails && !self.is_lost(die);
        }
        self.note_failed(u32::from(may));
        may
    }

    /// Reads all other dies of the stripe; returns their number, 0 if another of them is lost.
    fn read_stripe(&mut self, die: u32, sense: u16, slots: u32, purpose: ReadFor) -> u32 {
        let others = self.geometry.stripes().map(|stripes| stripes.others(die).collect());
        let others: Vec<u32> = others.unwrap_or_default();
        if others.iter().any(|&other| self.is_lost(other)) {
            return 0;
        }
        self.read_dies(&others, FlashOperation::Read { sense, slots: slots as u8, purpose });
        others.len() as u32
    }

    fn read_dies(&mut self, dies: &[u32], operation: FlashOperation) {
        let is_host =
            matches!(operation, FlashOperation::Read { purpose: ReadFor::Host { .. }, .. });
        for &die in dies {
            if is_host {
                self.queue_read(die as usize, operation);
            } else {
                self.work(die as usize, operation);
            }
        }
    }

    /// Handles the end of a read: if the last retry of a host read has failed, reads its stripe.
    #[cold]
    #[inline(never)]
    pub(crate) fn sensed_for_stripe(&mut self, die: usize, operation: FlashOperation) {
        let FlashOperation::Read { sense, slots, purpose } = operation else { return };
        if sense & SENSE_FAILING == 0 {
            return;
        }
        let sense = (sense % PAGE_TYPES as u16) | SENSE_STRIPE;
        let others = self.geometry.stripes().map(|stripes| stripes.others(die as u32).collect());
        let others: Vec<u32> = others.unwrap_or_default();
        self.read_dies(&others, FlashOperation::Read { sense, slots, purpose });
    }

    /// Programs the parity with a program unit, if no other data of its stripe follow.
    #[cold]
    #[inline(never)]
    pub(crate) fn program_parity(&mut self, unit: &ProgramUnit) {
        let (Some(parity), Some(stripes)) = (&mut self.die_parity, self.geometry.stripes()) else {
            return;
        };
        let (row, place) = self.geometry.row_and_place(unit.unit);
        let Some(die) = stripes.parity_behind(row, place, parity.lost) else { return };
        parity.counts.programs += 1;
        let page_type = self.geometry.program_type(unit.unit) as u8;
        self.work(die as usize, FlashOperation::Program { fill: NO_FILL, page_type });
    }
}
