//! Directive Send and Receive (Base 2.1, 5.1.6, 5.1.7 and 8.1.8): Identify and Streams. The Data
//! Placement directive has no operations.

use writecliff_host_interface::placement::{Answer as Asked, DataPlacement, Directives};

use crate::admin::whole_page;
use crate::command::{ALL_NAMESPACES, Entry, Request};
use crate::drive::{Drive, ask};
use crate::page::Page;
use crate::status::{Refusal, Status};
use crate::subsystem::{Answer, Answered, Context, own_namespace};

const IDENTIFY: u32 = 0;
const STREAMS: u32 = 1;

const IDENTIFY_BYTES: usize = 4096;
const STATUS_BYTES: usize = 2 + 2 * 65535;

pub(crate) fn receive(context: &mut Context<'_>, request: Request<'_>) -> Answered {
    let entry = request.entry;
    own_or_all(entry, true)?;
    let bytes = (entry.dword(10) as usize).saturating_add(1).saturating_mul(4);
    let (operation, directive) = (entry.bits(11, 0, 7), entry.bits(11, 8, 15));
    let page = match (directive, operation) {
        (IDENTIFY, 1) => {
            let Directives { supported, enabled, persistent } = directives(context.drive);
            let mut page = Page::new(IDENTIFY_BYTES);
            page.u8(0, supported);
            page.u8(32, enabled);
            page.u8(64, persistent);
            page
        }
        (STREAMS, 1) => {
            let block = context.block_bytes();
            let parameters =
                ask_streams(context, |drive| drive.stream_parameters())?.unwrap_or_default();
            let mut page = Page::new(32);
            page.u16(0, parameters.limit);
            page.u16(2, parameters.available);
            page.u16(4, parameters.open);
            page.u32(16, (parameters.write_size.0 / block.0) as u32);
            page.u16(20, parameters.granularity);
            page.u16(22, parameters.allocated);
            page.u16(24, parameters.namespace_open);
            page
        }
        (STREAMS, 2) => {
            let open = ask_streams(context, |drive| drive.stream_status())?.unwrap_or_default();
            let mut page = Page::new(2 + 2 * open.len());
            page.u16(0, open.len() as u16);
            open.iter().enumerate().for_each(|(n, &id)| page.u16(2 + 2 * n, id));
            page
        }
        (STREAMS, 3) => {
            let wanted = entry.bits(12, 0, 15) as u16;
            let granted = ask_streams(context, |drive| drive.allocate_streams(wanted))?;
            let granted = granted.ok_or(Status::STREAM_ALLOCATION_FAILED)?;
            return Ok(Answer::result(u32::from(granted)));
        }
        _ => return Err(Refusal::field(11)),
    };
    let bytes = bytes.min(IDENTIFY_BYTES.max(STATUS_BYTES));
    whole_page(request, bytes)?;
    Ok(Answer::data(page.part(0, bytes)))
}

pub(crate) fn send(context: &mut Context<'_>, entry: Entry<'_>) -> Answered {
    let (operation, directive) = (entry.bits(11, 0, 7), entry.bits(11, 8, 15));
    own_or_all(entry, directive == STREAMS)?;
    match (directive, operation) {
        (IDENTIFY, 1) => {
            // Data Placement is enabled by feature 1Dh. Identify is always enabled.
            let (enabled, is_streams) = (entry.flag(12, 0), entry.bits(12, 8, 15) == STREAMS);
            let answer =
                is_streams.then(|| ask(context.drive, |drive| drive.enable_streams(enabled)));
            answer.flatten().ok_or(Refusal::field(12))?;
        }
        (STREAMS, 1) => {
            let identifier = entry.bits(11, 16, 31) as u16;
            if identifier == 0 {
                return Err(Refusal::field(11));
            }
            ask_streams(context, |drive| drive.release_stream(identifier))?;
        }
        (STREAMS, 2) => {
            ask_streams(context, |drive| drive.release_stream_resources())?;
        }
        _ => return Err(Refusal::field(11)),
    }
    Ok(Answer::OK)
}

/// Checks that a command addresses the drive's namespace, or all namespaces if that is allowed.
fn own_or_all(entry: Entry<'_>, all_is_allowed: bool) -> Result<(), Refusal> {
    if entry.nsid() == ALL_NAMESPACES && all_is_allowed { Ok(()) } else { own_namespace(entry) }
}

fn directives(drive: &mut dyn Drive) -> Directives {
    let only = Directives::IDENTIFY;
    let none = Directives { supported: only, enabled: only, persistent: only };
    ask(drive, |drive| drive.directives()).unwrap_or(none)
}

pub(crate) fn has_streams_enabled(drive: &mut dyn Drive) -> bool {
    directives(drive).enabled & Directives::STREAMS != 0
}

/// Performs an operation of the Streams directive; rejects it unless the directive is enabled.
fn ask_streams<T>(
    context: &mut Context<'_>,
    command: impl FnOnce(&mut dyn DataPlacement) -> Asked<T>,
) -> Result<Option<T>, Refusal> {
    if !has_streams_enabled(context.drive) {
        return Err(Refusal::field(11));
    }
    Ok(ask(context.drive, command))
}
