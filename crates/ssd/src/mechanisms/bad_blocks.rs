//! Section `[bad_blocks]` of a device file; the mechanism is the FTL's.

use writecliff_base::located::{LocatedError, Table};
use writecliff_flash::BlockLife;
use writecliff_ftl::BadBlocksConfig;

/// Reads the section, if there is one.
///
/// # Errors
/// Returns an error at the key that is missing or invalid, or at a section that is not modelled
/// together with it.
pub fn section(
    root: &Table<'_>,
    rated_cycles: u32,
) -> Result<Option<BadBlocksConfig>, LocatedError> {
    let Some(table) = root.optional_table("bad_blocks")? else { return Ok(None) };
    for other in ["slc_cache", "reduction"] {
        if root.has(other) {
            let message = format!("[bad_blocks] and [{other}] are not modelled together");
            return Err(root.error(other, message, Some("remove one of them".to_owned())));
        }
    }
    let percent = |key, most| table.optional_percent(key, 0.0..=most);
    let factory = percent("factory", 50.0)?.unwrap_or(0.0) / 100.0;
    let failed_at_rated = table.required_percent("failed_at_rated", 0.0..=99.0)? / 100.0;
    let shape = table.required_number("shape", 0.1..=100.0)?;
    let found_by_erase = percent("found_by_erase", 100.0)?.unwrap_or(50.0) / 100.0;
    let replaces = table.or("replacement", true, |t, key| {
        t.optional_choice(key, &[("block", true), ("none", false)])
    })?;
    table.finish()?;
    let life = BlockLife { rated_cycles, failed_at_rated, shape };
    Ok(Some(BadBlocksConfig { factory, life, found_by_erase, replaces }))
}
