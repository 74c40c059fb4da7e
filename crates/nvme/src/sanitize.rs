//! Sanitize (Base 2.1, 5.1.22 and 8.1.24): the command completes immediately, the erasure continues
//! in the background, and most commands are rejected until it has finished.

use crate::command::{Entry, Erase, Failure, Work};
use crate::drive::Drive;
use crate::page::Page;
use crate::status::Refusal;
use crate::subsystem::{Answer, Answered, Context};

const EXIT_FAILURE_MODE: u32 = 1;
const BLOCK_ERASE: u32 = 2;
const CRYPTO_ERASE: u32 = 4;
/// Value of Sanitize Progress while no operation is in progress, and of times that are not
/// reported.
const ENDED: u16 = u16::MAX;
const UNREPORTED: u32 = u32::MAX;

/// The most recent sanitize operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sanitize {
    /// Command dword 10 of the most recent operation.
    last: Option<u32>,
    is_running: bool,
    /// Global Data Erased: no data have been written since the last sanitize operation, or ever.
    is_erased: bool,
}

impl Sanitize {
    pub(crate) fn new(drive: &dyn Drive) -> Self {
        let is_erased = drive.health().host_write_bytes == 0;
        Self { last: None, is_running: drive.sanitize_progress().is_some(), is_erased }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.is_running
    }

    /// Records work that writes data.
    pub(crate) fn note(&mut self, work: &Work) {
        self.is_erased &= !matches!(work, Work::Write { .. } | Work::WriteZeroes { .. });
    }

    /// Returns `true` if the operation has finished since the last call.
    pub(crate) fn has_ended(&mut self, drive: &dyn Drive) -> bool {
        let ended = self.is_running && drive.sanitize_progress().is_none();
        if ended {
            self.is_running = false;
            self.is_erased = true;
        }
        ended
    }

    /// Returns the Sanitize Status log page (81h).
    pub(crate) fn page(&self, drive: &dyn Drive) -> Page {
        let mut page = Page::new(512);
        let progress = drive.sanitize_progress().filter(|_| self.is_running);
        page.u16(0, progress.map_or(ENDED, |share| (share.clamp(0.0, 1.0) * 65535.0) as u16));
        let status = match (self.is_running, self.last) {
            (true, _) => 2,
            (false, Some(_)) => 1,
            (false, None) => 0,
        };
        page.u16(2, status | u16::from(self.is_erased) << 8);
        page.u32(4, self.last.unwrap_or(0));
        for at in (8..36).step_by(4) {
            page.u32(at, UNREPORTED);
        }
        page
    }
}

pub(crate) fn execute(context: &mut Context<'_>, entry: Entry<'_>) -> Answered {
    context.is_free()?;
    let identity = context.drive.identity();
    let erase = match entry.bits(10, 0, 2) {
        EXIT_FAILURE_MODE => return Ok(Answer::OK), // operations cannot fail
        BLOCK_ERASE if identity.block_erase => Erase::Blocks,
        CRYPTO_ERASE if identity.crypto_erase => Erase::Cryptographic,
        _ => return Err(Refusal::field(10)),
    };
    context.drive.start_sanitize(erase).map_err(Failure::status)?;
    let sanitize = &mut context.shared.sanitize;
    sanitize.last = Some(entry.dword(10));
    sanitize.is_running = true;
    Ok(Answer::OK)
}
