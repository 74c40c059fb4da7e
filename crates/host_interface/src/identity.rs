//! Identity of a drive, read from the top-level keys of its device file.

use writecliff_base::keys::{Size, SizeWithin, Text};
use writecliff_base::located::Change;
use writecliff_base::{Bytes, SECTOR_BYTES, SLOT_BYTES, section};

section! {
    /// Identity of a drive.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Identity {
        form_factor: optional Text, "shown only in the [data sheet](../guides/data-sheet.md)";
        uber: optional Text, "shown only in the [data sheet](../guides/data-sheet.md)";
        mtbf: optional Text, "shown only in the [data sheet](../guides/data-sheet.md)";
        name: required Text, "shown in lists and reports";
        description: required Text, "shown in lists and reports";
        vendor: default Text = "writecliff".to_owned(), "shown in reports";
        model: required Text, "shown in lists and reports";
        firmware: default Text = "simulated".to_owned(), "firmware revision, shown in reports";
        rated_writes: optional Size, "rated endurance in bytes written (TBW)";
    }
}

section! {
    /// Top-level keys, in addition to the identity, of a drive that writes data in place.
    #[derive(Clone, Copy, Debug)]
    pub struct InPlace {
        user_capacity: required SizeWithin(Bytes(1 << 20)..=Bytes(64 << 40)),
            "capacity for the host, rounded down to whole sectors";
    }
}

/// Supported scale factors of drives that write data in place.
pub const SCALES: [f64; 6] = [64.0, 32.0, 16.0, 8.0, 4.0, 2.0];

/// Returns the change of a size to `1 / scale` of it, in whole slots.
pub fn smaller(key: &str, size: Bytes, scale: f64) -> Change {
    let slots = (size.0 as f64 / scale / SLOT_BYTES as f64).round_ties_even().max(1.0);
    Change::new(key, format!("{} B", slots as u64 * SLOT_BYTES), "scaled")
}

impl InPlace {
    /// Returns the capacity, rounded down to whole sectors.
    #[must_use]
    pub const fn whole_sectors(self) -> Bytes {
        Bytes(self.user_capacity.0 / SECTOR_BYTES * SECTOR_BYTES)
    }
}

impl Identity {
    /// Device file keys that describe the drive but do not affect its behaviour. The device hash
    /// excludes these keys and includes all others.
    pub const DOCUMENTARY: [&str; 10] = [
        "name",
        "description",
        "vendor",
        "model",
        "firmware",
        "rated_writes",
        "form_factor",
        "uber",
        "mtbf",
        "link.interface",
    ];
}
