//! Data reduction by compression or deduplication: section `[reduction]` of a device file.
//!
//! The drive reduces data between buffer and flash: link and buffer carry the host's data, and the
//! flash carries the reduced data. GC uses the saved space as spare space; the user capacity does
//! not change. The FTL implements the mechanism.

use writecliff_base::keys::{Flag, Section, Size};
use writecliff_base::located::{Answer, Table};
use writecliff_base::{Bytes, SECTOR_BYTES, reject, section};
use writecliff_flash::Geometry;
use writecliff_ftl::{Ftl, ReductionConfig};
use writecliff_host_interface::content::SECTORS_PER_SLOT;

use crate::front::{Placed, PlacementSink, Write};

/// Places a write as reduced data. Duplicates leave the buffer and are durable with originals.
pub(crate) fn place<S: PlacementSink>(write: Write<'_>, ftl: &mut Ftl, sink: &mut S) -> Placed {
    let (mut placed, stream) = (Placed::default(), write.stream);
    for ((lpn, bytes), n) in write.slots().zip(0..) {
        let content = write.command.content.of_slot(n);
        if S::IS_TIMED && !ftl.takes_space(content, bytes) {
            let original = ftl.lookup(content.same_as);
            let location = ftl.geometry().locate(original);
            placed.extra_slots -= 1;
            placed.repeats_buffered |=
                ftl.is_filling(original, location.reclaim_unit) || sink.is_in_flight(&location);
        } else if sink.awaits() {
            ftl.make_fit(stream, content, sink);
            sink.await_unit(ftl.host_frontier(stream));
        }
        ftl.write_reduced(lpn, stream, bytes, content, sink);
    }
    placed
}

section! {
    pub(crate) struct Keys {
        compression: required Flag,
            "compressed pages of whole 512-byte sectors are packed one after another";
        duplicates: required Flag, "data that are already on the drive are not stored again";
        min_stored_size: optional Size,
            "minimum flash per 4 KiB page: 512 B to 2 KiB; required with `compression`";
    }
}

/// Reads the section; also returns the geometry with addresses for all pieces of data.
///
/// # Errors
/// Returns an error at a key that is missing or invalid for this flash.
pub(crate) fn read(table: &Table<'_>, geometry: Geometry) -> Answer<(ReductionConfig, Geometry)> {
    let Keys { compression, duplicates, min_stored_size } = Keys::read_keys(table)?;
    reject! { table,
        "compression" if !compression && !duplicates =>
            "neither compression nor duplicates is enabled; remove the section";
    }
    let refusal = "min_stored_size requires compression = true";
    let least = table.needed_if(compression, "min_stored_size", min_stored_size, refusal)?;
    let sectors = least.map(|size| min_stored_sectors(table, size)).transpose()?;
    let min_stored_sectors = sectors.unwrap_or(SECTORS_PER_SLOT);
    let config = ReductionConfig { min_stored_sectors, duplicates };
    let addressed = config.addresses(geometry);
    let hint = || Some("a larger min_stored_size requires fewer addresses".to_owned());
    let geometry = addressed.map_err(|e| table.error(e.key, e.message, hint()))?;
    Ok((config, geometry))
}

fn min_stored_sectors(table: &Table<'_>, bytes: Bytes) -> Answer<u32> {
    let sectors = bytes.0 / SECTOR_BYTES;
    reject! { table,
        "min_stored_size"
            if !bytes.0.is_multiple_of(SECTOR_BYTES) || ![1, 2, 4].contains(&sectors) =>
            "min_stored_size is {bytes}; it must be 512 B, 1 KiB or 2 KiB"
            ["it is the least space of a 4 KiB page, however well it compresses"];
    }
    Ok(sectors as u32)
}
