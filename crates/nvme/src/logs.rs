//! Get Log Page (Base 2.1, 5.1.12): the supported log pages, and selection of the requested range.

use writecliff_base::Nanos;

use crate::admin::whole_page;
use crate::command::{ALL_NAMESPACES, Entry, MAX_TRANSFER, NSID, Request};
use crate::controller::{Features, Kind};
use crate::drive::{Health, Identity};
use crate::features;
use crate::identify::ENDURANCE_GROUP;
use crate::page::Page;
use crate::status::{Refusal, Status};
use crate::subsystem::{Access, Answer, Answered, Context};
use crate::{admin, fdp, io};

const SUPPORTED: u8 = 0x00;
const ERRORS: u8 = 0x01;
const HEALTH: u8 = 0x02;
const FIRMWARE: u8 = 0x03;
const CHANGED_NAMESPACES: u8 = 0x04;
const EFFECTS: u8 = 0x05;
const ENDURANCE: u8 = 0x09;
const FEATURE_EFFECTS: u8 = 0x12;
const MI_EFFECTS: u8 = 0x13;
const FDP_CONFIGURATIONS: u8 = 0x20;
const FDP_USAGE: u8 = 0x21;
const FDP_STATISTICS: u8 = 0x22;
const FDP_EVENTS: u8 = 0x23;
const DISCOVERY: u8 = 0x70;
const SANITIZE: u8 = 0x81;

fn is_supported(page: u8, kind: Kind, identity: &Identity) -> bool {
    match (kind, page) {
        (Kind::Discovery, page) => matches!(page, SUPPORTED | DISCOVERY),
        (
            Kind::Io,
            SUPPORTED | ERRORS | HEALTH | FIRMWARE | CHANGED_NAMESPACES | EFFECTS | ENDURANCE
            | FEATURE_EFFECTS | MI_EFFECTS,
        ) => true,
        (Kind::Io, FDP_CONFIGURATIONS | FDP_USAGE | FDP_STATISTICS | FDP_EVENTS) => {
            identity.fdp().is_some()
        }
        (Kind::Io, SANITIZE) => identity.block_erase || identity.crypto_erase,
        _ => false,
    }
}

pub(crate) fn execute(context: &mut Context<'_>, request: Request<'_>) -> Answered {
    let entry = request.entry;
    let id = entry.bits(10, 0, 7) as u8;
    if !is_supported(id, context.controller.kind, context.drive.identity()) {
        return Err(Refusal::at(Status::INVALID_LOG_PAGE, 40));
    }
    let dwords = u64::from(entry.bits(10, 16, 31)) | u64::from(entry.bits(11, 0, 15)) << 16;
    let bytes = (dwords + 1) * 4;
    if bytes > u64::from(MAX_TRANSFER) {
        return Err(Refusal::field(10));
    }
    whole_page(request, bytes as usize)?;
    let is_index = entry.flag(14, 23); // No log page has an index offset.
    if is_index {
        return Err(Refusal::field(14));
    }
    let page = page(context, entry, id)?;
    let offset = entry.quadword(12);
    if !offset.is_multiple_of(4) || offset > page.len() as u64 {
        return Err(Refusal::field(12));
    }
    let retains_event = entry.flag(10, 15);
    if !retains_event {
        context.controller.events.acknowledge(id);
        context.controller.namespace_changed &= id != CHANGED_NAMESPACES;
    }
    Ok(Answer::data(page.part(offset as usize, bytes as usize)))
}

fn page(context: &mut Context<'_>, entry: Entry<'_>, id: u8) -> Result<Page, Refusal> {
    let is_of_group = matches!(id, ENDURANCE | FDP_CONFIGURATIONS..=FDP_EVENTS);
    if is_of_group && entry.bits(11, 16, 31) != u32::from(ENDURANCE_GROUP) {
        return Err(Refusal::field(11));
    }
    Ok(match id {
        SUPPORTED => supported(context),
        ERRORS => context.drive.error_log().page(),
        HEALTH => {
            // Each log exists once per controller, not per namespace.
            if !matches!(entry.nsid(), 0 | ALL_NAMESPACES) {
                return Err(Refusal::at(Status::INVALID_FIELD, 4));
            }
            smart(&context.drive.health(), &context.controller.features)
        }
        FIRMWARE => {
            let mut page = Page::new(512);
            page.u8(0, 1); // The active firmware slot is slot 1.
            page.text(8, 8, &context.drive.identity().firmware);
            page
        }
        CHANGED_NAMESPACES => {
            let mut page = Page::new(4096);
            page.u32(0, if context.controller.namespace_changed { NSID } else { 0 });
            page
        }
        EFFECTS => command_effects(context.drive.identity(), entry.bits(14, 24, 31)),
        FEATURE_EFFECTS => feature_effects(context.drive.identity()),
        MI_EFFECTS => Page::new(4096), // The management interface has no commands.
        ENDURANCE => endurance_group(context),
        FDP_CONFIGURATIONS => fdp::configurations(context.drive.identity()),
        FDP_USAGE => fdp::usage(context.drive.identity()),
        FDP_STATISTICS => fdp::statistics(context.drive),
        FDP_EVENTS => fdp::events(context, entry.flag(10, 8)),
        DISCOVERY => discovery(&context.shared.access),
        _ => context.shared.sanitize.page(),
    })
}

