//! Independent planes: the planes of a die serve host reads of different pages at once.
//!
//! A host read of a page occupies its plane from the command until its data have been transferred.
//! Other work occupies the whole die: it starts when no plane is reading, and later reads wait. For
//! a limit on active dies, a die is active until the data of its last plane have been transferred.

use writecliff_base::{Nanos, saved};

use crate::backend::HostData;
use crate::die::{PLANE_SHIFT, SENSE_MASK, SENSE_PLANE};
use crate::{Backend, DeviceConfig, FlashOperation, Lane, ReadFor, Recorder, SsdEvent};

/// Maximum number of planes per die that read independently.
pub const PLANES_MAX: usize = 1 << (u16::BITS - PLANE_SHIFT);

#[derive(Clone, Debug)]
pub(crate) struct Planes {
    /// Set of busy planes for each die.
    busy: Vec<u8>,
    /// Read that is being sensed, by die and plane; `None` during the transfer of its data.
    sensing: Vec<Option<FlashOperation>>,
}

pub(crate) fn plane_mark(plane: u32) -> u16 {
    debug_assert!((plane as usize) < PLANES_MAX, "the mark cannot hold the plane");
    SENSE_PLANE | (plane as u16) << PLANE_SHIFT
}

fn plane_of(operation: FlashOperation) -> Option<usize> {
    match operation {
        FlashOperation::Read { sense, .. } if sense & SENSE_PLANE > 0 => {
            Some(usize::from(sense >> PLANE_SHIFT))
        }
        _ => None,
    }
}

impl Planes {
    fn start_plane<R: Recorder>(
        &mut self,
        backend: &mut Backend<R>,
        index: usize,
        operation: FlashOperation,
        begun: Nanos,
    ) {
        let FlashOperation::Read { sense, .. } = operation else { return };
        let Some(plane) = plane_of(operation) else { return };
        let sense = sense & SENSE_MASK;
        let sensed = begun + backend.times.sensing(sense);
        backend.busy.read += (sensed - begun).0;
        debug_assert_eq!(self.busy[index] >> plane & 1, 0, "a plane serves one read at a time");
        self.busy[index] |= 1 << plane;
        let reader = index * PLANES_MAX + plane;
        debug_assert!(self.sensing[reader].is_none(), "a plane senses one page at a time");
        self.sensing[reader] = Some(operation);
        let reader = reader as u16;
        backend.queue.push(Lane::Sensed, sensed, SsdEvent::PlaneDone { reader });
        let read = backend.times.recorded_read(backend.now, sense, begun, sensed);
        let channel = backend.channels.of_die[index];
        backend.recorder.read_started(self.read_number(reader), channel, read);
    }

    /// Returns the recorder's number for reads of a plane; these numbers follow the die numbers.
    fn read_number(&self, reader: u16) -> u16 {
        (self.busy.len() as u16).saturating_add(reader)
    }

    /// Returns `None` if a read takes all planes.
    pub(crate) fn of(config: &DeviceConfig) -> Option<Box<Self>> {
        let dies = config.geometry.dies as usize;
        let new = || Box::new(Self { busy: vec![0; dies], sensing: vec![None; dies * PLANES_MAX] });
        config.timing.independent_plane_reads.then(new)
    }

    /// Starts a read whose command reached a free die at `begun`, and reads of its other planes.
    pub(crate) fn start_first<R: Recorder>(
        &mut self,
        backend: &mut Backend<R>,
        die: usize,
        operation: FlashOperation,
        begun: Nanos,
    ) {
        backend.dies[die].read_planes();
        self.start_plane(backend, die, operation, begun);
        self.start_reads(backend, die);
    }

    /// Starts the reads that wait for free planes, unless other work has waited long enough.
    pub(crate) fn start_reads<R: Recorder>(&mut self, backend: &mut Backend<R>, die: usize) {
        loop {
            let reads_in_a_row_max = backend.reads_in_a_row;
            let queues = &mut backend.dies[die];
            if queues.has_other_work() && queues.reads_in_a_row >= reads_in_a_row_max {
                return;
            }
            let busy = self.busy[die];
            let mut waiting = queues.reads.iter().map_while(|&operation| plane_of(operation));
            let Some(place) = waiting.position(|plane| busy >> plane & 1 == 0) else { return };
            let operation = queues.reads.remove(place);
            queues.reads_in_a_row += 1;
            let begun = backend.take_channel(die, backend.times.flash.command);
            self.start_plane(backend, die, operation, begun);
        }
    }

    /// Handles the end of tR on a plane, or of its transfer. Returns the die and, after tR,
    /// the recorder's number of the host read and its data.
    pub(crate) fn done<R: Recorder>(
        &mut self,
        backend: &mut Backend<R>,
        reader: u16,
    ) -> (usize, Option<(u16, HostData)>) {
        let die = usize::from(reader) / PLANES_MAX;
        let plane = 1 << (usize::from(reader) % PLANES_MAX);
        debug_assert!(self.busy[die] & plane > 0, "a plane that was not busy is done");
        let Some(operation) = self.sensing[usize::from(reader)].take() else {
            self.busy[die] &= !plane;
            if self.busy[die] > 0 {
                self.start_reads(backend, die);
            } else {
                backend.dies[die].end();
            }
            return (die, None);
        };
        let FlashOperation::Read { slots, purpose: ReadFor::Host { command }, .. } = operation
        else {
            unreachable!("only host reads take a plane");
        };
        let transfer = backend.times.transfer(slots);
        let at = backend.take_channel(die, transfer);
        let read = self.read_number(reader);
        backend.recorder.read_transferred(read, at - transfer, at);
        backend.queue.push(Lane::DieShort, at, SsdEvent::PlaneDone { reader });
        let data = HostData { command, slots: u32::from(slots), at };
        (die, Some((read, data)))
    }

    pub(crate) fn cleared(&mut self) {
        self.busy.fill(0);
        self.sensing.fill(None);
    }
}

saved! { Planes {} }
