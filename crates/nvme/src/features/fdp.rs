//! Features of Flexible Data Placement: 1Dh enables FDP, and 1Eh enables its events (Base 2.1,
//! 5.1.25.1.20 and 21).

use writecliff_host_interface::placement::FdpEventType;

use crate::admin::whole_page;
use crate::command::{Entry, Request};
use crate::drive::ask;
use crate::identify::ENDURANCE_GROUP;
use crate::page::Page;
use crate::status::{Refusal, Status};
use crate::subsystem::{Answer, Answered, Context};

/// Feature value: Configuration 0 is enabled.
const ENABLED: u32 = 1;

fn own_group(entry: Entry<'_>) -> Result<(), Refusal> {
    let is_own = entry.bits(11, 0, 15) == u32::from(ENDURANCE_GROUP);
    if is_own { Ok(()) } else { Err(Refusal::field(11)) }
}

pub(super) fn get(entry: Entry<'_>) -> Answered {
    own_group(entry)?;
    Ok(Answer::result(ENABLED))
}

/// Rejects changes because the FDP configuration of an endurance group with a namespace cannot be
/// changed.
pub(super) fn set(entry: Entry<'_>) -> Result<(), Refusal> {
    own_group(entry)?;
    Err(Status::SEQUENCE_ERROR.into())
}

fn placement_handle(context: &Context<'_>, entry: Entry<'_>) -> Result<u16, Refusal> {
    let handle = entry.bits(11, 0, 15) as u16;
    let listed = context.drive.identity().fdp().map_or(0, |fdp| fdp.placement_handles.len());
    if usize::from(handle) < listed { Ok(handle) } else { Err(Refusal::field(11)) }
}

/// Returns the supported event types of a placement handle, each with its enabled state; the result
/// is the number of types.
pub(super) fn get_events(context: &mut Context<'_>, request: Request<'_>) -> Answered {
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

pub(super) fn set_events(context: &mut Context<'_>, request: Request<'_>) -> Result<(), Refusal> {
    let entry = request.entry;
    let handle = placement_handle(context, entry)?;
    let count = entry.bits(11, 16, 23) as usize;
    let codes = request.first(count)?;
    let kinds: Option<Vec<_>> = codes.iter().map(|&code| FdpEventType::from_code(code)).collect();
    let kinds = kinds.ok_or(Refusal::at(Status::INVALID_FIELD, 24))?;
    ask(context.drive, |drive| drive.fdp_enable_events(handle, &kinds, entry.flag(12, 0)));
    Ok(())
}