/// Returns Supported Log Pages (00h).
fn supported(context: &Context<'_>) -> Page {
    let mut page = Page::new(1024);
    let (kind, identity) = (context.controller.kind, context.drive.identity());
    for id in (0..=u8::MAX).filter(|&id| is_supported(id, kind, identity)) {
        page.u32(4 * usize::from(id), 1);
    }
    page
}

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
/// SMART data unit: 1000 units of 512 bytes.
const DATA_UNIT: u64 = 512_000;
const BILLION: u64 = 1_000_000_000;

const SPARE_LOW: u8 = 1 << 0;
const TEMPERATURE: u8 = 1 << 1;
const READ_ONLY: u8 = 1 << 3;

/// Composite temperature in degrees Celsius that a drive without a temperature model reports. The
/// field is mandatory, and hosts would interpret 0 as 0 K. The composite temperature need not be
/// that of a physical point (Base 2.1, 5.1.12.1.3). JEDEC rates client SSDs at 40 °C in use
/// (JESD218), which is below the warning thresholds of hosts.
const NOMINAL_CELSIUS: f64 = 40.0;

/// Converts a temperature to kelvin, as defined by the standard.
pub(crate) fn kelvin(celsius: f64) -> u16 {
    (celsius + 273.15).round().clamp(1.0, 65_534.0) as u16
}

fn composite(health: &Health) -> u16 {
    kelvin(health.temperature.unwrap_or(NOMINAL_CELSIUS))
}

/// Returns the SMART critical warnings for the controller's temperature thresholds.
pub(crate) fn warnings(health: &Health, features: &Features) -> u8 {
    let mut warnings = 0;
    if health.available_spare < health.spare_threshold {
        warnings |= SPARE_LOW;
    }
    let is_outside =
        |kelvin| kelvin >= features.over || (features.under > 0 && kelvin <= features.under);
    if is_outside(composite(health)) {
        warnings |= TEMPERATURE;
    }
    if health.is_read_only {
        warnings |= READ_ONLY;
    }
    warnings
}

fn units(bytes: u64, unit: u64) -> u128 {
    u128::from(bytes.div_ceil(unit))
}

fn whole(time: Nanos, unit: u64) -> u128 {
    u128::from(time.0 / unit)
}

/// Writes the fields that SMART and endurance groups have at equal offsets, after the warnings.
fn put_spare(page: &mut Page, health: &Health) {
    debug_assert!(health.available_spare <= 100 && health.spare_threshold <= 100);
    page.u8(3, health.available_spare);
    page.u8(4, health.spare_threshold);
    page.u8(5, health.percentage_used.clamp(0.0, 255.0) as u8);
}

/// Returns SMART / Health Information (02h).
fn smart(health: &Health, features: &Features) -> Page {
    let mut page = Page::new(512);
    let warnings = warnings(health, features);
    page.u8(0, warnings);
    page.u16(1, composite(health));
    put_spare(&mut page, health);
    page.u8(6, warnings & (SPARE_LOW | READ_ONLY));
    page.u128(32, units(health.host_read_bytes, DATA_UNIT));
    page.u128(48, units(health.host_write_bytes, DATA_UNIT));
    page.u128(64, u128::from(health.host_read_commands));
    page.u128(80, u128::from(health.host_write_commands));
    page.u128(96, whole(health.busy, MINUTE));
    page.u128(112, u128::from(health.power_cycles));
    page.u128(128, whole(health.powered, HOUR));
    page.u128(144, u128::from(health.unsafe_shutdowns));
    page.u128(160, u128::from(health.media_errors));
    page.u128(176, u128::from(health.error_entries));
    // Temperature Sensor 1 is the only sensor; 0 marks a nonexistent sensor.
    page.u16(200, health.temperature.map_or(0, kelvin));
    page.u32(224, whole(health.throttled, SECOND) as u32);
    page
}

