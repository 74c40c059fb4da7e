//! Number parsing from text. Lines with invalid numbers are skipped.

use crate::sink::Reason;

pub(crate) use writecliff_base::SECTOR_BYTES;
pub(crate) const NS_PER_S: u64 = 1_000_000_000;
pub(crate) const NS_PER_MS: u64 = 1_000_000;
pub(crate) const NS_PER_US: u64 = 1_000;
/// Nanoseconds per tick of Windows timestamps.
pub(crate) const NS_PER_TICK: u64 = 100;

/// Number of decimal digits that always fit into the type.
const DIGITS_FIT: usize = 19;
const ALL: u64 = 0x0101_0101_0101_0101;

#[inline]
fn are_digits(bytes: u64) -> bool {
    let high = 0xf0 * ALL;
    (bytes & high) | ((bytes.wrapping_add(6 * ALL) & high) >> 4) == 0x33 * ALL
}

/// Returns the value of eight decimal digits by combining pairs, pairs of pairs, and both halves.
#[inline]
fn of_digits(bytes: u64) -> u64 {
    let pairs = (bytes & (0x0f * ALL)).wrapping_mul(10 * 256 + 1) >> 8;
    let fours = (pairs & 0x00ff_00ff_00ff_00ff).wrapping_mul(100 * 65_536 + 1) >> 16;
    (fours & 0x0000_ffff_0000_ffff).wrapping_mul((10_000 << 32) + 1) >> 32
}

/// Parses the integer at `at`; returns the integer and the index of its end. Returns `None` if
/// there are no digits, or more digits than always fit.
#[inline]
pub(crate) fn leading(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let (mut value, mut end) = (0_u64, at);
    while let Some(eight) = text.get(end..end + 8).and_then(|eight| eight.try_into().ok()) {
        let eight = u64::from_le_bytes(eight);
        if !are_digits(eight) {
            break;
        }
        value = value.wrapping_mul(100_000_000).wrapping_add(of_digits(eight));
        end += 8;
    }
    while let Some(digit) = text.get(end).map(|byte| byte.wrapping_sub(b'0')) {
        if digit > 9 {
            break;
        }
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        end += 1;
    }
    (end > at && end - at <= DIGITS_FIT).then_some((value, end))
}

#[inline]
pub(crate) fn whole(text: &[u8]) -> Result<u64, Reason> {
    match leading(text, 0) {
        Some((value, end)) if end == text.len() => Ok(value),
        _ => long_whole(text),
    }
}

#[cold]
fn long_whole(text: &[u8]) -> Result<u64, Reason> {
    if text.is_empty() {
        return Err("empty field");
    }
    let is_whole = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    if !is_whole(text) {
        let negative = text.strip_prefix(b"-").is_some_and(is_whole);
        return Err(if negative { "negative number" } else { "not a whole number" });
    }
    let digits = str::from_utf8(text).map_err(|_| "not a whole number")?;
    digits.parse().map_err(|_| "number too large")
}

/// Parses a hexadecimal integer, with or without `0x`.
pub(crate) fn hexadecimal(text: &[u8]) -> Result<u64, Reason> {
    let digits = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X")).unwrap_or(text);
    if digits.is_empty() || digits.iter().any(|byte| !byte.is_ascii_hexdigit()) {
        return Err("not a hexadecimal number");
    }
    let digits = str::from_utf8(digits).map_err(|_| "not a hexadecimal number")?;
    u64::from_str_radix(digits, 16).map_err(|_| "number too large")
}

