//! Section `[flash]` of a device file.

use writecliff_base::keys::{Count, Section, SectionKeys};
use writecliff_base::located::{Answer, Table};
use writecliff_base::{Nanos, reject, section};
use writecliff_flash::{FlashTiming, Geometry, Shape};

use crate::mechanisms::plane_reads::PLANES_MAX;

section! {
    pub(super) struct Life {
        rated_cycles: required Count(1..=10_000_000), "rated program/erase cycles";
    }
}

pub(super) fn keys() -> SectionKeys {
    let keys = [Shape::keys(), FlashTiming::keys(), Life::keys()].concat();
    SectionKeys { name: "flash", is_required: true, keys }
}

pub(super) fn read(table: &Table<'_>) -> Answer<(Geometry, FlashTiming, u32)> {
    let (shape, timing) = (Shape::read_keys(table)?, FlashTiming::read_keys(table)?);
    let rated_cycles = Life::read_keys(table)?.rated_cycles;
    let types = shape.cell.page_types() as usize;
    let programs = if shape.one_shot { 1 } else { types };
    check(table, "read", &timing.read, types, "one tR for each page type")?;
    let programs_hint = "one tPROG for each program operation";
    check(table, "program", &timing.program, programs, programs_hint)?;
    let planes = 2..=PLANES_MAX as u32;
    let has_planes = shape.multi_plane && planes.contains(&shape.planes_per_die);
    reject! { table,
        "independent_plane_reads" if timing.independent_plane_reads && !has_planes =>
            "independent_plane_reads needs multi_plane = true and 2 to {PLANES_MAX} planes";
    }
    let geometry = Geometry::new(shape).map_err(|e| table.error(e.key, e.to_string(), None))?;
    Ok((geometry, timing, rated_cycles))
}

fn check(table: &Table<'_>, key: &str, times: &[Nanos], count: usize, hint: &str) -> Answer<()> {
    reject! { table,
        key if times.len() != count || times.contains(&Nanos::ZERO) =>
            "{key} has {} times; it must have {count} above zero" [hint], times.len();
    }
    Ok(())
}
