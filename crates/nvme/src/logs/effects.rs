//! Commands Supported and Effects (05h; Base 2.1, 5.1.12.1.6), and Feature Identifiers Supported
//! and Effects (12h; 5.1.12.1.18). Identify Controller declares that both log pages report scopes
//! (LPA, bit 5).

use crate::drive::Identity;
use crate::features::{self, Scope};
use crate::page::Page;
use crate::{admin, io};

/// Command Set Identifier of the NVM command set.
const NVM: u32 = 0;
const SUPPORTED: u32 = 1;
/// Logical Block Content Change.
const CHANGES_BLOCKS: u32 = 1 << 1;
/// Namespace Capability Change.
const CHANGES_NAMESPACE: u32 = 1 << 2;
/// Command Submission and Execution: no other command to the namespace, or to any namespace.
const ALONE_IN_NAMESPACE: u32 = 1 << 16;
const ALONE: u32 = 2 << 16;
/// Scopes of commands and of features.
const OF_NAMESPACE: u32 = 1 << 20;
const OF_CONTROLLER: u32 = 1 << 21;
const OF_ENDURANCE_GROUP: u32 = 1 << 23;
const OF_SUBSYSTEM: u32 = 1 << 25;

/// Returns the page for an I/O command set; command sets other than the NVM command set have no
/// commands. (nvme-cli requests the page of every command set and treats an error status as a
/// failure.)
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
        admin::FORMAT_NVM => CHANGES_BLOCKS | CHANGES_NAMESPACE | ALONE_IN_NAMESPACE | OF_NAMESPACE,
        admin::SANITIZE => CHANGES_BLOCKS | ALONE | OF_SUBSYSTEM,
        admin::DIRECTIVE_SEND | admin::DIRECTIVE_RECEIVE => OF_NAMESPACE,
        _ => OF_CONTROLLER,
    }
}

fn of_io(opcode: u8) -> u32 {
    match opcode {
        io::WRITE | io::WRITE_ZEROES | io::DATASET_MANAGEMENT => CHANGES_BLOCKS | OF_NAMESPACE,
        _ => OF_NAMESPACE,
    }
}

/// Returns Feature Identifiers Supported and Effects; setting a feature has no other effect.
pub(super) fn features(identity: &Identity) -> Page {
    let mut page = Page::new(1024);
    for feature in 0..=u8::MAX {
        let Some(scope) = features::scope(feature, identity) else { continue };
        let scope = match scope {
            Scope::Namespace => OF_NAMESPACE,
            Scope::Controller => OF_CONTROLLER,
            Scope::EnduranceGroup => OF_ENDURANCE_GROUP,
        };
        page.u32(4 * usize::from(feature), SUPPORTED | scope);
    }
    page
}
