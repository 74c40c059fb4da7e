//! Quantities as types, and the single parser for quantities with units.
//!
//! SI prefixes are powers of 1000, IEC prefixes (`KiB`) powers of 1024. A bare `k`, `M` or `G` is
//! rejected because its meaning is ambiguous in the storage field.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use thiserror::Error;

use serde::{Deserialize, Serialize};

use crate::similarity::nearest;
use crate::words;

/// Granularity of host commands in bytes; offsets and lengths are multiples of this value.
pub const SECTOR_BYTES: u64 = 512;
/// Mapping unit of simulated drives and block size of simulated file systems in bytes; fixed.
pub const SLOT_BYTES: u64 = 4096;

/// Duration or instant of virtual time, in nanoseconds.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default, Serialize, Deserialize,
)]
#[repr(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Start of virtual time.
    pub const ZERO: Self = Self(0);
    /// Latest representable time, 584 years; also means "never".
    pub const MAX: Self = Self(u64::MAX);

    /// Converts microseconds.
    pub const fn from_micros(us: u64) -> Self {
        Self(us * 1000)
    }

    /// Converts seconds.
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }

    /// Returns the time in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Subtracts a time and saturates at 0.
    #[inline]
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Nanos {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Nanos {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Nanos {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl From<Nanos> for u64 {
    fn from(time: Nanos) -> Self {
        time.0
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0;
        for (unit, size) in [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000)] {
            if ns >= size {
                return write!(f, "{} {unit}", ns as f64 / size as f64);
            }
        }
        write!(f, "{ns} ns")
    }
}

/// Size in bytes.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default, Serialize, Deserialize,
)]
#[repr(transparent)]
pub struct Bytes(pub u64);

impl From<Bytes> for u64 {
    fn from(size: Bytes) -> Self {
        size.0
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, shift) in [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)] {
            if self.0 >= 1 << shift && self.0.is_multiple_of(1 << shift) {
                return write!(f, "{} {unit}", self.0 >> shift);
            }
        }
        for (unit, size) in [("TB", 1e12), ("GB", 1e9), ("MB", 1e6)] {
            if self.0 as f64 >= size {
                return write!(f, "{} {unit}", self.0 as f64 / size);
            }
        }
        write!(f, "{} B", self.0)
    }
}

/// Transfer rate in bytes per second; `time_for` rounds up, so a link never exceeds its rate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[repr(transparent)]
pub struct BytesPerSecond(pub u64);

impl BytesPerSecond {
    /// Returns the time to transfer `bytes`, rounded up to 1 ns.
    #[inline]
    pub const fn time_for(self, bytes: u64) -> Nanos {
        debug_assert!(self.0 > 0, "a transfer at a rate of 0");
        Nanos((bytes * 1_000_000_000).div_ceil(self.0))
    }
}

impl fmt::Display for BytesPerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} MB/s", self.0 as f64 / 1e6)
    }
}

