//! Commands Supported and Effects (05h; Base 2.1, 5.1.12.1.6).

use crate::drive::Identity;
use crate::page::Page;
use crate::{admin, io};

/// Command Set Identifier of the NVM command set.
const NVM: u32 = 0;
const SUPPORTED: u32 = 1;
/// Logical Block Content Change.
const CHANGES_BLOCKS: u32 = 1 << 1;
/// Namespace Capability Change.
const CHANGES_NAMESPACE: u32 = 1 << 2;
/// Command Submission and Execution: no other command to the namespace, or to any.
const ALONE_IN_NAMESPACE: u32 = 1 << 16;
const ALONE: u32 = 2 << 16;

/// The page for an I/O command set; those other than the NVM command set have no commands here.
/// (nvme-cli asks for every set that it knows, and takes a refusal for a failure.)
pub(super) fn page(identity: &Identity, command_set: u32) -> Page {
    let mut page = Page::new(4096);
    for opcode in (0..=u8::MAX).filter(|&opcode| admin::is_supported(opcode, identity)) {
        page.u32(4 * usize::from(opcode), SUPPORTED | of_admin(opcode));
    }
    if command_set != NVM {
        return page;
    }
    for opcode in (0..=u8::MAX).filter(|&opcode| io::is_supported(opcode, identity)) {
        page.u32(1024 + 4 * usize::from(opcode), SUPPORTED | of_io(opcode));
    }
    page
}

fn of_admin(opcode: u8) -> u32 {
    match opcode {
        admin::FORMAT_NVM => CHANGES_BLOCKS | CHANGES_NAMESPACE | ALONE_IN_NAMESPACE,
        admin::SANITIZE => CHANGES_BLOCKS | ALONE,
        _ => 0,
    }
}

fn of_io(opcode: u8) -> u32 {
    match opcode {
        io::WRITE | io::WRITE_ZEROES | io::DATASET_MANAGEMENT => CHANGES_BLOCKS,
        _ => 0,
    }
}