/// Returns Endurance Group Information (09h).
fn endurance_group(context: &Context<'_>) -> Page {
    let mut page = Page::new(512);
    let (health, identity) = (context.drive.health(), context.drive.identity());
    let warnings = warnings(&health, &context.controller.features);
    page.u8(0, warnings & (SPARE_LOW | READ_ONLY));
    put_spare(&mut page, &health);
    page.u128(32, identity.rated_writes.map_or(0, |bytes| units(bytes.0, BILLION)));
    page.u128(48, units(health.host_read_bytes, BILLION));
    page.u128(64, units(health.host_write_bytes, BILLION));
    page.u128(80, units(health.media_write_bytes, BILLION));
    page.u128(96, u128::from(health.host_read_commands));
    page.u128(112, u128::from(health.host_write_commands));
    page.u128(128, u128::from(health.media_errors));
    page.u128(144, u128::from(health.error_entries));
    page.u128(160, u128::from(identity.capacity.0));
    page
}

// Commands Supported and Effects (05h; Base 2.1, 5.1.12.1.6), and Feature Identifiers Supported and
// Effects (12h; 5.1.12.1.18). Bit 5 of LPA in Identify Controller declares both report scopes.

/// Command Set Identifier of the NVM command set.
const NVM: u32 = 0;
const IS_SUPPORTED: u32 = 1;
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

/// Returns the page for an I/O command set, empty except for the NVM command set. (nvme-cli
/// requests the page of every command set and treats an error status as a failure.)
fn command_effects(identity: &Identity, command_set: u32) -> Page {
    let mut page = Page::new(4096);
    for opcode in (0..=u8::MAX).filter(|&opcode| admin::is_supported(opcode, identity)) {
        let effects = match opcode {
            admin::FORMAT_NVM => {
                CHANGES_BLOCKS | CHANGES_NAMESPACE | ALONE_IN_NAMESPACE | OF_NAMESPACE
            }
            admin::SANITIZE => CHANGES_BLOCKS | ALONE | OF_SUBSYSTEM,
            admin::DIRECTIVE_SEND | admin::DIRECTIVE_RECEIVE => OF_NAMESPACE,
            _ => OF_CONTROLLER,
        };
        page.u32(4 * usize::from(opcode), IS_SUPPORTED | effects);
    }
    if command_set != NVM {
        return page;
    }
    for opcode in (0..=u8::MAX).filter(|&opcode| io::is_supported(opcode, identity)) {
        let changes = matches!(opcode, io::WRITE | io::WRITE_ZEROES | io::DATASET_MANAGEMENT);
        let effects = if changes { CHANGES_BLOCKS } else { 0 } | OF_NAMESPACE;
        page.u32(1024 + 4 * usize::from(opcode), IS_SUPPORTED | effects);
    }
    page
}

/// Returns Feature Identifiers Supported and Effects; setting a feature has no other effect.
fn feature_effects(identity: &Identity) -> Page {
    let mut page = Page::new(1024);
    for feature in 0..=u8::MAX {
        let capabilities = features::capabilities(feature, Kind::Io, identity);
        let Some(capabilities) = capabilities else { continue };
        let scope = match feature {
            features::FDP => OF_ENDURANCE_GROUP,
            _ if capabilities & features::OF_NAMESPACE != 0 => OF_NAMESPACE,
            _ => OF_CONTROLLER,
        };
        page.u32(4 * usize::from(feature), IS_SUPPORTED | scope);
    }
    page
}

const RECORD: usize = 1024;
/// Subsystem Type: an NVM subsystem without further discovery services.
const NVM_SUBSYSTEM: u8 = 2;
/// Port and controller: the only port, and a controller that the subsystem chooses.
const PORT: u16 = 1;
const DYNAMIC: u16 = 0xffff;
/// Admin Max SQ Size.
const ADMIN_ENTRIES: u16 = 32;

/// Returns the Discovery log page (70h; Base 2.1, 5.1.12.3.1).
fn discovery(access: &Access) -> Page {
    let mut page = Page::new(RECORD * (1 + access.addresses.len()));
    // The records never change while the server runs, so the generation counter is constant.
    page.u64(0, 1);
    page.u64(8, access.addresses.len() as u64);
    for (n, address) in access.addresses.iter().enumerate() {
        let at = RECORD * (1 + n);
        page.u8(at, address.transport);
        page.u8(at + 1, address.family);
        page.u8(at + 2, NVM_SUBSYSTEM);
        page.u16(at + 4, PORT);
        page.u16(at + 6, DYNAMIC);
        page.u16(at + 8, ADMIN_ENTRIES);
        page.text(at + 32, 32, &address.service);
        page.name(at + 256, 256, &access.nqn);
        page.text(at + 512, 256, &address.address);
    }
    page
}
