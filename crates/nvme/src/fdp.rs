//! Flexible Data Placement: its features (1Dh, 1Eh; Base 2.1, 5.1.25.1.20 and 21), its log pages
//! (20h to 23h; 5.1.12.1.28 to 31), and I/O Management Receive and Send (7.3 and 7.4).

use writecliff_host_interface::placement::{FdpConfiguration, FdpEventType};

use crate::admin::whole_page;
use crate::command::{Entry, MAX_TRANSFER, NSID, Request};
use crate::drive::{Drive, Identity, ask};
use crate::identify::ENDURANCE_GROUP;
use crate::page::Page;
use crate::status::{Refusal, Status};
use crate::subsystem::{Answer, Answered, Context};

// Header size and entry size, in bytes, of most structures.
const HEADER: usize = 16;
const CONFIGURATION: usize = 64;
const EVENT: usize = 64;
const HANDLE_STATUS: usize = 32;

// I/O Management operations.
const NO_ACTION: u32 = 0;
const HANDLES: u32 = 1;

/// Checks that the feature is requested for the only endurance group.
pub(crate) fn own_group(entry: Entry<'_>) -> Result<(), Refusal> {
    let is_own = entry.bits(11, 0, 15) == u32::from(ENDURANCE_GROUP);
    if is_own { Ok(()) } else { Err(Refusal::field(11)) }
}

fn placement_handle(context: &Context<'_>, entry: Entry<'_>) -> Result<u16, Refusal> {
    let handle = entry.bits(11, 0, 15) as u16;
    let listed = context.drive.identity().fdp().map_or(0, |fdp| fdp.placement_handles.len());
    if usize::from(handle) < listed { Ok(handle) } else { Err(Refusal::field(11)) }
}

/// Returns the event types of a placement handle, with their enabled states, and their number.
pub(crate) fn get_events(context: &mut Context<'_>, request: Request<'_>) -> Answered {
    let entry = request.entry;
    let handle = placement_handle(context, entry)?;
    let wanted = entry.bits(11, 16, 23) as usize;
    whole_page(request, 2 * wanted)?;
    let kinds = FdpEventType::ALL;
    let mut page = Page::new(2 * kinds.len());
    if let Some(enabled) = ask(context.drive, |drive| drive.fdp_enabled_events(handle)) {
        for (n, &kind) in kinds.iter().enumerate() {
            page.u8(2 * n, kind.code());
            page.u8(2 * n + 1, u8::from(enabled.contains(&kind)));
        }
    }
    Ok(Answer::Done { result: kinds.len() as u64, data: page.part(0, 2 * wanted) })
}

pub(crate) fn set_events(context: &mut Context<'_>, request: Request<'_>) -> Result<(), Refusal> {
    let entry = request.entry;
    let handle = placement_handle(context, entry)?;
    let count = entry.bits(11, 16, 23) as usize;
    let codes = request.first(count)?;
    let kinds: Option<Vec<_>> = codes.iter().map(|&code| FdpEventType::from_code(code)).collect();
    let kinds = kinds.ok_or(Refusal::at(Status::INVALID_FIELD, 24))?;
    ask(context.drive, |drive| drive.fdp_enable_events(handle, &kinds, entry.flag(12, 0)));
    Ok(())
}

/// Returns the FDP Configurations log page with the only configuration.
pub(crate) fn configurations(identity: &Identity) -> Page {
    let Some(fdp) = identity.fdp() else { return Page::new(HEADER) };
    let size = (CONFIGURATION + 4 * fdp.handles.len()).next_multiple_of(8);
    let mut page = Page::new(HEADER + size);
    page.u32(4, (HEADER + size) as u32);
    let at = HEADER;
    page.u16(at, size as u16);
    // FDPA: valid bit, FDP Volatile Write Cache, and RGIF
    page.u8(at + 2, 1 << 7 | u8::from(fdp.volatile_cache) << 4 | fdp.rgif & 0xf);
    page.u32(at + 4, fdp.reclaim_groups.into());
    page.u16(at + 8, fdp.handles.len() as u16);
    page.u16(at + 10, fdp.placement_handles.len() as u16 - 1);
    page.u32(at + 12, 1);
    page.u64(at + 16, fdp.reclaim_unit.0);
    page.u32(at + 24, fdp.time_limit_s);
    for (n, &isolation) in fdp.handles.iter().enumerate() {
        page.u8(at + CONFIGURATION + 4 * n, isolation as u8 + 1);
    }
    page
}

