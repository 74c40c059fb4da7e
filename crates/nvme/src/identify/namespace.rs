//! The namespace: Identify Namespace (CNS 00h), the namespace identifiers (03h), and the command
//! set structures (05h, 08h).

use super::controller::atomic_blocks;
use super::{ENDURANCE_GROUP, IDENTIFY_BYTES};
use crate::drive::Identity;
use crate::page::Page;
use crate::subsystem::Context;

/// Namespace Features: the atomic write units and the optimal sizes of the namespace are valid.
const FEATURES: u8 = 1 << 1 | 1 << 4;
/// NMIC: several controllers may use the namespace.
const SHARED: u8 = 1;

/// Returns the NVM command set's Identify Namespace structure.
pub(super) fn page(context: &Context<'_>) -> Page {
    let mut page = Page::new(IDENTIFY_BYTES);
    let identity = context.drive.identity();
    let block = context.block_bytes();
    let blocks = context.blocks();
    for at in [0, 8, 16] {
        page.u64(at, blocks); // NSZE, NCAP, NUSE
    }
    page.u8(24, FEATURES);
    page.u8(25, identity.lba_formats.len() as u8 - 1);
    page.u8(26, context.drive.lba_format());
    page.u8(30, SHARED);
    page.u8(33, 1 | 1 << 3); // DLFEAT: deallocated blocks read as zeros; Write Zeroes deallocates
    let atomic = atomic_blocks(context);
    page.u16(34, atomic);
    page.u16(36, atomic);
    page.u128(48, u128::from(identity.capacity.0));
    // NPWG, NPWA, NPDG, NPDA, NOWS: 0's based numbers of blocks
    let granularity = (identity.write_granularity.0 / block.0).clamp(1, 1 << 16) - 1;
    for at in [64, 66, 68, 70, 72] {
        page.u16(at, granularity as u16);
    }
    page.u16(102, ENDURANCE_GROUP);
    page.put(104, &identity.nguid);
    page.put(120, &identity.eui64);
    for (index, format) in identity.lba_formats.iter().enumerate() {
        // Larger blocks are faster; relative performance 0 is the best.
        let relative = identity.lba_formats.iter().filter(|other| other.0 > format.0).count();
        page.u32(128 + 4 * index, format.0.ilog2() << 16 | (relative.min(3) as u32) << 24);
    }
    page
}

/// Returns the Namespace Identification Descriptor list.
pub(super) fn descriptors(identity: &Identity) -> Page {
    const NVM_COMMAND_SET: [u8; 1] = [0];
    let mut page = Page::new(IDENTIFY_BYTES);
    let listed: [(u8, &[u8]); 4] =
        [(1, &identity.eui64), (2, &identity.nguid), (3, &identity.uuid), (4, &NVM_COMMAND_SET)];
    let mut at = 0;
    for (kind, identifier) in listed {
        page.u8(at, kind);
        page.u8(at + 1, identifier.len() as u8);
        page.put(at + 4, identifier);
        at += 4 + identifier.len();
    }
    page
}

/// Returns the CNS 05h structure, which adds no information to CNS 00h because blocks have no
/// metadata.
pub(super) fn of_nvm_command_set(context: &Context<'_>) -> Page {
    let mut page = Page::new(IDENTIFY_BYTES);
    let block = context.block_bytes();
    let granularity = context.drive.identity().write_granularity.0 / block.0;
    page.u32(268, granularity as u32); // NPDGL
    page
}

/// Returns the CNS 08h structure with the fields that are independent of the command set.
pub(super) fn independent(context: &Context<'_>) -> Page {
    let mut page = Page::new(IDENTIFY_BYTES);
    page.u8(1, SHARED);
    page.u16(12, ENDURANCE_GROUP);
    page.u8(14, u8::from(!context.shared.is_formatting)); // NSTAT: ready
    page
}
