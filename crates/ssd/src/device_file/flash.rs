//! The section `[flash]` of a device file.

use writecliff_base::keys::{
    Choice, Count, Flag, PositiveRate, PositiveTime, Section, Size, Time, Times,
};
use writecliff_base::located::{LocatedError, Table};
use writecliff_base::{Nanos, section};
use writecliff_flash::{CellType, FlashTiming, Geometry, Shape};

use crate::mechanisms::plane_reads::PLANES_MAX;

section! {
    pub(super) struct Keys {
        channels: required Count(1..=64), "number of channels";
        dies_per_channel: required Count(1..=64), "dies on each channel";
        planes_per_die: required Count(1..=16),
            "one operation moves at most 256 KiB over all planes";
        blocks_per_plane: required Count(1..=1 << 20), "number of reclaim units";
        pages_per_block: required Count(1..=1 << 16),
            "a multiple of the bits per cell with `one_shot`";
        page: required Size, "4 to 128 KiB, in steps of 4 KiB";
        cell: required Choice<CellType>(&[
            ("SLC", CellType::Slc),
            ("MLC", CellType::Mlc),
            ("TLC", CellType::Tlc),
            ("QLC", CellType::Qlc),
        ]), "bits per cell: 1 to 4 page types";
        multi_plane: required Flag, "one operation works on all planes of a die";
        one_shot: required Flag, "one program operation writes all pages of a word line";
        read: required Times, "tR, one for each page type";
        program: required Times, "tPROG: one with `one_shot`, else one for each page type";
        erase: required PositiveTime, "tBERS";
        bus: required PositiveRate, "transfer rate of a channel";
        command: required Time, "command and address cycles on the bus";
        program_suspend: optional Time,
            "delay until a die that suspends a program can read; without it, reads wait";
        erase_suspend: optional Time,
            "delay until a die that suspends an erase can read; without it, reads wait";
        independent_plane_reads: default Flag = false,
            "planes of a die serve host reads of different pages at the same time, each with a tR \
             of its own; needs `multi_plane` and 2 to 8 planes; not with `[die_parity]`. Programs, \
             erases, relocations and reads of an SLC cache or of a mapping table take the whole \
             die";
        rated_cycles: required Count(1..=10_000_000), "rated program/erase cycles";
    }
}

/// Reads the section: the geometry, the times and the rated cycles.
pub(super) fn read(table: &Table<'_>) -> Result<(Geometry, FlashTiming, u32), LocatedError> {
    let keys = Keys::read_keys(table)?;
    let shape = Shape {
        channels: keys.channels,
        dies_per_channel: keys.dies_per_channel,
        planes_per_die: keys.planes_per_die,
        blocks_per_plane: keys.blocks_per_plane,
        pages_per_block: keys.pages_per_block,
        page: keys.page,
        cell: keys.cell,
        multi_plane: keys.multi_plane,
        one_shot: keys.one_shot,
    };
    let types = shape.cell.page_types() as usize;
    let programs = if shape.one_shot { 1 } else { types };
    check_times(table, "read", &keys.read, types, "one tR for each page type")?;
    let programs_hint = "one tPROG for each program operation";
    check_times(table, "program", &keys.program, programs, programs_hint)?;
    let planes = 2..=PLANES_MAX as u32;
    if keys.independent_plane_reads
        && !(shape.multi_plane && planes.contains(&shape.planes_per_die))
    {
        const KEY: &str = "independent_plane_reads";
        let message = format!("{KEY} needs multi_plane = true and 2 to {PLANES_MAX} planes");
        return Err(table.error(KEY, message, None));
    }
    let timing = FlashTiming {
        read: keys.read,
        program: keys.program,
        erase: keys.erase,
        bus: keys.bus,
        command: keys.command,
        program_suspend: keys.program_suspend,
        erase_suspend: keys.erase_suspend,
        independent_plane_reads: keys.independent_plane_reads,
    };
    let geometry = Geometry::new(shape).map_err(|e| table.error(e.key, e.to_string(), None))?;
    Ok((geometry, timing, keys.rated_cycles))
}

fn check_times(
    table: &Table<'_>,
    key: &str,
    times: &[Nanos],
    count: usize,
    hint: &str,
) -> Result<(), LocatedError> {
    if times.len() != count || times.contains(&Nanos::ZERO) {
        let message = format!("{key} has {} times; it must have {count} above zero", times.len());
        return Err(table.error(key, message, Some(hint.to_owned())));
    }
    Ok(())
}