/// Error while parsing a quantity.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum QuantityError {
    /// The invalid text, and an example of a valid quantity.
    #[error("'{0}' is not a number with a unit (example: {1})")]
    Malformed(String, &'static str),
    /// The text, its unit and the accepted units.
    #[error("'{0}' has the unit '{1}'; accepted units: {2}")]
    UnknownUnit(String, String, &'static str),
    /// The text, and the unit that must divide the quantity evenly.
    #[error("'{0}' is negative, not a whole number of {1}, or too large")]
    OutOfRange(String, &'static str),
}

impl QuantityError {
    /// Suggests the unit that the user probably meant.
    pub fn hint(&self) -> Option<String> {
        let Self::UnknownUnit(text, unit, units) = self else { return None };
        let number = text.trim().strip_suffix(unit.as_str()).unwrap_or(text).trim_end();
        let (si, iec) = match unit.trim_end_matches(['b', 'B']) {
            "k" | "K" => ("kB", "KiB"),
            "m" | "M" => ("MB", "MiB"),
            "g" | "G" => ("GB", "GiB"),
            "t" | "T" => ("TB", "TiB"),
            _ => ("", ""),
        };
        if units.split(", ").any(|name| name == iec) {
            return Some(format!(
                "'{unit}' is ambiguous (a power of 1000 or 1024): \
                 write \"{number} {si}\" or \"{number} {iec}\""
            ));
        }
        let unit = unit.replace(['µ', 'μ'], "u");
        let prefix =
            units.split(", ").filter(|name| unit.starts_with(name)).max_by_key(|n| n.len());
        let likely = nearest(&unit, units.split(", ")).or(prefix)?;
        Some(format!("did you mean \"{number} {likely}\"?"))
    }
}

/// Units of a quantity, separated by commas, and the factor of each.
#[derive(Clone, Copy)]
struct Units {
    names: &'static str,
    factors: &'static [f64],
    /// A valid quantity, for messages.
    example: &'static str,
    /// Name of the unit with factor 1, of which values are whole numbers.
    whole: &'static str,
}

const TIME: Units = Units {
    names: "ns, us, ms, s, min, h, days, years",
    factors: &[1.0, 1e3, 1e6, 1e9, 60e9, 3600e9, 86_400e9, 365.0 * 86_400e9],
    example: "\"75 us\"",
    whole: "nanoseconds",
};
const SIZE: Units = Units {
    names: "B, kB, MB, GB, TB, KiB, MiB, GiB, TiB",
    factors: &[1.0, 1e3, 1e6, 1e9, 1e12, 1024.0, 1_048_576.0, 1_073_741_824.0, 1_099_511_627_776.0],
    example: "\"16 KiB\"",
    whole: "bytes",
};
const RATE: Units = Units {
    names: "B/s, kB/s, MB/s, GB/s, KiB/s, MiB/s, GiB/s",
    factors: &[1.0, 1e3, 1e6, 1e9, 1024.0, 1_048_576.0, 1_073_741_824.0],
    example: "\"550 MB/s\"",
    whole: "bytes per second",
};

/// Parses a time, for example `"75 us"` or `"1.5 ms"`.
pub fn parse_time(text: &str) -> Result<Nanos, QuantityError> {
    TIME.parse_whole(text).map(Nanos)
}

/// Parses a size, for example `"16 KiB"` or `"120 GB"`.
pub fn parse_size(text: &str) -> Result<Bytes, QuantityError> {
    SIZE.parse_whole(text).map(Bytes)
}

/// Parses a rate, for example `"550 MB/s"`.
pub fn parse_rate(text: &str) -> Result<BytesPerSecond, QuantityError> {
    RATE.parse_whole(text).map(BytesPerSecond)
}

words! {
    /// Physical quantities for which floating-point arithmetic is accurate enough.
    pub enum Physical {
        /// Power in watts.
        Power = "power",
        /// Temperature in degrees Celsius.
        Temperature = "temperature",
        /// Thermal resistance in degrees Celsius per watt.
        ThermalResistance = "thermal resistance",
        /// Heat capacity in joules per degree Celsius.
        HeatCapacity = "heat capacity",
    }
}

impl Physical {
    pub(crate) const fn example(self) -> &'static str {
        self.units().example
    }

    /// Returns the unit of the quantity.
    pub const fn unit(self) -> &'static str {
        self.units().whole
    }

    const fn units(self) -> Units {
        let (names, factors, example, whole): (_, &[f64], _, _) = match self {
            Self::Power => ("W, mW, uW", &[1.0, 1e-3, 1e-6], "\"1.5 W\"", "W"),
            Self::Temperature => ("C", &[1.0], "\"70 C\"", "C"),
            Self::ThermalResistance => ("C/W", &[1.0], "\"8 C/W\"", "C/W"),
            Self::HeatCapacity => ("J/C", &[1.0], "\"20 J/C\"", "J/C"),
        };
        Units { names, factors, example, whole }
    }
}

/// Parses a non-negative physical quantity in the units of [`Physical`].
pub fn parse_physical(text: &str, kind: Physical) -> Result<f64, QuantityError> {
    let value = kind.units().parse(text)?;
    if (0.0..1e12).contains(&value) {
        Ok(value)
    } else {
        Err(QuantityError::OutOfRange(text.to_owned(), kind.units().names))
    }
}

