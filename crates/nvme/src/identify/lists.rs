//! Lists of namespaces, controllers, endurance groups and command sets.

use super::{ENDURANCE_GROUP, IDENTIFY_BYTES};
use crate::command::NSID;
use crate::page::Page;
use crate::status::{Refusal, Status};

/// Returns the list of namespaces with identifiers above `after`.
pub(super) fn namespaces(after: u32) -> Result<Page, Refusal> {
    if after >= u32::MAX - 1 {
        return Err(Refusal::at(Status::INVALID_NAMESPACE, 4));
    }
    let mut page = Page::new(IDENTIFY_BYTES);
    if after < NSID {
        page.u32(0, NSID);
    }
    Ok(page)
}

/// Returns the list of at most 2047 controllers whose identifiers are at least `first`.
pub(super) fn controllers(ids: &[u16], first: u16) -> Page {
    let listed = ids.iter().filter(|&&id| id >= first);
    numbered(listed.copied())
}

pub(super) fn endurance_groups(first: u16) -> Page {
    numbered((first <= ENDURANCE_GROUP).then_some(ENDURANCE_GROUP).into_iter())
}

/// Returns a list: the number of entries, then two bytes per entry.
fn numbered(listed: impl Iterator<Item = u16>) -> Page {
    let mut page = Page::new(IDENTIFY_BYTES);
    let mut count = 0;
    for entry in listed.take(IDENTIFY_BYTES / 2 - 1) {
        count += 1;
        page.u16(2 * count, entry);
    }
    page.u16(0, count as u16);
    page
}

/// Returns the command set combinations, which contain only the NVM command set.
pub(super) fn command_sets() -> Page {
    let mut page = Page::new(IDENTIFY_BYTES);
    page.u64(0, 1);
    page
}
