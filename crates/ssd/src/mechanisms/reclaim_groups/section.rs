//! Key `reclaim_groups` of section `[data_placement]`.

use writecliff_base::located::{Answer, Table};
use writecliff_flash::Geometry;
use writecliff_ftl::FtlConfig;
use writecliff_ftl::spare::SparePolicy;

use crate::DeviceConfig;
use crate::data_placement::config::DataPlacementConfig;

const KEY: &str = "reclaim_groups";

/// Returns the geometry with the drive's reclaim groups. The FTL has a stream for each reclaim unit
/// handle of each group.
///
/// # Errors
/// Returns an error if the groups do not divide the dies, or if the division of spare space is
/// self-tuned.
pub(crate) fn divided(
    table: Option<&Table<'_>>,
    placement: Option<&DataPlacementConfig>,
    geometry: Geometry,
    ftl: &mut FtlConfig,
) -> Answer<Geometry> {
    let groups = placement.map_or(1, |placement| placement.reclaim_groups);
    let Some(table) = table.filter(|_| groups > 1) else { return Ok(geometry) };
    if ftl.spare == SparePolicy::SelfTuned {
        let message = "several reclaim_groups require ftl.spare = 'global'";
        return Err(table.error(KEY, message, None));
    }
    ftl.streams *= groups;
    geometry.with_reclaim_groups(groups.into()).map_err(|e| table.error(e.key, e.message, None))
}

/// Checks the controller requirements of several groups.
///
/// # Errors
/// Returns an error at the number of groups.
pub(crate) fn check(table: Option<&Table<'_>>, config: &DeviceConfig) -> Answer<()> {
    let Some(table) = table.filter(|_| config.geometry.reclaim_groups > 1) else {
        return Ok(());
    };
    let (message, hint) = if !config.controller.power_loss_protection {
        ("several reclaim_groups need power-loss protection", "power_loss_protection = true")
    } else if config.indirection_slots > 1 {
        ("several reclaim_groups need units of 4 KiB", "remove ftl.indirection_unit")
    } else {
        return Ok(());
    };
    Err(table.error(KEY, message, Some(hint.to_owned())))
}
