//! Fabrics commands (Base 2.1, 6): Connect, and access to the controller's properties. Fabrics
//! commands are independent of the transport.

use crate::command::{Entry, Request};
use crate::controller::{Change, Controller, Features, Host, Kind, QUEUE_ENTRIES};
use crate::drive::Drive;
use crate::identify::VERSION;
use crate::page::read;
use crate::status::{Refusal, Status};
use crate::subsystem::{Answer, Answered, Context, Subsystem};

/// NQN shared by all discovery services.
pub const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";
/// Size of the Connect data in bytes.
pub const CONNECT_BYTES: usize = 1024;

const CONNECT: u8 = 0x01;
const PROPERTY_SET: u8 = 0x00;
const PROPERTY_GET: u8 = 0x04;
/// Controller ID that lets the subsystem choose the controller.
const DYNAMIC: u16 = 0xffff;

/// A controller queue with its transport connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Association {
    /// Controller Identifier.
    pub controller: u16,
    /// Queue Identifier; 0 for the admin queue.
    pub queue: u16,
    /// Submission queue size in entries.
    pub entries: u16,
    /// `true` if completions contain the submission queue head; otherwise, the field is `FFFFh`.
    pub flow_control: bool,
}

/// Returns the error for an invalid Connect parameter, with the parameter's position.
fn invalid(offset: u16, in_data: bool) -> Refusal {
    let result = u32::from(offset) | u32::from(in_data) << 16;
    Refusal { status: Status::CONNECT_PARAMETERS, byte: None, result }
}

const IN_COMMAND: bool = false;
const IN_DATA: bool = true;

impl<D: Drive> Subsystem<D> {
    pub(crate) fn connect_to(&mut self, request: Request<'_>) -> Result<Association, Refusal> {
        let Self { drive, shared, controllers, .. } = self;
        let Request { entry, data, .. } = request;
        if entry.opcode() != 0x7f || entry.0[4] != CONNECT {
            return Err(Status::SEQUENCE_ERROR.into());
        }
        if entry.word(40) != 0 {
            return Err(Status::CONNECT_FORMAT.into());
        }
        let Some(data) = data.first_chunk::<CONNECT_BYTES>() else {
            return Err(Status::DATA_SGL_LENGTH.into());
        };
        let host = Host {
            nqn: name(data, 512).ok_or(invalid(512, IN_DATA))?,
            id: read(data, 0).unwrap_or_default(),
        };
        let wanted = name(data, 256).ok_or(invalid(256, IN_DATA))?;
        let kind = match wanted.as_str() {
            DISCOVERY_NQN => Kind::Discovery,
            nqn if nqn == shared.access.nqn => Kind::Io,
            _ => return Err(invalid(256, IN_DATA)),
        };
        if shared.access.hosts.as_ref().is_some_and(|hosts| !hosts.contains(&host.nqn)) {
            return Err(Status::CONNECT_HOST.into());
        }
        let (queue, entries) = (entry.word(42), entry.word(44).saturating_add(1));
        if entry.word(44) == 0 || (queue > 0 && entries > QUEUE_ENTRIES) {
            return Err(invalid(44, IN_COMMAND));
        }
        let id = u16::from_le_bytes([data[16], data[17]]);
        let flow_control = entry.0[46] & 1 << 2 == 0;
        let controller = if queue > 0 {
            let controller = controllers.get_mut(&id).ok_or(invalid(16, IN_DATA))?;
            connect_queue(controller, &host, kind, queue, shared.access.queues)?;
            id
        } else if id == DYNAMIC {
            let features = Features::new(kind, drive.identity());
            let id = self.free_id()?;
            let mut new = Controller::new(id, kind, host, features);
            new.features.keep_alive_ms = entry.dword(12);
            self.controllers.insert(id, new);
            if kind == Kind::Io {
                debug_assert!(
                    self.shared.ids.binary_search(&id).is_err(),
                    "controller {id} exists"
                );
                self.shared.ids.push(id);
                self.shared.ids.sort_unstable();
            }
            id
        } else {
            return Err(invalid(16, IN_DATA));
        };
        Ok(Association { controller, queue, entries, flow_control })
    }

