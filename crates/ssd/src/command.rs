//! Host commands inside the drive.

use writecliff_base::{Lpn, Nanos};
use writecliff_flash::SLOT_BYTES;
use writecliff_host_interface::{
    Arrival, Barrier, Cause, Command, CommandTable, Frontend, Operation, Status,
};

use crate::backend::{HostData, Outcome};
use crate::config::ServiceOrder;
use crate::mechanisms::{Access, each};
use crate::{Backend, DeviceConfig, FillId, Lane, Recorder, SsdEvent};

#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    pub command: Command,
    pub slots: u32,
    /// Outstanding flash operations of a read; program units that a write or flush waits for.
    pub pending: u32,
    /// For reads: bytes not yet sent to the host.
    pub unsent: u32,
    pub status: Status,
}

impl InFlight {
    /// Returns the slot that contains the first byte.
    #[inline]
    pub(crate) fn first(&self) -> Lpn {
        Lpn((self.command.offset / u64::from(SLOT_BYTES)) as u32)
    }

    #[inline]
    pub(crate) fn access(&self, number: u16) -> Access<'_> {
        let (command, first, slots) = (&self.command, self.first(), self.slots);
        Access { command, first, slots, number: Some(number) }
    }
}

/// Many commands are outstanding, so they stay small.
const _: () = assert!(size_of::<InFlight>() == 48);

/// The commands in the drive, and their queues, firmware, barrier and link.
pub(crate) struct Commands {
    table: CommandTable<InFlight>,
    pub(crate) frontend: Frontend,
    pub(crate) barrier: Option<Box<Barrier>>,
    /// Additional firmware time of a read compared with other commands.
    longer_reads_by: Nanos,
    /// Additional firmware time of a write, which overlaps its data transfer.
    longer_writes_by: Nanos,
}

impl Commands {
    pub(crate) fn of(config: &DeviceConfig) -> Self {
        let controller = &config.controller;
        let has_barrier = controller.service_order == ServiceOrder::Barrier;
        Self {
            table: CommandTable::default(),
            frontend: Frontend::new(&config.link, controller.command_time, controller.latency),
            barrier: has_barrier.then(Box::default),
            longer_reads_by: controller.read_command_time - controller.command_time,
            longer_writes_by: controller.write_command_time - controller.command_time,
        }
    }

    /// Returns the number of commands that have started but not completed.
    #[inline]
    pub(crate) fn in_flight(&self) -> usize {
        self.table.in_flight()
    }

    pub(crate) fn assert_none(&self) {
        assert_eq!(self.in_flight() + self.frontend.waiting(), 0, "commands are outstanding");
    }

    #[inline]
    pub(crate) fn get(&mut self, number: u16) -> &mut InFlight {
        self.table.get(number)
    }

    /// Decodes a command that the host submitted at time `submitted`.
    #[inline(always)]
    pub(crate) fn decode(&mut self, command: &Command, submitted: Nanos, now: Nanos) -> Arrival {
        debug_assert!(submitted <= now, "decoded before it was submitted");
        let decoded = match command.operation {
            Operation::Read => self.frontend.decode(now, self.longer_reads_by),
            Operation::Write => self.frontend.decode_before(now, self.longer_writes_by),
            _ => self.frontend.decode(now, Nanos::ZERO),
        };
        Arrival { submitted, entered: now, decoded }
    }

    #[inline(always)]
    pub(crate) fn begin(&mut self, command: Command, slots: u32) -> u16 {
        let (unsent, status) = (command.length, Status::Success);
        self.table.insert(InFlight { command, slots, pending: 0, unsent, status })
    }

    #[inline(always)]
    pub(crate) fn end(&mut self, number: u16) -> InFlight {
        let ended = self.table.remove(number);
        debug_assert_eq!(ended.pending, 0, "a command completed before its flash operations");
        ended
    }

