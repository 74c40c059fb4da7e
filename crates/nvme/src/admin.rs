//! Admin commands: the list of supported commands, and commands that have no file of their own.

use crate::command::Request;
use crate::controller::Kind;
use crate::drive::{Identity, PlacementInterface};
use crate::status::{Refusal, Status};
use crate::subsystem::{Answer, Answered, Context};
use crate::{directives, erase, features, identify, logs};

pub(crate) const GET_LOG_PAGE: u8 = 0x02;
pub(crate) const IDENTIFY: u8 = 0x06;
pub(crate) const ABORT: u8 = 0x08;
pub(crate) const SET_FEATURES: u8 = 0x09;
pub(crate) const GET_FEATURES: u8 = 0x0a;
pub(crate) const ASYNC_EVENT: u8 = 0x0c;
pub(crate) const KEEP_ALIVE: u8 = 0x18;
pub(crate) const DIRECTIVE_SEND: u8 = 0x19;
pub(crate) const DIRECTIVE_RECEIVE: u8 = 0x1a;
pub(crate) const FORMAT_NVM: u8 = 0x80;
pub(crate) const SANITIZE: u8 = 0x84;

/// Returns `true` if an I/O controller of this drive supports the command.
pub(crate) fn is_supported(opcode: u8, identity: &Identity) -> bool {
    match opcode {
        GET_LOG_PAGE | IDENTIFY | ABORT | SET_FEATURES | GET_FEATURES | ASYNC_EVENT
        | KEEP_ALIVE | FORMAT_NVM => true,
        DIRECTIVE_SEND | DIRECTIVE_RECEIVE => identity.placement != PlacementInterface::None,
        SANITIZE => identity.block_erase || identity.crypto_erase,
        _ => false,
    }
}

pub(crate) fn execute(mut context: Context<'_>, request: Request<'_>) -> Answered {
    let entry = request.entry;
    let is_known = match context.controller.kind {
        Kind::Io => is_supported(entry.opcode(), context.drive.identity()),
        // Base 2.1, 3.1.3.3.
        Kind::Discovery => matches!(
            entry.opcode(),
            GET_LOG_PAGE | IDENTIFY | SET_FEATURES | GET_FEATURES | ASYNC_EVENT | KEEP_ALIVE
        ),
    };
    if !is_known {
        return Err(Refusal::at(Status::INVALID_OPCODE, 0));
    }
    match entry.opcode() {
        GET_LOG_PAGE => logs::execute(&mut context, request),
        IDENTIFY => identify::execute(&context, request),
        ABORT => {
            // Only event requests can be aborted, because the drive already executes all other
            // commands. Bit 0 of the result is set if the command was not aborted.
            let (queue, command_id) = (entry.word(40), entry.word(42));
            let was_aborted = queue == 0 && context.controller.events.abort(command_id);
            Ok(Answer::result(u32::from(!was_aborted)))
        }
        SET_FEATURES => features::set(&mut context, request),
        GET_FEATURES => features::get(&mut context, request),
        ASYNC_EVENT => {
            context.controller.events.request(entry.command_id())?;
            Ok(Answer::Held)
        }
        KEEP_ALIVE => Ok(Answer::OK),
        DIRECTIVE_SEND => directives::send(&mut context, entry),
        DIRECTIVE_RECEIVE => directives::receive(&mut context, request),
        FORMAT_NVM => erase::format(&mut context, entry),
        _ => erase::sanitize(&mut context, entry),
    }
}

/// Checks that the host's buffer is large enough for the whole data structure.
pub(crate) fn whole_page(request: Request<'_>, bytes: usize) -> Result<(), Refusal> {
    let fits = request.buffer as usize >= bytes;
    if fits { Ok(()) } else { Err(Refusal::at(Status::DATA_SGL_LENGTH, 24)) }
}
