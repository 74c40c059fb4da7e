//! Directive Send and Receive (Base 2.1, 5.1.6, 5.1.7 and 8.1.8): Identify and Streams. The Data
//! Placement directive has no operations of its own.

use crate::admin::whole_page;
use crate::command::{ALL_NAMESPACES, Entry, Request};
use crate::drive::{PlacementInterface, Streams};
use crate::page::Page;
use crate::status::{Refusal, Status};
use crate::subsystem::{Answer, Answered, Context, own_namespace};

const IDENTIFY: u32 = 0;
const STREAMS: u32 = 1;
const DATA_PLACEMENT: u32 = 2;

const IDENTIFY_BYTES: usize = 4096;
const STATUS_BYTES: usize = 2 + 2 * 65535;

pub(crate) fn receive(context: &mut Context<'_>, request: Request<'_>) -> Answered {
    let entry = request.entry;
    check(context, entry, true)?;
    let bytes = (entry.dword(10) as usize).saturating_add(1).saturating_mul(4);
    let (operation, directive) = (entry.bits(11, 0, 7), entry.bits(11, 8, 15));
    let page = match (directive, operation) {
        (IDENTIFY, 1) => parameters(context),
        (STREAMS, 1) => {
            let block = context.block_bytes();
            let found = enabled_streams(context)?.parameters();
            let mut page = Page::new(32);
            page.u16(0, found.limit);
            page.u16(2, found.available);
            page.u16(4, found.open);
            page.u32(16, (found.write_size.0 / block.0) as u32);
            page.u16(20, found.granularity);
            page.u16(22, found.allocated);
            page.u16(24, found.namespace_open);
            page
        }
        (STREAMS, 2) => {
            let open = enabled_streams(context)?.open();
            let mut page = Page::new(2 + 2 * open.len());
            page.u16(0, open.len() as u16);
            open.iter().enumerate().for_each(|(n, &id)| page.u16(2 + 2 * n, id));
            page
        }
        (STREAMS, 3) => {
            let wanted = entry.bits(12, 0, 15) as u16;
            let granted = enabled_streams(context)?.allocate(wanted);
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
    check(context, entry, directive == STREAMS)?;
    match (directive, operation) {
        (IDENTIFY, 1) => enable(context, entry)?,
        (STREAMS, 1) => {
            let identifier = entry.bits(11, 16, 31) as u16;
            if identifier == 0 {
                return Err(Refusal::field(11));
            }
            enabled_streams(context)?.release(identifier);
        }
        (STREAMS, 2) => enabled_streams(context)?.release_resources(),
        _ => return Err(Refusal::field(11)),
    }
    Ok(Answer::OK)
}

/// Checks the namespace, and that no sanitize operation is in progress.
fn check(context: &Context<'_>, entry: Entry<'_>, all_is_allowed: bool) -> Result<(), Refusal> {
    if context.shared.sanitize.is_running() {
        return Err(Status::SANITIZE_IN_PROGRESS.into());
    }
    if entry.nsid() == ALL_NAMESPACES && all_is_allowed { Ok(()) } else { own_namespace(entry) }
}

/// Identify directive, Return Parameters: bit n of each field is directive type n.
fn parameters(context: &mut Context<'_>) -> Page {
    let other = match context.drive.identity().placement {
        PlacementInterface::None => 0,
        PlacementInterface::Streams => 1 << STREAMS,
        PlacementInterface::Fdp(_) => 1 << DATA_PLACEMENT,
    };
    let is_enabled = context.drive.streams().is_none_or(|streams| streams.is_enabled());
    let mut page = Page::new(IDENTIFY_BYTES);
    page.u8(0, 1 | other);
    page.u8(32, 1 | if is_enabled { other } else { 0 });
    // Across resets, Data Placement stays enabled and Streams does not.
    page.u8(64, 1 | other & 1 << DATA_PLACEMENT);
    page
}

/// Identify directive, Enable Directive.
fn enable(context: &mut Context<'_>, entry: Entry<'_>) -> Result<(), Refusal> {
    let (enabled, directive) = (entry.flag(12, 0), entry.bits(12, 8, 15));
    match (directive, context.drive.streams()) {
        (STREAMS, Some(streams)) => {
            streams.set_enabled(enabled);
            Ok(())
        }
        // Data Placement follows feature 1Dh, Identify is always enabled.
        _ => Err(Refusal::field(12)),
    }
}

/// The streams, whose operations are refused while the directive is not enabled.
fn enabled_streams<'a>(context: &'a mut Context<'_>) -> Result<&'a mut dyn Streams, Refusal> {
    match context.drive.streams() {
        Some(streams) if streams.is_enabled() => Ok(streams),
        _ => Err(Refusal::field(11)),
    }
}
