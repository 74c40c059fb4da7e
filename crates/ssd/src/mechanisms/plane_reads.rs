//! Planes that read independently: planes of a die serve host reads of different pages at the same
//! time.
//!
//! A host read of a page takes its plane from the command until its data have left. Other work
//! takes the whole die: it starts when no plane reads any more, and later reads wait. A die
//! is active, as a limit on active dies counts it, until the data of its last plane have left.

use writecliff_base::{Nanos, Ppa};
use writecliff_flash::geometry::FlashLocation;

use crate::attribution::Recorder;
use crate::backend::{Backend, HostData};
use crate::config::DeviceConfig;
use crate::die::{
    DieState, FlashOperation, PAGE_TYPES, PLANE_SHIFT, ReadFor, SENSE_MASK, SENSE_PLANE,
};
use crate::event::{Lane, SsdEvent};

/// Maximum number of planes of a die that read independently.
pub const PLANES_MAX: usize = 1 << (u16::BITS - PLANE_SHIFT);

/// Reads in progress on the planes.
#[derive(Clone, Debug)]
pub(crate) struct Planes {
    /// Set of planes at work, by die.
    busy: Vec<u8>,
    /// Read that is being sensed, by die and plane; also `None` while its data are transferred.
    sensing: Vec<Option<FlashOperation>>,
}

impl Planes {
    /// `None` if a read takes all planes.
    pub(crate) fn of(config: &DeviceConfig) -> Option<Box<Self>> {
        let dies = config.geometry.dies as usize;
        config
            .timing
            .independent_plane_reads
            .then(|| Box::new(Self { busy: vec![0; dies], sensing: vec![None; dies * PLANES_MAX] }))
    }

    pub(crate) fn clear(&mut self) {
        self.busy.fill(0);
        self.sensing.fill(None);
    }
}

/// The plane of a read of one plane.
fn plane_of(operation: FlashOperation) -> Option<usize> {
    match operation {
        FlashOperation::Read { sense, .. } if sense & SENSE_PLANE > 0 => {
            Some(usize::from(sense >> PLANE_SHIFT))
        }
        _ => None,
    }
}

impl<R: Recorder> Backend<R> {
    pub(crate) fn has_planes(&self) -> bool {
        self.planes.is_some()
    }

    /// The plane that a read of an address takes; 0 if reads take all of them.
    pub(crate) fn plane_of(&self, ppa: Ppa) -> u32 {
        if self.has_planes() { self.geometry.plane_of(ppa) } else { 0 }
    }

    /// Reads `slots` slots of a page for a host command.
    pub(crate) fn host_read_page(
        &mut self,
        command: u16,
        (location, plane): (FlashLocation, u32),
        slots: u32,
    ) {
        if !self.has_planes() {
            return self.host_read_or_rebuild(command, location, slots);
        }
        let sense = self.sense(&location, slots) | SENSE_PLANE | (plane as u16) << PLANE_SHIFT;
        let purpose = ReadFor::Host { command };
        let operation = FlashOperation::Read { sense, slots: slots as u8, purpose };
        self.queue_read(location.die as usize, operation);
    }

    /// Starts a read on one plane of a die that was free, and reads that wait for other planes.
    #[cold]
    #[inline(never)]
    pub(crate) fn start_planes(&mut self, index: usize, operation: FlashOperation, begun: Nanos) {
        self.dies[index].state = DieState::Reading;
        self.start_plane(index, operation, begun);
        self.start_other_planes(index);
    }

    /// Starts the reads that wait for planes that are free now, unless other work has waited
    /// long enough.
    #[cold]
    #[inline(never)]
    pub(crate) fn start_other_planes(&mut self, index: usize) {
        let Some(planes) = &self.planes else { return };
        let busy = planes.busy[index];
        let die = &mut self.dies[index];
        let has_work = die.suspended.is_some() || !die.work.is_empty();
        if has_work && die.reads_in_a_row >= self.reads_in_a_row {
            return;
        }
        let mut waiting = die.reads.iter().map_while(|&operation| plane_of(operation));
        let Some(place) = waiting.position(|plane| busy >> plane & 1 == 0) else { return };
        let Some(operation) = die.reads.remove(place) else { return };
        die.begin_read();
        let begun = self.take_channel(index, self.timing.command);
        self.start_plane(index, operation, begun);
        self.start_other_planes(index);
    }

    fn start_plane(&mut self, index: usize, operation: FlashOperation, begun: Nanos) {
        let FlashOperation::Read { sense, .. } = operation else { return };
        let sense = sense & SENSE_MASK;
        let sensed = begun + self.read_times[usize::from(sense) % PAGE_TYPES];
        let sensed = self.sensed_otherwise(begun, sensed, sense);
        self.busy.read += (sensed - begun).0;
        let (Some(planes), Some(plane)) = (&mut self.planes, plane_of(operation)) else { return };
        planes.busy[index] |= 1 << plane;
        let reader = index * PLANES_MAX + plane;
        planes.sensing[reader] = Some(operation);
        let reader = reader as u16;
        self.queue.push(Lane::Sensed, sensed, SsdEvent::PlaneDone { reader });
        self.record_read((index, self.read_number(reader)), sense, begun, sensed);
    }

    /// The recorder's number for the reads of a plane, after the numbers of dies.
    pub(crate) fn read_number(&self, reader: u16) -> u16 {
        (self.dies.len() as u16).saturating_add(reader)
    }

    /// Handles the end of tR on a plane, or of the transfer of its data. Returns the die and the
    /// data of the host read after tR.
    pub(crate) fn plane_done(&mut self, reader: u16) -> Option<(u16, HostData)> {
        let index = usize::from(reader) / PLANES_MAX;
        let planes = self.planes.as_mut()?;
        let Some(operation) = planes.sensing[usize::from(reader)].take() else {
            self.plane_free(index, usize::from(reader) % PLANES_MAX);
            return None;
        };
        let FlashOperation::Read { slots, purpose: ReadFor::Host { command }, .. } = operation
        else {
            return None;
        };
        let transfer = Nanos(self.slot_transfer.0 * u64::from(slots));
        let at = self.take_channel(index, transfer);
        let number = self.read_number(reader);
        self.recorder.read_transferred(number, at - transfer, at);
        self.queue.push(Lane::DieShort, at, SsdEvent::PlaneDone { reader });
        Some((index as u16, HostData { command, slots: u32::from(slots), at }))
    }

    fn plane_free(&mut self, index: usize, plane: usize) {
        let Some(planes) = &mut self.planes else { return };
        planes.busy[index] &= !(1 << plane);
        if planes.busy[index] > 0 {
            return self.start_other_planes(index);
        }
        self.dies[index].state = DieState::Idle;
        self.release_die(index);
        if self.dies[index].state == DieState::Idle {
            self.start_next(index);
        }
    }
}
