//! Flash operations for parity across dies: programs of parity, and reads to rebuild data.

use writecliff_flash::FlashLocation;
use writecliff_ftl::ProgramUnit;

use super::{DieParity, DieParityCounts};
use crate::die::{PAGE_TYPES, SENSE_FAILING, SENSE_STRIPE};
use crate::fill::NO_FILL;
use crate::{Backend, DeviceConfig, FillId, FlashOperation, ReadFor, Recorder};

impl DieParity {
    fn is_lost(&self, die: u32) -> bool {
        self.lost == Some(die)
    }

    /// Counts a failed host read as rebuilt from its stripe, or as unrecovered.
    fn count_failed(&mut self, is_rebuilt: bool) {
        if is_rebuilt {
            self.counts.rebuilt += 1;
        } else {
            self.counts.unrecovered += 1;
        }
    }

    /// Returns `true` if the other dies of the stripe can rebuild the data of a failed read.
    fn may_rebuild<R: Recorder>(
        &self,
        backend: &mut Backend<R>,
        location: &FlashLocation,
        slots: u32,
    ) -> bool {
        let Some(stripes) = &backend.geometry.stripes else { return false };
        let mut may = true;
        for die in stripes.others(location.die) {
            let (_, fails) = backend.sense(&FlashLocation { die, ..*location }, slots);
            may &= !fails && !self.is_lost(die);
        }
        may
    }

    /// Reads the other dies of a stripe; returns their number, 0 if one of them is lost.
    fn read_stripe<R: Recorder>(
        &self,
        backend: &mut Backend<R>,
        die: u32,
        operation: FlashOperation,
    ) -> u32 {
        let stripes = &backend.geometry.stripes;
        if stripes
            .as_ref()
            .is_none_or(|stripes| stripes.others(die).any(|other| self.is_lost(other)))
        {
            return 0;
        }
        read_others(backend, die, operation)
    }

    pub(crate) fn of(config: &DeviceConfig) -> Option<Box<Self>> {
        let (counts, lost, next, more_reads) = (DieParityCounts::default(), None, None, 0);
        let section = config.sections.die_parity;
        section.map(|config| Box::new(Self { config, lost, next, counts, more_reads }))
    }

    /// Reads from the stripe if the die cannot return the data.
    #[cold]
    pub(crate) fn read_for_host<R: Recorder>(
        &mut self,
        backend: &mut Backend<R>,
        command: u16,
        location: &FlashLocation,
        slots: u32,
    ) {
        let purpose = ReadFor::Host { command };
        if self.is_lost(location.die) {
            let sense = location.page_type as u16 | SENSE_STRIPE;
            let operation = FlashOperation::Read { sense, slots: slots as u8, purpose };
            let reads = self.read_stripe(backend, location.die, operation);
            self.count_failed(reads > 0);
            self.more_reads += i64::from(reads) - 1;
            return;
        }
        let (mut sense, fails) = backend.sense(location, slots);
        if fails {
            let is_rebuilt = self.may_rebuild(backend, location, slots);
            self.count_failed(is_rebuilt);
            if is_rebuilt {
                sense |= SENSE_FAILING;
                self.more_reads += i64::from(self.config.stripe - 1);
            }
        }
        let operation = FlashOperation::Read { sense, slots: slots as u8, purpose };
        backend.queue_read(location.die as usize, operation);
    }

    /// Returns the number of flash reads that a host command with `queued` reads waits for.
    pub(crate) fn awaited_reads(&mut self, queued: u32) -> u32 {
        debug_assert!(i64::from(queued) + self.more_reads >= 0, "fewer reads than none");
        (i64::from(queued) + std::mem::take(&mut self.more_reads)) as u32
    }

    /// Reads the stripe together with a failing read: the program waits for the last of them.
    #[cold]
    pub(crate) fn read_for_fill<R: Recorder>(
        &mut self,
        backend: &mut Backend<R>,
        fill: FillId,
        location: &FlashLocation,
        slots: u32,
    ) {
        let read = |sense| {
            let purpose = ReadFor::Fill { fill };
            FlashOperation::Read { sense, slots: slots as u8, purpose }
        };
        let of_stripe = read(location.page_type as u16);
        let reads = if self.is_lost(location.die) {
            self.read_stripe(backend, location.die, of_stripe)
        } else {
            let (sense, fails) = backend.sense(location, slots);
            backend.work(location.die as usize, read(sense));
            1 + if fails { self.read_stripe(backend, location.die, of_stripe) } else { 0 }
        };
        backend.fills.get(fill).reads_pending += reads;
    }

    /// Programs the parity together with a program unit if no other data of its stripe follow.
    #[cold]
    pub(crate) fn program_queued<R: Recorder>(
        &mut self,
        backend: &mut Backend<R>,
        unit: &ProgramUnit,
    ) {
        let geometry = &backend.geometry;
        let Some(stripes) = &geometry.stripes else { return };
        let (row, place) = geometry.row_and_place(unit.unit);
        let Some(die) = stripes.parity_behind(row, place, self.lost) else { return };
        self.counts.programs += 1;
        let page_type = geometry.program_type(unit.unit) as u8;
        backend.work(die as usize, FlashOperation::Program { fill: NO_FILL, page_type });
    }
}

/// Reads the stripe of a host read whose last retry has failed.
#[cold]
pub(crate) fn sensed<R: Recorder>(backend: &mut Backend<R>, die: usize, read: FlashOperation) {
    let FlashOperation::Read { sense, slots, purpose } = read else { return };
    if sense & SENSE_FAILING > 0 {
        let sense = (sense % PAGE_TYPES as u16) | SENSE_STRIPE;
        read_others(backend, die as u32, FlashOperation::Read { sense, slots, purpose });
    }
}

/// Reads all other dies of the stripe of `die` and returns their number.
fn read_others<R: Recorder>(backend: &mut Backend<R>, die: u32, operation: FlashOperation) -> u32 {
    let Some(stripes) = &backend.geometry.stripes else { return 0 };
    let mut reads = 0;
    for other in stripes.others(die) {
        if let FlashOperation::Read { purpose: ReadFor::Host { .. }, .. } = operation {
            backend.queue_read(other as usize, operation);
        } else {
            backend.work(other as usize, operation);
        }
        reads += 1;
    }
    reads
}