/// Returns Reclaim Unit Handle Usage: "specified by the host" for the namespace's handles.
pub(crate) fn usage(identity: &Identity) -> Page {
    let Some(fdp) = identity.fdp() else { return Page::new(8) };
    let mut page = Page::new(8 + 8 * fdp.handles.len());
    page.u16(0, fdp.handles.len() as u16);
    for handle in 0..fdp.handles.len() {
        page.u8(8 + 8 * handle, u8::from(fdp.specifies(handle)));
    }
    page
}

/// Returns the FDP Statistics log page.
pub(crate) fn statistics(drive: &mut dyn Drive) -> Page {
    let log = ask(drive, |drive| drive.fdp_statistics()).unwrap_or_default();
    let mut page = Page::new(64);
    page.u128(0, u128::from(log.host_bytes));
    page.u128(16, u128::from(log.media_bytes));
    page.u128(32, u128::from(log.erased_bytes));
    page
}

/// Returns the FDP Events of the host or the controller, oldest first.
pub(crate) fn events(context: &mut Context<'_>, of_host: bool) -> Page {
    let block = context.block_bytes();
    let events = ask(context.drive, |drive| drive.fdp_events(of_host)).unwrap_or_default();
    let mut page = Page::new(64 + EVENT * events.len());
    page.u32(0, events.len() as u32);
    for (n, event) in events.iter().enumerate() {
        let at = 64 + EVENT * n;
        let has_id = event.placement_id.is_some();
        let has_handle = event.handle.is_some();
        page.u8(at, event.kind.code());
        // Flags that mark the placement identifier, namespace and location as valid.
        page.u8(at + 1, u8::from(has_id) | u8::from(has_id) << 1 | u8::from(has_handle) << 2);
        page.u16(at + 2, event.placement_id.unwrap_or(0));
        page.u64(at + 4, context.controller.features.timestamp_of(event.time));
        page.u32(at + 12, if has_id { NSID } else { 0 });
        if let Some(moved) = event.moved {
            let blocks = moved.0 / block.0;
            page.u16(at + 18, u16::try_from(blocks).unwrap_or(u16::MAX));
        }
        // The first reclaim group is the default if the namespace does not have the identifier.
        let fdp = context.drive.identity().fdp();
        let listed = event.placement_id.zip(fdp).filter(|&(id, fdp)| fdp.has(id));
        page.u16(at + 32, listed.map_or(0, |(id, fdp)| fdp.split(id).0));
        page.u16(at + 34, event.handle.unwrap_or(0));
    }
    page
}

/// Executes I/O Management Receive, which returns the status of the reclaim unit handles.
pub(crate) fn receive(context: &mut Context<'_>, request: Request<'_>) -> Answered {
    let entry = request.entry;
    let bytes = (u64::from(entry.dword(11)) + 1) * 4;
    match entry.bits(10, 0, 7) {
        NO_ACTION => return Ok(Answer::OK),
        HANDLES if bytes <= u64::from(MAX_TRANSFER) => {}
        HANDLES => return Err(Refusal::field(11)),
        _ => return Err(Refusal::field(10)),
    }
    whole_page(request, bytes as usize)?;
    let block = context.block_bytes();
    let handles = ask(context.drive, |drive| drive.fdp_handle_status()).unwrap_or_default();
    let mut page = Page::new(HEADER + HANDLE_STATUS * handles.len());
    page.u16(14, handles.len() as u16);
    for (n, handle) in handles.iter().enumerate() {
        let at = HEADER + HANDLE_STATUS * n;
        page.u16(at, handle.placement_id);
        page.u16(at + 2, handle.handle);
        page.u32(at + 4, handle.time_remaining_s);
        page.u64(at + 8, handle.available.0 / block.0);
    }
    Ok(Answer::data(page.part(0, bytes as usize)))
}

/// Executes I/O Management Send, which assigns new reclaim units to handles.
pub(crate) fn send(context: &mut Context<'_>, request: Request<'_>) -> Answered {
    let entry = request.entry;
    match entry.bits(10, 0, 7) {
        NO_ACTION => return Ok(Answer::OK),
        HANDLES => {}
        _ => return Err(Refusal::field(10)),
    }
    let fdp = context.drive.identity().fdp();
    let count = entry.bits(10, 16, 31) as usize + 1;
    if count > fdp.map_or(0, FdpConfiguration::identifiers) {
        return Err(Refusal::field(10));
    }
    let (list, _) = request.first(2 * count)?.as_chunks();
    let identifiers: Vec<u16> = list.iter().map(|&id| u16::from_le_bytes(id)).collect();
    if !identifiers.iter().all(|&id| fdp.is_some_and(|fdp| fdp.has(id))) {
        return Err(Refusal::at(Status::INVALID_FIELD, 24));
    }
    ask(context.drive, |drive| drive.fdp_update(&identifiers));
    Ok(Answer::OK)
}