/// Parses a time in units of `unit_ns`, with or without a fraction, as nanoseconds rounded down.
pub(crate) fn time_ns(text: &[u8], unit_ns: u64) -> Result<u64, Reason> {
    if let Some((value, end)) = leading(text, 0)
        && end == text.len()
    {
        return value.checked_mul(unit_ns).ok_or("time too large");
    }
    let Some(point) = text.iter().position(|&byte| !byte.is_ascii_digit()) else {
        return whole(text)?.checked_mul(unit_ns).ok_or("time too large");
    };
    if text[point] != b'.' {
        return unusual_time(text, unit_ns);
    }
    let (before, after) = (&text[..point], &text[point + 1..]);
    if before.is_empty() && after.is_empty() {
        return Err("not a number");
    }
    let mut ns = if before.is_empty() { 0 } else { whole(before)? };
    ns = ns.checked_mul(unit_ns).ok_or("time too large")?;
    let mut unit = unit_ns;
    for &byte in after {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return unusual_time(text, unit_ns);
        }
        unit /= 10;
        ns = ns.checked_add(u64::from(digit) * unit).ok_or("time too large")?;
    }
    Ok(ns)
}

/// Parses a response time, like [`time_ns`].
pub(crate) fn response_ns(text: &[u8], unit_ns: u64) -> Result<i64, Reason> {
    i64::try_from(time_ns(text, unit_ns)?).map_err(|_| "time too large")
}

/// Parses a time with an exponent, which some programs use for small times.
#[cold]
fn unusual_time(text: &[u8], unit_ns: u64) -> Result<u64, Reason> {
    let text = std::str::from_utf8(text).map_err(|_| "not a number")?;
    let exponent = text.bytes().any(|byte| matches!(byte, b'e' | b'E'));
    let value: f64 = text.parse().map_err(|_| "not a number")?;
    if !value.is_finite() {
        return Err("not a finite number");
    }
    if value < 0.0 {
        return Err("negative number");
    }
    if !exponent {
        return Err("not a number");
    }
    let ns = value * unit_ns as f64;
    if ns < 1.8e19 { Ok(ns as u64) } else { Err("time too large") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_and_what_is_none() {
        assert_eq!(whole(b"0"), Ok(0));
        assert_eq!(whole(b"18446744073709551615"), Ok(u64::MAX));
        assert_eq!(whole(b"18446744073709551616"), Err("number too large"));
        assert_eq!(whole(&[b'9'; 5000]), Err("number too large"));
        assert_eq!(whole(b"-7"), Err("negative number"));
        assert_eq!(whole(b"7.5"), Err("not a whole number"));
        assert_eq!(whole(b"nan"), Err("not a whole number"));
        assert_eq!(whole(b""), Err("empty field"));
        let mut state = 1_u64;
        for _ in 0..2000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let value = state >> (state >> 58);
            assert_eq!(whole(value.to_string().as_bytes()), Ok(value));
        }
        for damage in [b'/', b':', b' ', 0xb5] {
            let mut text = *b"1234567890123456";
            text[5] = damage;
            assert!(whole(&text).is_err());
        }
    }

    #[test]
    fn hexadecimal_numbers() {
        assert_eq!(hexadecimal(b"0x1aF0"), Ok(0x1af0));
        assert_eq!(hexadecimal(b"ffffffffffffffff"), Ok(u64::MAX));
        assert_eq!(hexadecimal(b"0x1ffffffffffffffff"), Err("number too large"));
        assert_eq!(hexadecimal(b"0x"), Err("not a hexadecimal number"));
    }

    #[test]
    fn times_keep_every_nanosecond() {
        assert_eq!(time_ns(b"1455592202.053823456", NS_PER_S), Ok(1_455_592_202_053_823_456));
        assert_eq!(time_ns(b"0.0000000019", NS_PER_S), Ok(1));
        assert_eq!(time_ns(b".5", NS_PER_MS), Ok(500_000));
        assert_eq!(time_ns(b"128166372003061629", NS_PER_TICK), Ok(12_816_637_200_306_162_900));
        assert_eq!(time_ns(b"5e-05", NS_PER_S), Ok(50_000));
        assert_eq!(time_ns(b"NaN", NS_PER_S), Err("not a finite number"));
        assert_eq!(time_ns(b"-1.5", NS_PER_S), Err("negative number"));
        assert_eq!(time_ns(b"99999999999999", NS_PER_S), Err("time too large"));
        assert_eq!(time_ns(b".", NS_PER_S), Err("not a number"));
    }
}
