//! SMART / Health Information (02h) and Endurance Group Information (09h).

use writecliff_base::Nanos;

use crate::controller::Features;
use crate::drive::Health;
use crate::page::Page;
use crate::subsystem::Context;

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
/// SMART data unit: 1000 units of 512 bytes.
const DATA_UNIT: u64 = 512_000;
/// Data unit of the endurance group log.
const BILLION: u64 = 1_000_000_000;

const SPARE_LOW: u8 = 1 << 0;
const TEMPERATURE: u8 = 1 << 1;
const READ_ONLY: u8 = 1 << 3;

/// Composite temperature in degrees Celsius that a drive without a temperature model reports. The
/// field is mandatory and has no value for "unknown", so hosts would interpret 0 as 0 K. The
/// composite temperature need not be the temperature of a physical point (Base 2.1, 5.1.12.1.3).
/// JEDEC rates client SSDs at 40 °C in use (JESD218), and 40 °C is below the warning thresholds of
/// hosts.
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

fn percentage_used(health: &Health) -> u8 {
    health.percentage_used.clamp(0.0, 255.0) as u8
}

pub(super) fn smart(health: &Health, features: &Features) -> Page {
    debug_assert!(health.available_spare <= 100 && health.spare_threshold <= 100);
    let mut page = Page::new(512);
    let warnings = warnings(health, features);
    page.u8(0, warnings);
    page.u16(1, composite(health));
    page.u8(3, health.available_spare);
    page.u8(4, health.spare_threshold);
    page.u8(5, percentage_used(health));
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
    page.u32(192, whole(health.warning_time, MINUTE) as u32);
    page.u32(196, whole(health.critical_time, MINUTE) as u32);
    // Temperature Sensor 1 is the only sensor; 0 means that a sensor does not exist.
    page.u16(200, health.temperature.map_or(0, kelvin));
    page.u32(216, health.throttle_count);
    page.u32(224, whole(health.throttled, SECOND) as u32);
    page
}

pub(super) fn endurance_group(context: &Context<'_>) -> Page {
    let mut page = Page::new(512);
    let (health, identity) = (context.drive.health(), context.drive.identity());
    let warnings = warnings(&health, &context.controller.features);
    page.u8(0, warnings & (SPARE_LOW | READ_ONLY));
    page.u8(3, health.available_spare);
    page.u8(4, health.spare_threshold);
    page.u8(5, percentage_used(&health));
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
