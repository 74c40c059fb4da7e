//! Section `[bad_blocks]` of a device file. The FTL implements the mechanism.

use writecliff_base::keys::{Choice, Number, Percent, Section};
use writecliff_base::located::{Answer, Table};
use writecliff_base::section;
use writecliff_flash::BlockLife;
use writecliff_ftl::BadBlocksConfig;

section! {
    pub(crate) struct Keys {
        factory: optional Percent(0.0..=50.0) = "0 %",
            "probability that a block is bad when the drive is new";
        failed_at_rated: required Percent(0.0..=99.0),
            "percentage of the blocks that has failed after `rated_cycles` erases";
        shape: required Number(0.1..=100.0),
            "shape of the Weibull distribution of block lifetimes; above 1, the failure rate \
             rises with erases";
        found_by_erase: optional Percent(0.0..=100.0) = "50 %",
            "percentage of the failures that an erase detects; a program detects the others";
        replacement: default Choice<bool>(&[("block", true), ("none", false)]) = true,
            "a spare block replaces a bad block, or the reclaim unit is dropped (`\"none\"`)";
    }
}

/// Reads the section.
///
/// # Errors
/// Returns an error at the first missing or invalid key.
pub(crate) fn read(table: &Table<'_>, rated_cycles: u32) -> Answer<BadBlocksConfig> {
    let keys = Keys::read_keys(table)?;
    let failed_at_rated = keys.failed_at_rated / 100.0;
    Ok(BadBlocksConfig {
        factory: keys.factory.unwrap_or(0.0) / 100.0,
        life: BlockLife { rated_cycles, failed_at_rated, shape: keys.shape },
        found_by_erase: keys.found_by_erase.unwrap_or(50.0) / 100.0,
        replaces: keys.replacement,
    })
}
