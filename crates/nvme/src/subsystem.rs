//! The NVM subsystem: one drive, and a controller for each connected host.

use std::collections::BTreeMap;

use writecliff_base::Bytes;

use crate::command::{Entry, NSID, Outcome, Reply, Request, Ticket, Work};
use crate::controller::{Controller, Kind};
use crate::drive::Drive;
use crate::erase::Sanitize;
use crate::error_log::ErrorEntry;
use crate::events::Event;
use crate::fabrics::{self, Association};
use crate::status::{Refusal, Status};
use crate::{admin, io, logs};

/// Opcode of fabrics commands on all queues.
const FABRICS: u8 = 0x7f;

/// Names and addresses of the subsystem, and the hosts allowed to connect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// NVMe Qualified Name (NQN) of the subsystem.
    pub nqn: String,
    /// Qualified names of the hosts allowed to connect; `None` allows every host.
    pub hosts: Option<Vec<String>>,
    /// Discovery log page entries.
    pub addresses: Vec<Address>,
    /// Maximum in-capsule data size on an I/O queue in bytes.
    pub in_capsule: u32,
    /// Maximum number of I/O queues per host.
    pub queues: u16,
    /// Maximum number of controllers; additional hosts are rejected but may retry.
    pub controllers: u16,
}

/// Address where hosts can connect to the subsystem, as listed in the discovery log page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Transport Type; 3 is TCP.
    pub transport: u8,
    /// Address Family; 1 is IPv4, 2 is IPv6.
    pub family: u8,
    /// Transport Address (TRADDR), for example `127.0.0.1`.
    pub address: String,
    /// Transport Service Identifier (TRSVCID), for example `4420`.
    pub service: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) access: Access,
    /// Identifiers of the I/O controllers, ascending.
    pub(crate) ids: Vec<u16>,
    pub(crate) in_use: u16,
    pub(crate) sanitize: Sanitize,
    /// Event that the current command raises for all controllers.
    pub(crate) raised: Option<Event>,
}

impl Shared {
    /// Handles the reset or removal of an enabled I/O controller.
    pub(crate) fn leave(&mut self, drive: &mut dyn Drive) {
        debug_assert!(self.in_use > 0, "a ready controller is in use");
        self.in_use -= 1;
        if self.in_use == 0 {
            drive.controller_reset();
        }
    }
}

pub(crate) struct Context<'a> {
    pub(crate) drive: &'a mut dyn Drive,
    pub(crate) controller: &'a mut Controller,
    pub(crate) shared: &'a mut Shared,
}

impl Context<'_> {
    pub(crate) fn block_bytes(&self) -> Bytes {
        let formats = &self.drive.identity().lba_formats;
        debug_assert!(usize::from(self.drive.lba_format()) < formats.len());
        formats[usize::from(self.drive.lba_format()).min(formats.len() - 1)]
    }

    /// Returns the namespace size in logical blocks.
    pub(crate) fn blocks(&self) -> u64 {
        self.drive.identity().capacity.0 / self.block_bytes().0
    }
}

/// Outcome of a command that passed validation.
pub(crate) enum Answer {
    Done { result: u64, data: Vec<u8> },
    Held,
    Work(Work),
}

impl Answer {
    pub(crate) const OK: Self = Self::Done { result: 0, data: Vec::new() };

    pub(crate) fn result(result: u32) -> Self {
        Self::Done { result: u64::from(result), data: Vec::new() }
    }

    pub(crate) fn data(data: Vec<u8>) -> Self {
        Self::Done { result: 0, data }
    }
}

pub(crate) type Answered = Result<Answer, Refusal>;

/// NVM subsystem of a drive.
pub struct Subsystem<D> {
    /// Drive behind the controllers.
    pub drive: D,
    pub(crate) shared: Shared,
    pub(crate) controllers: BTreeMap<u16, Controller>,
    pub(crate) next_id: u16,
}

impl<D: Drive> Subsystem<D> {
    /// Returns a subsystem with one namespace and no controllers.
    pub fn new(drive: D, access: Access) -> Self {
        let formats = &drive.identity().lba_formats;
        assert!(!formats.is_empty(), "the drive has no logical block size");
        let is_block = |size: &Bytes| size.0.is_power_of_two() && size.0 >= 512;
        assert!(formats.iter().all(is_block), "logical blocks of {formats:?}");
        let sanitize = Sanitize::new(&drive);
        let shared = Shared { access, ids: Vec::new(), in_use: 0, sanitize, raised: None };
        Self { drive, shared, controllers: BTreeMap::new(), next_id: 1 }
    }

    /// Executes the first command on a new queue, which must be Connect (Base 2.1, 6.3). The
    /// association identifies the controller and the queue.
    pub fn connect(&mut self, request: Request<'_>) -> (Option<Association>, Reply) {
        let connected = self.connect_to(request);
        let (controller, queue, result, status) = match connected {
            Ok(Association { controller, queue, .. }) => {
                (controller, queue, controller.into(), Status::SUCCESS)
            }
            Err(Refusal { result, status, .. }) => (0, 0, result, status),
        };
        let reply = Reply::new(controller, queue, request.entry.command_id());
        (connected.ok(), Reply { result: result.into(), status, ..reply })
    }

