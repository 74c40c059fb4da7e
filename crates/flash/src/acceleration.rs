//! Acceleration of aging with temperature: the Arrhenius equation (JESD22-A117, JESD218).

/// Boltzmann constant in electronvolts per kelvin.
const BOLTZMANN: f64 = 8.617_333_262e-5;
const ZERO_CELSIUS: f64 = 273.15;

/// Returns the time at `reference` degrees Celsius that has the same effect as one unit of time at
/// `celsius`, for a mechanism with the given activation energy in electronvolts.
pub fn acceleration(activation_energy: f64, celsius: f64, reference: f64) -> f64 {
    let inverse = |celsius: f64| (celsius + ZERO_CELSIUS).recip();
    (activation_energy / BOLTZMANN * (inverse(reference) - inverse(celsius))).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// JESD218 treats 500 h at 52 °C or 96 h at 66 °C as equivalent to one year at 30 °C.
    #[test]
    fn the_bakes_of_jesd218_stand_for_a_year_of_a_client_drive() {
        for (hours, celsius) in [(500.0, 52.0), (96.0, 66.0)] {
            let years = hours * acceleration(1.1, celsius, 30.0) / (365.0 * 24.0);
            assert!((years - 1.0).abs() < 0.05, "{celsius}: {years}");
        }
    }

    #[test]
    fn cold_data_age_slower_and_nothing_happens_without_activation_energy() {
        assert!((acceleration(1.1, 40.0, 40.0) - 1.0).abs() < 1e-12);
        let (there, back) = (acceleration(1.1, 55.0, 40.0), acceleration(1.1, 40.0, 55.0));
        assert!(there > 6.0 && (there * back - 1.0).abs() < 1e-12);
        assert!((acceleration(0.0, 85.0, 25.0) - 1.0).abs() < 1e-12);
    }
}