    /// Records the flash reads that a command waits for; if none, sends its data at once.
    #[inline(always)]
    pub(crate) fn awaits<R: Recorder>(
        &mut self,
        number: u16,
        reads: u32,
        backend: &mut Backend<R>,
    ) {
        self.get(number).pending = reads;
        if reads == 0 {
            self.send_all(number, backend);
        }
    }

    /// Records that data that a read waits for have arrived. Returns `true` if these were the last
    /// data, in which case the time until now is charged to `cause`.
    pub(crate) fn arrived<R: Recorder>(
        &mut self,
        number: u16,
        cause: Cause,
        backend: &mut Backend<R>,
    ) -> bool {
        let pending = &mut self.get(number).pending;
        debug_assert!(*pending > 0, "data for a read that waits for none");
        *pending -= 1;
        let is_last = *pending == 0;
        if is_last {
            backend.recorder.spent(number, cause, backend.now);
        }
        is_last
    }

    /// Sends the data of a read that waits for none.
    #[inline(always)]
    pub(crate) fn send_all<R: Recorder>(&mut self, number: u16, backend: &mut Backend<R>) {
        let bytes = self.get(number).command.length;
        let end = self.frontend.send(backend.now, bytes, true);
        backend.recorder.spent(number, Cause::Link, end);
        backend.queue.push(Lane::Completed, end, SsdEvent::Completed { command: number });
    }

    /// Sends data that a die has transferred. `read` is the recorder's number for the read.
    #[inline(always)]
    pub(crate) fn send_read<R: Recorder>(
        &mut self,
        (die, read): (u16, u16),
        data: HostData,
        backend: &mut Backend<R>,
    ) {
        let HostData { command: number, slots, at } = data;
        debug_assert!(at >= backend.now, "data are sent before they are there");
        let c = self.table.get(number);
        debug_assert!(c.pending > 0, "data for a read that waits for none");
        c.pending -= 1;
        let last = c.pending == 0;
        let bytes = if last { c.unsent } else { c.unsent.min(slots * SLOT_BYTES) };
        c.unsent -= bytes;
        let end = self.frontend.send(at, bytes, last);
        if last {
            backend.recorder.read_done(number, die, read);
            backend.recorder.spent(number, Cause::Link, end);
            backend.queue.push(Lane::Completed, end, SsdEvent::Completed { command: number });
        }
    }

    /// Handles the end of tR on a plane, after which it sends the data, or of their transfer. The
    /// die is free after the transfer of the last plane.
    #[inline(never)]
    pub(crate) fn plane_done<R: Recorder>(&mut self, reader: u16, backend: &mut Backend<R>) {
        let mut ended = None;
        each!(backend, [plane_reads], m => ended = Some(m.done(backend, reader)));
        let Some((die, data)) = ended else { return };
        if backend.dies[die].is_idle() {
            let _: Outcome = backend.die_done(die);
        }
        if let Some((read, data)) = data {
            self.send_read((die as u16, read), data, backend);
        }
    }

    /// Completes the commands that waited only for a unit that `die` has programmed.
    #[inline(always)]
    pub(crate) fn programmed<R: Recorder>(
        &mut self,
        fill: FillId,
        die: u16,
        backend: &mut Backend<R>,
    ) {
        for number in backend.fills.take_waiting(fill) {
            let c = self.get(number);
            debug_assert!(c.pending > 0, "a unit for a command that waits for none");
            c.pending -= 1;
            if c.pending == 0 {
                let now = backend.now;
                backend.recorder.programmed(number, die, now);
                backend.queue.push(Lane::Completed, now, SsdEvent::Completed { command: number });
            }
        }
    }

    /// Drops all commands. The drive accepts commands again from `now` on.
    pub(crate) fn power_up(&mut self, now: Nanos) {
        self.table = CommandTable::default();
        self.frontend.power_up(now);
        self.barrier = self.barrier.is_some().then(Box::default);
    }
}
