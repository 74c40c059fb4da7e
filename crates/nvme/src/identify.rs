//! Identify command (Base 2.1, 5.1.13; NVM Command Set 1.1, 4.1.5).

use crate::admin::whole_page;
use crate::command::{Entry, MAX_TRANSFER, NSID, Request};
use crate::controller::{Kind, QUEUE_ENTRIES};
use crate::drive::{Identity, PlacementInterface};
use crate::error_log::ENTRIES_MAX;
use crate::events;
use crate::fabrics::DISCOVERY_NQN;
use crate::logs::kelvin;
use crate::page::Page;
use crate::status::{Refusal, Status};
use crate::subsystem::{Answer, Answered, Context, own_namespace};

/// Base specification version implemented by the controller: 2.1.
pub(crate) const VERSION: u32 = 0x0002_0100;
/// Size of every Identify data structure in bytes.
const IDENTIFY_BYTES: usize = 4096;
pub(crate) const ENDURANCE_GROUP: u16 = 1;

const NAMESPACE: u8 = 0x00;
const CONTROLLER: u8 = 0x01;
const ACTIVE_NAMESPACES: u8 = 0x02;
const DESCRIPTORS: u8 = 0x03;
const NAMESPACE_OF_SET: u8 = 0x05;
const CONTROLLER_OF_SET: u8 = 0x06;
const ACTIVE_NAMESPACES_OF_SET: u8 = 0x07;
const INDEPENDENT_NAMESPACE: u8 = 0x08;
const ALLOCATED_NAMESPACES: u8 = 0x10;
const ALLOCATED_NAMESPACE: u8 = 0x11;
const CONTROLLERS_OF_NAMESPACE: u8 = 0x12;
const CONTROLLERS: u8 = 0x13;
const ENDURANCE_GROUPS: u8 = 0x19;
const ALLOCATED_NAMESPACES_OF_SET: u8 = 0x1a;
const ALLOCATED_NAMESPACE_OF_SET: u8 = 0x1b;
const COMMAND_SETS: u8 = 0x1c;

/// Minimum memory page size, the unit of MDTS and similar fields.
const MEMORY_PAGE_BYTES: u32 = 4096;
/// Maximum size of a Verify or Write Zeroes command, as a power of two of pages: 32 MiB.
pub(crate) const ZEROES_LIMIT: u8 = 13;

/// Bits of Controller Attributes: 128-bit host identifiers, endurance groups, traffic-based
/// keep-alive, Flexible Data Placement.
const ATTRIBUTES: u32 = 1 << 0 | 1 << 4 | 1 << 6;
const ATTRIBUTE_FDP: u32 = 1 << 19;

/// SGL Support: any alignment, lengths above the data length, offsets, and transport SGLs.
const SGL: u32 = 1 | 1 << 18 | 1 << 20 | 1 << 21;

/// Namespace Features: the atomic write units and the optimal sizes of the namespace are valid.
const NAMESPACE_FEATURES: u8 = 1 << 1 | 1 << 4;
/// NMIC: several controllers may use the namespace.
const SHARED: u8 = 1;

pub(crate) fn execute(context: &Context<'_>, request: Request<'_>) -> Answered {
    whole_page(request, IDENTIFY_BYTES)?;
    let mut page = Page::new(IDENTIFY_BYTES);
    let structure = request.entry.bits(10, 0, 7) as u8;
    match (context.controller.kind, structure) {
        (_, CONTROLLER) => controller(&mut page, context),
        (Kind::Discovery, _) => return Err(Refusal::field(10)),
        (Kind::Io, structure) => fill(&mut page, context, request.entry, structure)?,
    }
    Ok(Answer::data(page.into_bytes()))
}

