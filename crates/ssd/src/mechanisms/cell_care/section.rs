//! Section `[cell_care]` of a device file.

use writecliff_base::keys::{Number, OfPhysical, Time};
use writecliff_base::located::Table;
use writecliff_base::units::Physical;
use writecliff_base::{Nanos, section};
use writecliff_flash::acceleration::acceleration;

use crate::mechanisms::{Checked, Described, MechanismSection};

/// JESD218 values: retention of enterprise drives at 40 °C, activation energy of charge loss.
const REFERENCE_CELSIUS: f64 = 40.0;
const ACTIVATION_ENERGY: f64 = 1.1;

/// Aging and read disturb of data on flash, and data refresh.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellCareConfig {
    /// Retention time in hours at the reference temperature that corresponds to one hour at the
    /// drive's temperature.
    pub aging: f64,
    /// Errors per bit that a read adds to the other data in its block at the rated cycles.
    pub read_disturb: f64,
    pub(crate) refresh: Option<Refresh>,
}

/// Relocation of data before they have too many errors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refresh {
    /// Expected raw bit error rate above which data are relocated.
    pub rber: f64,
    pub(crate) interval: Nanos,
}

section! {
    pub(crate) struct Keys {
        reference_temperature: optional OfPhysical(Physical::Temperature) = "40 C",
            "temperature that the retention in `[ecc]` refers to (JESD218, enterprise)";
        temperature: optional OfPhysical(Physical::Temperature) = "`reference_temperature`",
            "temperature of the flash while data age";
        activation_energy: default Number(0.0..=5.0) = ACTIVATION_ENERGY,
            "energy in the Arrhenius equation, in electronvolts (JESD218, JESD22-A117)";
        read_disturb: default Number(0.0..=1e-3) = 0.0,
            "errors per bit that a read adds to the other data of its blocks, at the rated cycles";
        refresh_rber: optional Number(1e-9..=0.5),
            "expected error rate above which a reclaim unit is relocated";
        refresh_interval: optional Time,
            "interval between checks of the worst reclaim unit; required with `refresh_rber`";
    }
}

impl MechanismSection for CellCareConfig {
    type Keys = Keys;

    fn check(keys: Self::Keys, table: &Table<'_>, _: &mut Described<'_>) -> Checked<Self> {
        let (key, refusal) = ("refresh_interval", "it has no effect without refresh_rber");
        let is_needed = keys.refresh_rber.is_some();
        let interval = table.needed_if(is_needed, key, keys.refresh_interval, refusal)?;
        if interval.is_some_and(|interval| interval < Nanos::from_secs(1)) {
            return Err(table.error(key, "it must be 1 s or more", None));
        }
        let refresh = keys.refresh_rber.zip(interval);
        let reference = keys.reference_temperature.unwrap_or(REFERENCE_CELSIUS);
        let temperature = keys.temperature.unwrap_or(reference);
        Ok(Some(Self {
            aging: acceleration(keys.activation_energy, temperature, reference),
            read_disturb: keys.read_disturb,
            refresh: refresh.map(|(rber, interval)| Refresh { rber, interval }),
        }))
    }
}
