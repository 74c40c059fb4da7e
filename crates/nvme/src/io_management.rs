//! I/O Management Receive and Send (Base 2.1, 7.3 and 7.4), which report the reclaim unit handle
//! status and assign new reclaim units to handles.

use writecliff_host_interface::placement::FdpConfiguration;

use crate::admin::whole_page;
use crate::command::{MAX_TRANSFER, Request};
use crate::drive::ask;
use crate::page::Page;
use crate::status::{Refusal, Status};
use crate::subsystem::{Answer, Answered, Context};

const NO_ACTION: u32 = 0;
const HANDLES: u32 = 1;
const HEADER: usize = 16;
const DESCRIPTOR: usize = 32;

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
    let mut page = Page::new(HEADER + DESCRIPTOR * handles.len());
    page.u16(14, handles.len() as u16);
    for (n, handle) in handles.iter().enumerate() {
        let at = HEADER + DESCRIPTOR * n;
        page.u16(at, handle.placement_id);
        page.u16(at + 2, handle.handle);
        page.u32(at + 4, handle.time_remaining_s);
        page.u64(at + 8, handle.available.0 / block.0);
    }
    Ok(Answer::data(page.part(0, bytes as usize)))
}

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
