//! Readers for quantities that must be above zero.

use super::{LocatedError, Table};
use crate::{BytesPerSecond, Nanos};

/// Reads a time above zero.
pub fn positive_time(table: &Table<'_>, key: &str) -> Result<Nanos, LocatedError> {
    let time = table.required_time(key)?;
    if time == Nanos::ZERO {
        return Err(table.error(key, format!("{key} must be above zero"), None));
    }
    Ok(time)
}

/// Reads a rate above zero.
pub fn positive_rate(table: &Table<'_>, key: &str) -> Result<BytesPerSecond, LocatedError> {
    let rate = table.required_rate(key)?;
    if rate.0 == 0 {
        return Err(table.error(key, format!("{key} must be above zero"), None));
    }
    Ok(rate)
}
