//! Identify Controller (CNS 01h), and its NVM command set structure (CNS 06h).

use super::{ENDURANCE_GROUP, IDENTIFY_BYTES, VERSION};
use crate::command::MAX_TRANSFER;
use crate::controller::{Kind, QUEUE_ENTRIES};
use crate::drive::{Identity, PlacementInterface};
use crate::error_log::ENTRIES_MAX;
use crate::events;
use crate::fabrics::DISCOVERY_NQN;
use crate::logs::health::kelvin;
use crate::page::Page;
use crate::subsystem::Context;

/// Minimum memory page size, the unit of MDTS and similar fields.
const MEMORY_PAGE_BYTES: u32 = 4096;
/// Maximum size of a Verify or Write Zeroes command, as a power of two of pages: 32 MiB.
pub(crate) const ZEROES_LIMIT: u8 = 13;

/// Bits of Controller Attributes: 128-bit host identifiers, endurance groups, traffic-based
/// keep-alive, Flexible Data Placement.
const ATTRIBUTES: u32 = 1 << 0 | 1 << 4 | 1 << 6;
const ATTRIBUTE_FDP: u32 = 1 << 19;

/// SGL Support: no alignment requirement, lengths above the data length, offsets, and transport
/// SGLs.
const SGL: u32 = 1 | 1 << 18 | 1 << 20 | 1 << 21;

pub(super) fn page(context: &Context<'_>) -> Page {
    let mut page = Page::new(IDENTIFY_BYTES);
    let identity = context.drive.identity();
    page.text(64, 8, &identity.firmware);
    page.u8(77, (MAX_TRANSFER / MEMORY_PAGE_BYTES).ilog2() as u8);
    page.u16(78, context.controller.id);
    page.u32(80, VERSION);
    page.u8(259, events::LIMIT as u8 - 1);
    page.u8(262, ENTRIES_MAX as u8 - 1);
    page.u16(320, 10); // KAS: keep-alive timeouts are multiples of one second
    page.u16(514, QUEUE_ENTRIES);
    page.u32(536, SGL);
    match context.controller.kind {
        Kind::Io => {
            of_io_controller(&mut page, context, identity);
            page.name(768, 256, &context.shared.access.nqn);
        }
        Kind::Discovery => {
            page.text(4, 20, &identity.serial);
            page.text(24, 40, "writecliff discovery");
            page.u8(111, 2);
            page.u32(96, 1 << 6);
            page.u8(261, 1 << 2);
            page.name(768, 256, DISCOVERY_NQN);
        }
    }
    page
}

fn of_io_controller(page: &mut Page, context: &Context<'_>, identity: &Identity) {
    let access = &context.shared.access;
    page.text(4, 20, &identity.serial);
    page.text(24, 40, &identity.model);
    page.u8(76, 1 << 1); // CMIC: the subsystem may have several controllers
    page.u32(92, events::NAMESPACE_NOTICES);
    let fdp = if identity.fdp().is_some() { ATTRIBUTE_FDP } else { 0 };
    page.u32(96, ATTRIBUTES | fdp);
    page.u8(111, 1); // CNTRLTYPE: I/O
    page.u8(253, 1); // NVMSR: a storage device
    let has_directives = identity.placement != PlacementInterface::None;
    page.u16(256, 1 << 1 | u16::from(has_directives) << 5); // OACS: Format NVM, directives
    page.u8(258, 3); // ACL
    page.u8(260, 1 | 1 << 1); // FRMW: one read-only firmware slot
    page.u8(261, 1 << 1 | 1 << 2 | 1 << 5); // LPA: effects, extended data, supported log pages
    page.u16(266, identity.warning_temperature.map_or(0, kelvin));
    page.u16(268, identity.critical_temperature.map_or(0, kelvin));
    page.u128(280, u128::from(identity.capacity.0));
    page.u32(328, sanitize_capabilities(identity));
    page.u16(340, ENDURANCE_GROUP); // ENDGIDMAX
    page.u128(368, u128::from(identity.capacity.0)); // MEGCAP
    page.u8(512, 0x66);
    page.u8(513, 0x44);
    page.u32(516, 1); // NN
    // ONCS: Compare, Dataset Management, Write Zeroes, save and select fields of features,
    // Timestamp, Verify
    page.u16(520, 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 6 | 1 << 7);
    page.u8(524, u8::from(identity.crypto_erase) << 2);
    page.u8(525, u8::from(identity.volatile_cache) | 3 << 1); // a flush may address all namespaces
    let atomic = atomic_blocks(context);
    page.u16(526, atomic);
    page.u16(528, atomic);
    page.u32(1792, (64 + access.in_capsule) / 16);
    page.u32(1796, 1);
    page.u8(1803, 1); // MSDBD
    let power = identity.max_power.map_or(0, |watts| (watts * 100.0).ceil() as u16);
    page.u16(2048, power);
}

/// Returns the Atomic Write Unit, a 0's based number of logical blocks.
pub(super) fn atomic_blocks(context: &Context<'_>) -> u16 {
    let identity = context.drive.identity();
    let blocks = identity.atomic_write.0 / context.block_bytes().0;
    (blocks.clamp(1, 1 << 16) - 1) as u16
}

/// Returns the drive's sanitize capabilities. Without deallocation, sanitize does not modify the
/// media additionally.
fn sanitize_capabilities(identity: &Identity) -> u32 {
    let some = u32::from(identity.crypto_erase) | u32::from(identity.block_erase) << 1;
    if some == 0 { 0 } else { some | 1 << 30 }
}

/// Returns the CNS 06h structure: limits of Verify, Write Zeroes and Dataset Management.
pub(super) fn of_nvm_command_set() -> Page {
    let mut page = Page::new(IDENTIFY_BYTES);
    page.u8(0, ZEROES_LIMIT);
    page.u8(1, ZEROES_LIMIT);
    page
}
