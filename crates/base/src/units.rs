//! Quantities as types, and the single parser for quantities with units.
//!
//! SI prefixes are powers of 1000, IEC prefixes (`KiB`) powers of 1024. A bare `k`, `M` or `G` is
//! rejected because its meaning is ambiguous in the storage field.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use thiserror::Error;

use serde::{Deserialize, Serialize};

use crate::similarity::nearest;

/// Granularity of host commands in bytes; offsets and lengths are multiples of this value.
pub const SECTOR_BYTES: u64 = 512;
/// Mapping unit of simulated drives and block size of simulated file systems, in bytes. This size
/// is not configurable.
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

type Unit = (&'static str, f64);

const TIME_UNITS: &[Unit] = &[
    ("ns", 1.0),
    ("us", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("min", 60e9),
    ("h", 3600e9),
    ("days", 86_400e9),
    ("years", 365.0 * 86_400e9),
];
const SIZE_UNITS: &[Unit] = &[
    ("B", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
];
const RATE_UNITS: &[Unit] = &[
    ("B/s", 1.0),
    ("kB/s", 1e3),
    ("MB/s", 1e6),
    ("GB/s", 1e9),
    ("KiB/s", 1024.0),
    ("MiB/s", 1_048_576.0),
    ("GiB/s", 1_073_741_824.0),
];

/// Parses a time, for example `"75 us"` or `"1.5 ms"`.
pub fn parse_time(text: &str) -> Result<Nanos, QuantityError> {
    parse(text, TIME_UNITS, "\"75 us\"", "ns, us, ms, s, min, h, days, years", "nanoseconds")
        .map(Nanos)
}

/// Parses a size, for example `"16 KiB"` or `"120 GB"`.
pub fn parse_size(text: &str) -> Result<Bytes, QuantityError> {
    parse(text, SIZE_UNITS, "\"16 KiB\"", "B, kB, MB, GB, TB, KiB, MiB, GiB, TiB", "bytes")
        .map(Bytes)
}

/// Parses a rate, for example `"550 MB/s"`.
pub fn parse_rate(text: &str) -> Result<BytesPerSecond, QuantityError> {
    let units = "B/s, kB/s, MB/s, GB/s, KiB/s, MiB/s, GiB/s";
    parse(text, RATE_UNITS, "\"550 MB/s\"", units, "bytes per second").map(BytesPerSecond)
}

/// Physical quantities for which floating-point arithmetic is accurate enough.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Physical {
    /// In watts.
    Power,
    /// Temperature in degrees Celsius.
    Temperature,
    /// Thermal resistance in degrees Celsius per watt.
    ThermalResistance,
    /// Heat capacity in joules per degree Celsius.
    HeatCapacity,
}

impl Physical {
    pub(crate) const fn example(self) -> &'static str {
        match self {
            Self::Power => "\"1.5 W\"",
            Self::Temperature => "\"70 C\"",
            Self::ThermalResistance => "\"8 C/W\"",
            Self::HeatCapacity => "\"20 J/C\"",
        }
    }

    /// Returns the name of the quantity for error messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Power => "power",
            Self::Temperature => "temperature",
            Self::ThermalResistance => "thermal resistance",
            Self::HeatCapacity => "heat capacity",
        }
    }

    /// Returns the unit of the quantity.
    pub const fn unit(self) -> &'static str {
        self.units().0[0].0
    }

    const fn units(self) -> (&'static [Unit], &'static str) {
        match self {
            Self::Power => (&[("W", 1.0), ("mW", 1e-3), ("uW", 1e-6)], "W, mW, uW"),
            Self::Temperature => (&[("C", 1.0)], "C"),
            Self::ThermalResistance => (&[("C/W", 1.0)], "C/W"),
            Self::HeatCapacity => (&[("J/C", 1.0)], "J/C"),
        }
    }
}

/// Parses a non-negative physical quantity in the units of [`Physical`].
pub fn parse_physical(text: &str, kind: Physical) -> Result<f64, QuantityError> {
    let (units, unit_names) = kind.units();
    let value = parse_any(text, units, kind.example(), unit_names)?;
    if (0.0..1e12).contains(&value) {
        Ok(value)
    } else {
        Err(QuantityError::OutOfRange(text.to_owned(), unit_names))
    }
}

fn parse(
    text: &str,
    units: &[Unit],
    example: &'static str,
    unit_names: &'static str,
    what: &'static str,
) -> Result<u64, QuantityError> {
    let exact = parse_any(text, units, example, unit_names)?;
    let rounded = exact.round();
    // The limit of 2^63 leaves headroom for sums, and 1e-6 tolerates the binary rounding of values
    // such as "0.1 us".
    let whole = (exact - rounded).abs() <= 1e-6 * rounded.max(1.0);
    if !(0.0..9.2e18).contains(&exact) || !whole {
        return Err(QuantityError::OutOfRange(text.to_owned(), what));
    }
    Ok(rounded as u64)
}

/// Parses a number with one of these units and converts it to the unit with factor 1.
fn parse_any(
    text: &str,
    units: &[Unit],
    example: &'static str,
    unit_names: &'static str,
) -> Result<f64, QuantityError> {
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
    let Some((_, factor)) = units.iter().find(|(name, _)| *name == unit) else {
        return Err(QuantityError::UnknownUnit(text.to_owned(), unit.to_owned(), unit_names));
    };
    Ok(value * factor)
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
