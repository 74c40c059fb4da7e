//! Scales a disk down: the scaled disk has fewer tracks with the same properties. Seek times depend
//! on the fraction of the full stroke, so a scaled disk has the same latencies as the original.

use writecliff_base::located::Change;
use writecliff_base::{Bytes, SLOT_BYTES};

use crate::config::DiskConfig;

/// Supported scale factors.
pub const SCALES: [f64; 6] = [64.0, 32.0, 16.0, 8.0, 4.0, 2.0];

/// Returns the changes to the device file for a disk that is `scale` times smaller. The flash cache
/// of a hybrid disk is scaled by the same factor as the capacity.
pub fn scaled(config: &DiskConfig, scale: f64) -> Vec<Change> {
    let smaller = |key: &str, size: Bytes| {
        let blocks = (size.0 as f64 / scale / SLOT_BYTES as f64).round_ties_even().max(1.0);
        Change::new(key, format!("{} B", blocks as u64 * SLOT_BYTES), "scaled")
    };
    let flash = config.flash_cache.as_ref();
    let mut changes = vec![smaller("user_capacity", config.user_capacity)];
    changes.extend(flash.map(|flash| smaller("flash_cache.size", flash.size)));
    changes
}
