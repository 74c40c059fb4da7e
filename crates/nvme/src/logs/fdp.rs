//! Log pages of Flexible Data Placement (20h to 23h; Base 2.1, 5.1.12.1.28 to 31).

use writecliff_host_interface::placement::FdpEvent;

use crate::command::NSID;
use crate::drive::{Drive, Identity, ask};
use crate::page::Page;
use crate::subsystem::Context;

const HEADER: usize = 16;
const DESCRIPTOR: usize = 64;
const EVENT: usize = 64;

/// Returns the FDP Configurations log page with the only configuration.
pub(super) fn configurations(identity: &Identity) -> Page {
    let Some(fdp) = identity.fdp() else { return Page::new(HEADER) };
    let size = (DESCRIPTOR + 4 * fdp.handles.len()).next_multiple_of(8);
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
        page.u8(at + DESCRIPTOR + 4 * n, isolation as u8);
    }
    page
}

/// Returns Reclaim Unit Handle Usage, which is "specified by the host" for handles in the
/// namespace's list.
pub(super) fn usage(identity: &Identity) -> Page {
    let Some(fdp) = identity.fdp() else { return Page::new(8) };
    let mut page = Page::new(8 + 8 * fdp.handles.len());
    page.u16(0, fdp.handles.len() as u16);
    for handle in 0..fdp.handles.len() {
        page.u8(8 + 8 * handle, u8::from(fdp.specifies(handle)));
    }
    page
}

pub(super) fn statistics(drive: &mut dyn Drive) -> Page {
    let log = ask(drive, |drive| drive.fdp_statistics()).unwrap_or_default();
    let mut page = Page::new(64);
    page.u128(0, u128::from(log.host_bytes));
    page.u128(16, u128::from(log.media_bytes));
    page.u128(32, u128::from(log.erased_bytes));
    page
}

/// Returns the FDP Events of the host or the controller, oldest first.
pub(super) fn events(context: &mut Context<'_>, of_host: bool) -> Page {
    let block = context.block_bytes();
    let events = ask(context.drive, |drive| drive.fdp_events(of_host)).unwrap_or_default();
    let mut page = Page::new(64 + EVENT * events.len());
    page.u32(0, events.len() as u32);
    for (n, event) in events.iter().enumerate() {
        let timestamp = context.controller.features.timestamp_of(event.time);
        let at = 64 + EVENT * n;
        let group = event.placement_id.map_or(0, |id| group_of(context, id));
        put(&mut page, at, (event, group), timestamp);
        if let Some(moved) = event.moved {
            let blocks = moved.0 / block.0;
            page.u16(at + 18, u16::try_from(blocks).unwrap_or(u16::MAX));
        }
    }
    page
}

/// Returns the reclaim group of an event with the given identifier, or the first group if the
/// namespace lacks the identifier.
fn group_of(context: &Context<'_>, identifier: u16) -> u16 {
    let fdp = context.drive.identity().fdp().filter(|fdp| fdp.has(identifier));
    fdp.map_or(0, |fdp| fdp.split(identifier).0)
}

fn put(page: &mut Page, at: usize, (event, group): (&FdpEvent, u16), timestamp: u64) {
    let has_id = event.placement_id.is_some();
    let has_handle = event.handle.is_some();
    page.u8(at, event.kind.code());
    // Flags: placement identifier, namespace and location are valid.
    page.u8(at + 1, u8::from(has_id) | u8::from(has_id) << 1 | u8::from(has_handle) << 2);
    page.u16(at + 2, event.placement_id.unwrap_or(0));
    page.u64(at + 4, timestamp);
    page.u32(at + 12, if has_id { NSID } else { 0 });
    page.u16(at + 32, group);
    page.u16(at + 34, event.handle.unwrap_or(0));
}
