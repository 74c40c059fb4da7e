//! Format NVM (Base 2.1, 5.1.10) and Sanitize (5.1.22 and 8.1.24), which erase all data. The drive
//! erases immediately, so a sanitize operation is never in progress.

use crate::command::{ALL_NAMESPACES, Entry, Work};
use crate::drive::Drive;
use crate::events::Event;
use crate::page::Page;
use crate::status::{Refusal, Status};
use crate::subsystem::{Answer, Answered, Context, own_namespace};

// Sanitize actions.
const EXIT_FAILURE_MODE: u32 = 1;
const BLOCK_ERASE: u32 = 2;
const CRYPTO_ERASE: u32 = 4;
/// Sanitize Progress while no operation is in progress, and times that are not reported.
const ENDED: u16 = u16::MAX;
const UNREPORTED: u32 = u32::MAX;

/// Formats the drive: sets the logical block size, and erases the user data.
pub(crate) fn format(context: &mut Context<'_>, entry: Entry<'_>) -> Answered {
    let identity = context.drive.identity();
    if entry.nsid() != ALL_NAMESPACES {
        own_namespace(entry)?;
    }
    let lba_format = entry.bits(10, 0, 3) | entry.bits(10, 12, 13) << 4;
    let protection = entry.bits(10, 5, 7);
    if lba_format as usize >= identity.lba_formats.len() || protection != 0 {
        return Err(Refusal::at(Status::INVALID_FORMAT, 40));
    }
    match entry.bits(10, 9, 11) {
        0 | 1 => {} // Values 0 and 1: no secure erase, and user data erase.
        2 if identity.crypto_erase => {}
        _ => return Err(Refusal::field(10)),
    }
    context.drive.format(lba_format as u8)?;
    context.shared.raised = Some(Event::NamespaceChanged);
    Ok(Answer::OK)
}

pub(crate) fn sanitize(context: &mut Context<'_>, entry: Entry<'_>) -> Answered {
    let identity = context.drive.identity();
    match entry.bits(10, 0, 2) {
        EXIT_FAILURE_MODE => return Ok(Answer::OK), // Sanitize cannot fail.
        BLOCK_ERASE if identity.block_erase => {}
        CRYPTO_ERASE if identity.crypto_erase => {}
        _ => return Err(Refusal::field(10)),
    }
    context.drive.erase()?;
    context.shared.sanitize = Sanitize { last: Some(entry.dword(10)), is_erased: true };
    context.shared.raised = Some(Event::SanitizeCompleted);
    Ok(Answer::OK)
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sanitize {
    /// Command dword 10 of the most recent operation.
    last: Option<u32>,
    /// Global Data Erased: no data have been written since the last sanitize operation, or ever.
    is_erased: bool,
}

impl Sanitize {
    pub(crate) fn new(drive: &dyn Drive) -> Self {
        Self { last: None, is_erased: drive.health().host_write_bytes == 0 }
    }

    /// Records work that writes data.
    pub(crate) fn note(&mut self, work: &Work) {
        self.is_erased &= !matches!(work, Work::Write { .. } | Work::WriteZeroes { .. });
    }

    /// Returns the Sanitize Status log page (81h).
    pub(crate) fn page(self) -> Page {
        let mut page = Page::new(512);
        page.u16(0, ENDED);
        page.u16(2, u16::from(self.last.is_some()) | u16::from(self.is_erased) << 8);
        page.u32(4, self.last.unwrap_or(0));
        for at in (8..36).step_by(4) {
            page.u32(at, UNREPORTED);
        }
        page
    }
}
