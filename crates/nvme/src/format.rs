//! Format NVM (Base 2.1, 5.1.10), which sets the logical block size and erases the user data.

use crate::command::{ALL_NAMESPACES, Entry, Erase, Work};
use crate::status::{Refusal, Status};
use crate::subsystem::{Answer, Answered, Context, own_namespace};

pub(crate) fn execute(context: &Context<'_>, entry: Entry<'_>) -> Answered {
    let identity = context.drive.identity();
    if entry.nsid() != ALL_NAMESPACES {
        own_namespace(entry)?;
    }
    context.is_free()?;
    let lba_format = entry.bits(10, 0, 3) | entry.bits(10, 12, 13) << 4;
    let protection = entry.bits(10, 5, 7);
    if lba_format as usize >= identity.lba_formats.len() || protection != 0 {
        return Err(Refusal::at(Status::INVALID_FORMAT, 40));
    }
    let erase = match entry.bits(10, 9, 11) {
        0 => Erase::None,
        1 => Erase::Blocks,
        2 if identity.crypto_erase => Erase::Cryptographic,
        _ => return Err(Refusal::field(10)),
    };
    Ok(Answer::Work(Work::Format { lba_format: lba_format as u8, erase }))
}