impl Units {
    /// Parses a number with one of the units and converts it to the unit with factor 1.
    fn parse(self, text: &str) -> Result<f64, QuantityError> {
        let Self { names, factors, example, .. } = self;
        let trimmed = text.trim();
        let split = trimmed
            .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '_' | '-' | '+')))
            .unwrap_or(trimmed.len());
        let (number, unit) = (trimmed[..split].replace('_', ""), trimmed[split..].trim());
        let value: f64 =
            number.parse().map_err(|_| QuantityError::Malformed(text.to_owned(), example))?;
        if unit.is_empty() {
            return Err(QuantityError::Malformed(text.to_owned(), example));
        }
        let factor = names.split(", ").zip(factors).find(|(name, _)| *name == unit);
        let unknown = || QuantityError::UnknownUnit(text.to_owned(), unit.to_owned(), names);
        factor.map(|(_, factor)| value * factor).ok_or_else(unknown)
    }

    fn parse_whole(self, text: &str) -> Result<u64, QuantityError> {
        let exact = self.parse(text)?;
        let rounded = exact.round();
        // 2^63 leaves headroom for sums; 1e-6 tolerates the binary fraction in "0.1 us".
        let whole = (exact - rounded).abs() <= 1e-6 * rounded.max(1.0);
        if !(0.0..9.2e18).contains(&exact) || !whole {
            return Err(QuantityError::OutOfRange(text.to_owned(), self.whole));
        }
        Ok(rounded as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_parse_with_their_units() {
        assert_eq!(parse_time("75 us"), Ok(Nanos(75_000)));
        assert_eq!(parse_time("3.5ms"), Ok(Nanos(3_500_000)));
        assert_eq!(parse_size("16 KiB"), Ok(Bytes(16_384)));
        assert_eq!(parse_size("120 GB"), Ok(Bytes(120_000_000_000)));
        assert_eq!(parse_rate("0.1 MB/s"), Ok(BytesPerSecond(100_000)));
    }

    #[test]
    fn ambiguous_or_impossible_quantities_are_rejected() {
        assert!(matches!(parse_size("16k"), Err(QuantityError::UnknownUnit(..))));
        assert!(matches!(parse_size("16"), Err(QuantityError::Malformed(..))));
        assert!(matches!(parse_time("-1 us"), Err(QuantityError::OutOfRange(..))));
        assert!(matches!(parse_size("0.3 B"), Err(QuantityError::OutOfRange(..))));
        assert!(matches!(parse_time("fast"), Err(QuantityError::Malformed(..))));
    }

    #[test]
    fn physical_quantities_need_not_be_whole() {
        assert_eq!(parse_physical("1.25 W", Physical::Power), Ok(1.25));
        assert_eq!(parse_physical("500 mW", Physical::Power), Ok(0.5));
        assert_eq!(parse_physical("70.5 C", Physical::Temperature), Ok(70.5));
        let wrong = parse_physical("3 V", Physical::Power);
        assert!(matches!(wrong, Err(QuantityError::UnknownUnit(..))));
        let negative = parse_physical("-3 W", Physical::Power);
        assert!(matches!(negative, Err(QuantityError::OutOfRange(..))));
    }

    #[test]
    fn transfer_times_round_up() {
        assert_eq!(BytesPerSecond(3).time_for(1), Nanos(333_333_334));
        assert_eq!(BytesPerSecond(1_000_000_000).time_for(4096), Nanos(4096));
    }

    #[test]
    fn display_reads_back() {
        for ns in [1, 999, 75_000, 3_500_000, 2_000_000_000] {
            assert_eq!(parse_time(&Nanos(ns).to_string()), Ok(Nanos(ns)));
        }
        for bytes in [512, 16_384, 120_000_000_000, 1 << 40] {
            assert_eq!(parse_size(&Bytes(bytes).to_string()), Ok(Bytes(bytes)));
        }
    }
}
