//! The identity of a drive, read from the top-level keys of its device file.

use writecliff_base::Bytes;
use writecliff_base::located::{LocatedError, Table};

/// Identity of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub name: String,
    pub description: String,
    pub vendor: String,
    pub model: String,
    pub firmware: String,
    /// Rated endurance in bytes written (TBW).
    pub rated_writes: Option<Bytes>,
}

impl Identity {
    /// Keys of device files that describe the drive but do not affect its behaviour. They are
    /// excluded from the device hash; all others are included.
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
    /// Those of them that only data sheets show.
    const OF_SHEETS: [&str; 3] = ["form_factor", "uber", "mtbf"];

    /// Reads the identity from the top-level keys of a device file.
    pub fn read(root: &Table<'_>) -> Result<Self, LocatedError> {
        for key in Self::OF_SHEETS {
            root.optional_text(key)?;
        }
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
