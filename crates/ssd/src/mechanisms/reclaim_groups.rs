//! Reclaim groups, which divide the dies. The placement identifier selects the group.

use writecliff_base::located::{Answer, Table};
use writecliff_base::reject;
use writecliff_flash::Geometry;
use writecliff_ftl::spare::SparePolicy;
use writecliff_ftl::{Ftl, FtlConfig};

use crate::DeviceConfig;
use crate::data_placement::config::DataPlacementConfig;
use crate::front::{Placed, PlacementSink, Write};

/// Places a write in the FTL stream of its reclaim group, or of another group if that is full.
pub(crate) fn place<S: PlacementSink>(write: Write<'_>, ftl: &mut Ftl, sink: &mut S) -> Placed {
    let mut placed = Placed::default();
    for (lpn, bytes) in write.slots() {
        let stream = ftl.choose_stream(write.stream);
        placed.elsewhere_bytes += if stream == write.stream { 0 } else { bytes };
        ftl.write(lpn, stream, bytes, sink);
    }
    placed
}

const KEY: &str = "reclaim_groups";

/// Returns the geometry with reclaim groups. The FTL has a stream for each handle of each group.
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
    reject! { table,
        KEY if ftl.spare == SparePolicy::SelfTuned =>
            "several reclaim_groups require ftl.spare = 'global'";
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
    reject! { table,
        KEY if !config.controller.power_loss_protection =>
            "several reclaim_groups need power-loss protection" ["power_loss_protection = true"];
        KEY if config.indirection_slots > 1 =>
            "several reclaim_groups need units of 4 KiB" ["remove ftl.indirection_unit"];
    }
    Ok(())
}
