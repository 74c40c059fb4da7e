//! Keys `indirection_unit` and `merged_units` of section `[ftl]`.

use writecliff_base::located::{Answer, Table};
use writecliff_base::{Bytes, SLOT_BYTES, reject};
use writecliff_flash::Geometry;

use crate::config::ControllerConfig;

const KEY: &str = "indirection_unit";
const MERGED_KEY: &str = "merged_units";
pub(crate) const MERGED_MAX: u32 = 256;
/// Maximum number of slots in a waiting unit.
const MERGED_SLOTS_MAX: u32 = 128;
/// Minimum ratio of the write buffer to the space of all units that may wait.
pub(crate) const MERGED_SHARE: u64 = 2;

/// Returns the number of slots in a unit of size `size`, which is read from section `[ftl]`.
///
/// # Errors
/// Returns an error at the key if units cannot have this size on this flash, if the drive has no
/// power-loss protection, or if `merged` units of this size cannot wait in the buffer.
pub(crate) fn slots(
    table: &Table<'_>,
    size: Option<Bytes>,
    merged: u32,
    geometry: &Geometry,
    controller: &ControllerConfig,
) -> Answer<u32> {
    let size = size.unwrap_or(Bytes(SLOT_BYTES));
    let most = u64::from(geometry.slots_per_program_unit) * SLOT_BYTES;
    let slots = (size.0 / SLOT_BYTES) as u32;
    let waiting = Bytes(u64::from(merged).saturating_mul(size.0));
    let buffer = controller.write_buffer;
    reject! { table,
        KEY if !size.0.is_power_of_two() || size.0 < SLOT_BYTES || size.0 > most =>
            "{KEY} is {size}; it must be a power of two from 4 KiB to {} (a program unit)",
            Bytes(most);
        KEY if slots > 1 && !controller.power_loss_protection =>
            "{KEY} above 4 KiB needs power-loss protection"
            ["set controller.power_loss_protection = true"];
        MERGED_KEY if merged > 0 && !(2..=MERGED_SLOTS_MAX).contains(&slots) =>
            "{MERGED_KEY} needs {KEY} above 4 KiB and up to {}",
            Bytes(u64::from(MERGED_SLOTS_MAX) * SLOT_BYTES);
        MERGED_KEY if waiting.0 > buffer.0 / MERGED_SHARE =>
            "{MERGED_KEY} is {merged}: waiting units would take {waiting} of the write_buffer of \
             {buffer}, but may take at most half of it";
    }
    Ok(slots)
}
