//! Who a drive is, and the keys at the top of its device file.

use writecliff_base::Bytes;
use writecliff_base::located::{LocatedError, Table};

/// Who the drive says it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub name: String,
    pub description: String,
    pub vendor: String,
    pub model: String,
    pub firmware: String,
    /// Bytes that the maker warrants (TBW).
    pub rated_writes: Option<Bytes>,
}

impl Identity {
    /// Keys of a device file, of whatever kind, that say who the drive is and do not change what it
    /// does: they stay out of the device hash. All others are in it.
    pub const DOCUMENTARY: [&str; 7] =
        ["name", "description", "vendor", "model", "firmware", "rated_writes", "link.interface"];

    /// The keys at the top of a device file that say who the drive is.
    pub fn read(root: &Table<'_>) -> Result<Self, LocatedError> {
        Ok(Self {
            name: root.required_text("name")?.to_owned(),
            description: root.required_text("description")?.to_owned(),
            vendor: root.optional_text("vendor")?.unwrap_or("writecliff").to_owned(),
            model: root.required_text("model")?.to_owned(),
            firmware: root.optional_text("firmware")?.unwrap_or("simulated").to_owned(),
            rated_writes: root.optional_size("rated_writes")?,
        })
    }
}
