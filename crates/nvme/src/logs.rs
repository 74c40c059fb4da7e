//! Get Log Page (Base 2.1, 5.1.12): the supported log pages, and selection of the requested range.

mod discovery;
mod effects;
mod fdp;
pub(crate) mod health;

use crate::admin::whole_page;
use crate::command::{ALL_NAMESPACES, Entry, MAX_TRANSFER, NSID, Request};
use crate::controller::Kind;
use crate::drive::Identity;
use crate::identify::ENDURANCE_GROUP;
use crate::page::Page;
use crate::status::{Refusal, Status};
use crate::subsystem::{Answer, Answered, Context};

const SUPPORTED: u8 = 0x00;
const ERRORS: u8 = 0x01;
const HEALTH: u8 = 0x02;
const FIRMWARE: u8 = 0x03;
const CHANGED_NAMESPACES: u8 = 0x04;
const EFFECTS: u8 = 0x05;
const ENDURANCE: u8 = 0x09;
const FEATURE_EFFECTS: u8 = 0x12;
const MI_EFFECTS: u8 = 0x13;
const FDP_CONFIGURATIONS: u8 = 0x20;
const FDP_USAGE: u8 = 0x21;
const FDP_STATISTICS: u8 = 0x22;
const FDP_EVENTS: u8 = 0x23;
const DISCOVERY: u8 = 0x70;
const SANITIZE: u8 = 0x81;

fn is_supported(page: u8, kind: Kind, identity: &Identity) -> bool {
    match (kind, page) {
        (Kind::Discovery, page) => matches!(page, SUPPORTED | DISCOVERY),
        (
            Kind::Io,
            SUPPORTED | ERRORS | HEALTH | FIRMWARE | CHANGED_NAMESPACES | EFFECTS | ENDURANCE
            | FEATURE_EFFECTS | MI_EFFECTS,
        ) => true,
        (Kind::Io, FDP_CONFIGURATIONS | FDP_USAGE | FDP_STATISTICS | FDP_EVENTS) => {
            identity.fdp().is_some()
        }
        (Kind::Io, SANITIZE) => identity.block_erase || identity.crypto_erase,
        _ => false,
    }
}

pub(crate) fn execute(context: &mut Context<'_>, request: Request<'_>) -> Answered {
    let entry = request.entry;
    let id = entry.bits(10, 0, 7) as u8;
    if !is_supported(id, context.controller.kind, context.drive.identity()) {
        return Err(Refusal::at(Status::INVALID_LOG_PAGE, 40));
    }
    let dwords = u64::from(entry.bits(10, 16, 31)) | u64::from(entry.bits(11, 0, 15)) << 16;
    let bytes = (dwords + 1) * 4;
    if bytes > u64::from(MAX_TRANSFER) {
        return Err(Refusal::field(10));
    }
    whole_page(request, bytes as usize)?;
    let is_index = entry.flag(14, 23); // no log page of this controller has an index offset
    if is_index {
        return Err(Refusal::field(14));
    }
    let page = page(context, entry, id)?;
    let offset = entry.quadword(12);
    if !offset.is_multiple_of(4) || offset > page.len() as u64 {
        return Err(Refusal::field(12));
    }
    let retains_event = entry.flag(10, 15);
    if !retains_event {
        context.controller.events.acknowledge(id);
        context.controller.namespace_changed &= id != CHANGED_NAMESPACES;
    }
    Ok(Answer::data(page.part(offset as usize, bytes as usize)))
}

fn page(context: &mut Context<'_>, entry: Entry<'_>, id: u8) -> Result<Page, Refusal> {
    let is_of_group = matches!(id, ENDURANCE | FDP_CONFIGURATIONS..=FDP_EVENTS);
    if is_of_group && entry.bits(11, 16, 31) != u32::from(ENDURANCE_GROUP) {
        return Err(Refusal::field(11));
    }
    Ok(match id {
        SUPPORTED => supported(context),
        ERRORS => context.drive.error_log().page(),
        HEALTH => {
            // Each log exists once per controller, not per namespace.
            if !matches!(entry.nsid(), 0 | ALL_NAMESPACES) {
                return Err(Refusal::at(Status::INVALID_FIELD, 4));
            }
            health::smart(&context.drive.health(), &context.controller.features)
        }
        FIRMWARE => firmware(context.drive.identity()),
        CHANGED_NAMESPACES => changed_namespaces(context.controller.namespace_changed),
        EFFECTS => effects::page(context.drive.identity(), entry.bits(14, 24, 31)),
        FEATURE_EFFECTS => effects::features(context.drive.identity()),
        MI_EFFECTS => Page::new(4096), // the management interface has no commands
        ENDURANCE => health::endurance_group(context),
        FDP_CONFIGURATIONS => fdp::configurations(context.drive.identity()),
        FDP_USAGE => fdp::usage(context.drive.identity()),
        FDP_STATISTICS => fdp::statistics(context.drive),
        FDP_EVENTS => fdp::events(context, entry.flag(10, 8)),
        DISCOVERY => discovery::page(&context.shared.access),
        _ => context.shared.sanitize.page(context.drive),
    })
}

/// Returns Supported Log Pages (00h).
fn supported(context: &Context<'_>) -> Page {
    let mut page = Page::new(1024);
    let (kind, identity) = (context.controller.kind, context.drive.identity());
    for id in (0..=u8::MAX).filter(|&id| is_supported(id, kind, identity)) {
        page.u32(4 * usize::from(id), 1);
    }
    page
}

/// Returns Firmware Slot Information (03h), where the first slot is active.
fn firmware(identity: &Identity) -> Page {
    let mut page = Page::new(512);
    page.u8(0, 1);
    page.text(8, 8, &identity.firmware);
    page
}

/// Returns the Changed Attached Namespace List (04h).
fn changed_namespaces(changed: bool) -> Page {
    let mut page = Page::new(4096);
    page.u32(0, if changed { NSID } else { 0 });
    page
}