    /// Returns the next unused controller identifier. Identifiers are not reused immediately, so a
    /// queue of a removed controller cannot join another controller.
    fn free_id(&mut self) -> Result<u16, Refusal> {
        let Self { controllers, next_id: next, .. } = self;
        if controllers.len() >= usize::from(self.shared.access.controllers) {
            return Err(Status::CONNECT_BUSY.into());
        }
        // Controller IDs FFF0h to FFFFh are reserved, and the server skips 0 for clarity.
        while *next == 0 || *next >= 0xfff0 || controllers.contains_key(next) {
            *next = if *next >= 0xfff0 { 1 } else { *next + 1 };
        }
        let id = *next;
        *next += 1;
        Ok(id)
    }
}

fn connect_queue(
    controller: &mut Controller,
    host: &Host,
    kind: Kind,
    queue: u16,
    queues: u16,
) -> Result<(), Refusal> {
    if controller.host.nqn != host.nqn {
        return Err(invalid(512, IN_DATA));
    }
    if controller.host.id != host.id {
        return Err(invalid(0, IN_DATA));
    }
    if controller.kind != kind || kind == Kind::Discovery || queue > queues {
        return Err(invalid(42, IN_COMMAND));
    }
    if !controller.is_ready() || !controller.queues.insert(queue) {
        return Err(Status::SEQUENCE_ERROR.into());
    }
    Ok(())
}

/// Parses a zero-terminated name in a 256-byte field.
fn name(data: &[u8], at: usize) -> Option<String> {
    let field = data.get(at..at + 256)?;
    let end = field.iter().position(|&byte| byte == 0)?;
    let name = std::str::from_utf8(&field[..end]).ok()?;
    (!name.is_empty() && name.len() <= 223).then(|| name.to_owned())
}

pub(crate) fn execute(context: &mut Context<'_>, queue: u16, entry: Entry<'_>) -> Answered {
    if queue != 0 {
        return Err(Status::INVALID_OPCODE.into());
    }
    match entry.0[4] {
        PROPERTY_GET => property_get(context, entry),
        PROPERTY_SET => property_set(context, entry),
        CONNECT => Err(Status::SEQUENCE_ERROR.into()),
        _ => Err(Refusal::at(Status::INVALID_FIELD, 4)),
    }
}

const CAP: u32 = 0x00;
const VS: u32 = 0x08;
const CC: u32 = 0x14;
const CSTS: u32 = 0x1c;
const CRTO: u32 = 0x68;

/// Returns the Controller Capabilities (3.1.4.1): MQES, CQR, a timeout of 15 s, the NVM command set
/// and the selection of command sets, 4 KiB pages, and Controller Ready With Media.
fn capabilities() -> u64 {
    u64::from(QUEUE_ENTRIES - 1) | 1 << 16 | 30 << 24 | 1 << 37 | 1 << 43 | 1 << 59
}

fn property_get(context: &Context<'_>, entry: Entry<'_>) -> Answered {
    let (offset, is_wide) = (entry.dword(11), entry.dword(10) & 7 == 1);
    let value = match (offset, is_wide) {
        (CAP, true) => capabilities(),
        (VS, false) => u64::from(VERSION),
        (CC, false) => u64::from(context.controller.configuration),
        (CSTS, false) => u64::from(context.controller.status),
        // Controller Ready With Media Timeout (CRWMT), in units of 500 ms.
        (CRTO, false) => 30,
        (CAP | VS | CC | CSTS | CRTO, _) => return Err(Refusal::field(10)),
        _ => return Err(Refusal::field(11)),
    };
    Ok(Answer::Done { result: value, data: Vec::new() })
}

fn property_set(context: &mut Context<'_>, entry: Entry<'_>) -> Answered {
    if entry.dword(10) & 7 != 0 {
        return Err(Refusal::field(10));
    }
    if entry.dword(11) != CC {
        return Err(Refusal::field(11));
    }
    let change = context.controller.configure(entry.dword(12));
    if context.controller.kind == Kind::Io {
        match change {
            Change::None => {}
            Change::Shutdown => context.drive.shutdown(),
            Change::Reset => {
                let keep_alive_ms = context.controller.features.keep_alive_ms;
                let features = Features::new(Kind::Io, context.drive.identity());
                context.controller.features = Features { keep_alive_ms, ..features };
                context.shared.leave(context.drive);
            }
            Change::Enabled => {
                context.shared.in_use += 1;
                let (in_use, all) = (context.shared.in_use, context.shared.ids.len());
                debug_assert!(
                    usize::from(in_use) <= all,
                    "{in_use} of {all} controllers are enabled"
                );
            }
        }
    }
    Ok(Answer::OK)
}