/// Fills in a structure that only I/O controllers have.
fn fill(page: &mut Page, context: &Context<'_>, entry: Entry<'_>, cns: u8) -> Result<(), Refusal> {
    let is_of_command_set = matches!(
        cns,
        NAMESPACE_OF_SET
            | CONTROLLER_OF_SET
            | ACTIVE_NAMESPACES_OF_SET
            | ALLOCATED_NAMESPACES_OF_SET
            | ALLOCATED_NAMESPACE_OF_SET
    );
    if is_of_command_set && entry.bits(11, 24, 31) != 0 {
        return Err(Refusal::field(11)); // The controller supports only the NVM command set.
    }
    let first_controller = entry.bits(10, 16, 31) as u16;
    match cns {
        // The only namespace is both allocated and active, so both types of lists are equal.
        NAMESPACE | ALLOCATED_NAMESPACE => {
            own_namespace(entry)?;
            namespace(page, context);
        }
        ACTIVE_NAMESPACES
        | ACTIVE_NAMESPACES_OF_SET
        | ALLOCATED_NAMESPACES
        | ALLOCATED_NAMESPACES_OF_SET => match entry.nsid() {
            0 => page.u32(0, NSID),
            NSID..0xffff_fffe => {} // No namespace identifier is higher.
            _ => return Err(Refusal::at(Status::INVALID_NAMESPACE, 4)),
        },
        DESCRIPTORS => {
            own_namespace(entry)?;
            descriptors(page, context.drive.identity());
        }
        NAMESPACE_OF_SET | ALLOCATED_NAMESPACE_OF_SET => {
            own_namespace(entry)?;
            let granularity = context.drive.identity().write_granularity.0;
            page.u32(268, (granularity / context.block_bytes().0) as u32); // NPDGL
        }
        INDEPENDENT_NAMESPACE => {
            own_namespace(entry)?;
            page.u8(1, SHARED);
            page.u16(12, ENDURANCE_GROUP);
            page.u8(14, 1); // NSTAT: ready
        }
        CONTROLLER_OF_SET => {
            page.u8(0, ZEROES_LIMIT); // Size limit for Verify.
            page.u8(1, ZEROES_LIMIT);
        }
        CONTROLLERS_OF_NAMESPACE => {
            own_namespace(entry)?;
            identifiers(page, &context.shared.ids, first_controller);
        }
        CONTROLLERS => identifiers(page, &context.shared.ids, first_controller),
        ENDURANCE_GROUPS => identifiers(page, &[ENDURANCE_GROUP], entry.bits(11, 0, 15) as u16),
        COMMAND_SETS => page.u64(0, 1), // The only combination consists of the NVM command set.
        _ => return Err(Refusal::field(10)),
    }
    Ok(())
}

fn controller(page: &mut Page, context: &Context<'_>) {
    let identity = context.drive.identity();
    page.text(4, 20, &identity.serial);
    page.text(64, 8, &identity.firmware);
    page.u8(77, (MAX_TRANSFER / MEMORY_PAGE_BYTES).ilog2() as u8);
    page.u16(78, context.controller.id);
    page.u32(80, VERSION);
    page.u8(259, events::LIMIT as u8 - 1);
    page.u8(262, ENTRIES_MAX as u8 - 1);
    page.u16(320, 10); // KAS: keep-alive timeouts are multiples of one second.
    page.u16(514, QUEUE_ENTRIES);
    page.u32(536, SGL);
    match context.controller.kind {
        Kind::Io => {
            io_controller(page, context, identity);
            page.name(768, 256, &context.shared.access.nqn);
        }
        Kind::Discovery => {
            page.text(24, 40, "writecliff discovery");
            page.u8(111, 2);
            page.u32(96, 1 << 6);
            page.u8(261, 1 << 2);
            page.name(768, 256, DISCOVERY_NQN);
        }
    }
}