    /// Executes a command on a connected queue.
    pub fn submit(&mut self, controller: u16, queue: u16, request: Request<'_>) -> Outcome {
        let Request { entry, .. } = request;
        let ticket = Ticket {
            controller,
            queue,
            command_id: entry.command_id(),
            opcode: entry.opcode(),
            nsid: entry.nsid(),
            lba: entry.quadword(10),
        };
        let answered = match self.controllers.get_mut(&controller) {
            None => Err(Status::SEQUENCE_ERROR.into()),
            Some(controller) => {
                let context =
                    Context { drive: &mut self.drive, controller, shared: &mut self.shared };
                execute(context, queue, request)
            }
        };
        if let Some(event) = self.shared.raised.take() {
            for other in self.controllers.values_mut() {
                match event {
                    Event::NamespaceChanged if other.id == ticket.controller => {}
                    Event::NamespaceChanged => other.notice_namespace(),
                    _ => other.events.raise(event),
                }
            }
        }
        match answered {
            Ok(Answer::Held) => Outcome::Held,
            Ok(Answer::Work(work)) => {
                self.shared.sanitize.note(&work);
                Outcome::Work(ticket, work)
            }
            Ok(Answer::Done { result, mut data }) => {
                data.truncate(request.buffer as usize);
                Outcome::Done(Reply { result, data, ..ticket.success() })
            }
            Err(refusal) => Outcome::Done(self.refuse(ticket, refusal)),
        }
    }

    /// Returns the completion of a command whose work has failed with this status.
    pub fn fail(&mut self, ticket: Ticket, status: Status) -> Reply {
        self.refuse(ticket, status.into())
    }

    /// Checks for events, and returns the completions of the requests that report them. This method
    /// must be called periodically, and after commands on an admin queue.
    pub fn poll(&mut self) -> Vec<Reply> {
        let health = self.drive.health();
        let mut replies = Vec::new();
        for controller in self.controllers.values_mut() {
            if controller.kind == Kind::Io {
                let warnings = logs::warnings(&health, &controller.features);
                controller.notice_warnings(warnings);
            }
            for command_id in controller.events.take_aborted() {
                let reply = Reply::new(controller.id, 0, command_id);
                replies.push(Reply { status: Status::ABORT_REQUESTED, ..reply });
            }
            while let Some((command_id, result)) = controller.events.report() {
                replies.push(Reply { result, ..Reply::new(controller.id, 0, command_id) });
            }
        }
        replies
    }

    /// Removes a controller whose admin queue connection has ended or whose keep-alive timeout has
    /// expired. The caller must close the controller's other queues.
    pub fn disconnect(&mut self, controller: u16) {
        debug_assert!(usize::from(self.shared.in_use) <= self.shared.ids.len(), "more are enabled");
        self.shared.ids.retain(|&id| id != controller);
        if let Some(gone) = self.controllers.remove(&controller)
            && gone.is_ready()
            && gone.kind == Kind::Io
        {
            self.shared.leave(&mut self.drive);
        }
    }

    /// Handles the end of an I/O queue connection.
    pub fn disconnect_queue(&mut self, controller: u16, queue: u16) {
        if let Some(controller) = self.controllers.get_mut(&controller) {
            controller.queues.remove(&queue);
        }
    }

    /// Returns a controller's keep-alive timeout in milliseconds; `None` if the host has not set
    /// one or the controller does not exist.
    pub fn keep_alive(&self, controller: u16) -> Option<u32> {
        let features = &self.controllers.get(&controller)?.features;
        Some(features.keep_alive_ms).filter(|&ms| ms > 0)
    }

    /// Returns `true` if a queue is still usable. A reset by the host deletes all I/O queues.
    pub fn is_connected(&self, controller: u16, queue: u16) -> bool {
        let target = self.controllers.get(&controller);
        target.is_some_and(|c| queue == 0 || c.queues.contains(&queue))
    }

    /// Sets the discovery log page entries.
    pub fn advertise(&mut self, addresses: Vec<Address>) {
        self.shared.access.addresses = addresses;
    }

    /// Returns the subsystem's qualified name.
    pub fn nqn(&self) -> &str {
        &self.shared.access.nqn
    }

    fn refuse(&mut self, ticket: Ticket, refusal: Refusal) -> Reply {
        let Refusal { status, byte, result } = refusal;
        let controller = self.controllers.get(&ticket.controller);
        let logged = controller.is_some_and(|controller| controller.kind == Kind::Io)
            && status != Status::ABORT_REQUESTED
            && ticket.opcode != FABRICS;
        if logged {
            self.drive.log_error(ErrorEntry {
                number: 0,
                queue: ticket.queue,
                command_id: ticket.command_id,
                status: status.field(false),
                byte,
                lba: if ticket.queue == 0 { 0 } else { ticket.lba },
                nsid: ticket.nsid,
                opcode: ticket.opcode,
            });
        }
        Reply { status, logged, result: u64::from(result), ..ticket.success() }
    }
}

fn execute(mut context: Context<'_>, queue: u16, request: Request<'_>) -> Answered {
    let entry = request.entry;
    if entry.opcode() == FABRICS {
        return fabrics::execute(&mut context, queue, entry);
    }
    if entry.fused() != 0 {
        return Err(Refusal::at(Status::INVALID_FIELD, 1));
    }
    let is_open = queue == 0 || context.controller.queues.contains(&queue);
    if !context.controller.is_ready() || !is_open {
        return Err(Status::SEQUENCE_ERROR.into());
    }
    if queue == 0 { admin::execute(context, request) } else { io::execute(context, request) }
}

pub(crate) fn own_namespace(entry: Entry<'_>) -> Result<(), Refusal> {
    if entry.nsid() == NSID { Ok(()) } else { Err(Refusal::at(Status::INVALID_NAMESPACE, 4)) }
}
