//! Quantities of device files that must not be zero.

use writecliff_base::located::{LocatedError, Table};
use writecliff_base::{BytesPerSecond, Nanos};

type Answer<T> = Result<T, LocatedError>;

/// A time above zero.
pub fn positive(table: &Table<'_>, key: &str) -> Answer<Nanos> {
    let time = table.required_time(key)?;
    if time == Nanos::ZERO {
        return Err(table.error(key, format!("{key} is zero; it must take time"), None));
    }
    Ok(time)
}

/// A rate above zero.
pub fn rate(table: &Table<'_>, key: &str) -> Answer<BytesPerSecond> {
    let rate = table.required_rate(key)?;
    if rate.0 == 0 {
        return Err(table.error(key, format!("{key} is zero; data must move"), None));
    }
    Ok(rate)
}