fn io_controller(page: &mut Page, context: &Context<'_>, identity: &Identity) {
    page.text(24, 40, &identity.model);
    page.u8(76, 1 << 1); // CMIC: the subsystem may have several controllers.
    page.u32(92, events::NAMESPACE_NOTICES);
    let fdp = if identity.fdp().is_some() { ATTRIBUTE_FDP } else { 0 };
    page.u32(96, ATTRIBUTES | fdp);
    page.u8(111, 1); // CNTRLTYPE: I/O
    page.u8(253, 1); // NVMSR: storage device.
    let has_directives = identity.placement != PlacementInterface::None;
    // OACS: Format NVM and directives.
    page.u16(256, 1 << 1 | u16::from(has_directives) << 5);
    page.u8(258, 3); // ACL
    page.u8(260, 1 | 1 << 1); // FRMW: one read-only firmware slot.
    page.u8(261, 1 << 1 | 1 << 2 | 1 << 5); // LPA: effects, extended data, supported log pages.
    page.u16(266, identity.warning_temperature.map_or(0, kelvin));
    page.u128(280, u128::from(identity.capacity.0));
    // SANICAP. Sanitize without deallocation makes no additional media modification.
    let erasures = u32::from(identity.crypto_erase) | u32::from(identity.block_erase) << 1;
    page.u32(328, if erasures == 0 { 0 } else { erasures | 1 << 30 });
    page.u16(340, ENDURANCE_GROUP); // ENDGIDMAX
    page.u128(368, u128::from(identity.capacity.0)); // MEGCAP
    page.u8(512, 0x66);
    page.u8(513, 0x44);
    page.u32(516, 1); // NN
    // ONCS: Compare, Dataset Management, Write Zeroes, Save and Select, Timestamp, Verify.
    page.u16(520, 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 6 | 1 << 7);
    page.u8(524, u8::from(identity.crypto_erase) << 2);
    page.u8(525, u8::from(identity.volatile_cache) | 3 << 1); // A flush may address all namespaces.
    let atomic = atomic_blocks(context);
    page.u16(526, atomic);
    page.u16(528, atomic);
    page.u32(1792, (64 + context.shared.access.in_capsule) / 16);
    page.u32(1796, 1);
    page.u8(1803, 1); // MSDBD
}

/// Returns the Atomic Write Unit, a 0's based number of logical blocks.
fn atomic_blocks(context: &Context<'_>) -> u16 {
    let blocks = context.drive.identity().atomic_write.0 / context.block_bytes().0;
    (blocks.clamp(1, 1 << 16) - 1) as u16
}

fn namespace(page: &mut Page, context: &Context<'_>) {
    let identity = context.drive.identity();
    for at in [0, 8, 16] {
        page.u64(at, context.blocks()); // NSZE, NCAP, NUSE
    }
    page.u8(24, NAMESPACE_FEATURES);
    page.u8(25, identity.lba_formats.len() as u8 - 1);
    page.u8(26, context.drive.lba_format());
    page.u8(30, SHARED);
    page.u8(33, 1 | 1 << 3); // DLFEAT: zeros if deallocated; Write Zeroes deallocates.
    let atomic = atomic_blocks(context);
    page.u16(34, atomic);
    page.u16(36, atomic);
    page.u128(48, u128::from(identity.capacity.0));
    // NPWG, NPWA, NPDG, NPDA, NOWS: 0's based block counts.
    let blocks = identity.write_granularity.0 / context.block_bytes().0;
    let granularity = blocks.clamp(1, 1 << 16) - 1;
    for at in [64, 66, 68, 70, 72] {
        page.u16(at, granularity as u16);
    }
    page.u16(102, ENDURANCE_GROUP);
    page.put(104, &identity.nguid);
    page.put(120, &identity.eui64);
    for (index, format) in identity.lba_formats.iter().enumerate() {
        // Larger blocks are faster, and 0 is the best relative performance.
        let relative = identity.lba_formats.iter().filter(|other| other.0 > format.0).count();
        page.u32(128 + 4 * index, format.0.ilog2() << 16 | (relative.min(3) as u32) << 24);
    }
}

fn descriptors(page: &mut Page, identity: &Identity) {
    const NVM_COMMAND_SET: [u8; 1] = [0];
    let listed: [(u8, &[u8]); 4] =
        [(1, &identity.eui64), (2, &identity.nguid), (3, &identity.uuid), (4, &NVM_COMMAND_SET)];
    let mut at = 0;
    for (kind, identifier) in listed {
        page.u8(at, kind);
        page.u8(at + 1, identifier.len() as u8);
        page.put(at + 4, identifier);
        at += 4 + identifier.len();
    }
}

/// Fills in the list of the identifiers from `first` on: their number (at most 2047), and each.
fn identifiers(page: &mut Page, ids: &[u16], first: u16) {
    let listed = ids.iter().filter(|&&id| id >= first).take(IDENTIFY_BYTES / 2 - 1);
    let mut count = 0;
    for &id in listed {
        count += 1;
        page.u16(2 * count, id);
    }
    page.u16(0, count as u16);
}
