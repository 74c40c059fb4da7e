//! Section `[die_parity]` of a device file.

use writecliff_base::keys::{Count, PositiveTime};
use writecliff_base::located::{Change, Table};
use writecliff_base::{Nanos, section};

use crate::mechanisms::{Checked, Described, MechanismSection, Resizing};

section! {
    /// Parity across dies, which rebuilds the data of a lost die.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct DieParityConfig {
        stripe: required Count(1..=64),
            "dies per stripe, including the parity die; must divide the number of dies; 1: no \
             parity";
        // The default is a fraction of the time that programming all dies takes.
        relocate_interval: default PositiveTime = Nanos(10_000_000),
            "interval between two reclaim units whose data on a lost die are relocated";
    }
}

impl MechanismSection for DieParityConfig {
    type Keys = Self;

    /// Reserves the flash space for parity.
    fn check(config: Self::Keys, table: &Table<'_>, drive: &mut Described<'_>) -> Checked<Self> {
        if config.stripe > 1 {
            let geometry = drive.geometry.clone().with_parity(config.stripe);
            drive.geometry = geometry.map_err(|e| table.error(e.key, e.to_string(), None))?;
        }
        Ok(Some(config))
    }

    fn scaled(&self, drive: &Resizing<'_>) -> Vec<Change> {
        vec![drive.shorter("die_parity.relocate_interval", self.relocate_interval)]
    }
}
