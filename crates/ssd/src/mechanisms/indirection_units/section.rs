//! The key `indirection_unit` of the section `[ftl]`.

use writecliff_base::Bytes;
use writecliff_base::located::{LocatedError, Table};
use writecliff_flash::Geometry;
use writecliff_flash::geometry::SLOT_BYTES;

use crate::config::ControllerConfig;

const KEY: &str = "indirection_unit";

/// Returns the slots of a unit of `size`, read from the section `[ftl]`.
///
/// # Errors
/// Fails at the key if units cannot have this size on this flash, or if the drive does not have
/// power-loss protection.
pub(crate) fn slots(
    table: &Table<'_>,
    size: Option<Bytes>,
    geometry: &Geometry,
    controller: &ControllerConfig,
) -> Result<u32, LocatedError> {
    let Some(size) = size else { return Ok(1) };
    let slot = u64::from(SLOT_BYTES);
    let most = u64::from(geometry.slots_per_program_unit) * slot;
    if !size.0.is_power_of_two() || size.0 < slot || size.0 > most {
        let most = Bytes(most);
        let message = format!(
            "{KEY} is {size}; it must be a power of two from 4 KiB to {most} (a program unit)"
        );
        return Err(table.error(KEY, message, None));
    }
    let slots = (size.0 / slot) as u32;
    if slots > 1 && !controller.power_loss_protection {
        let message = format!("{KEY} above 4 KiB needs power-loss protection");
        let hint = "set controller.power_loss_protection = true".to_owned();
        return Err(table.error(KEY, message, Some(hint)));
    }
    Ok(slots)
}
