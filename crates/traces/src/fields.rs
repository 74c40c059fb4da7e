//! Splits lines into fields.

use crate::sink::Reason;

/// Comma-separated fields, without surrounding blanks.
pub(crate) struct Commas<'a>(Option<&'a [u8]>);

impl<'a> Commas<'a> {
    pub(crate) fn new(line: &'a [u8]) -> Self {
        Self(Some(line))
    }

    #[inline]
    pub(crate) fn field(&mut self) -> Result<&'a [u8], Reason> {
        self.next().ok_or("too few fields")
    }

    /// Checks that the line has no further fields.
    pub(crate) fn end(&self) -> Result<(), Reason> {
        if self.0.is_none() { Ok(()) } else { Err("too many fields") }
    }
}

impl<'a> Iterator for Commas<'a> {
    type Item = &'a [u8];

    /// Returns the next field. Fields are so short that a simple loop is faster than a search.
    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.0?;
        let Some(end) = rest.iter().position(|&byte| byte == b',') else {
            self.0 = None;
            return Some(rest.trim_ascii());
        };
        self.0 = Some(&rest[end + 1..]);
        Some(rest[..end].trim_ascii())
    }
}

/// Fields separated by blanks or tabs.
pub(crate) struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    pub(crate) fn new(line: &'a [u8]) -> Self {
        Self(line)
    }

    pub(crate) fn field(&mut self) -> Result<&'a [u8], Reason> {
        self.next().ok_or("too few fields")
    }

    /// Returns the text after the last field.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn end(&mut self) -> Result<(), Reason> {
        if self.next().is_none() { Ok(()) } else { Err("too many fields") }
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let begin = self.0.iter().position(|byte| !blank(byte))?;
        let rest = &self.0[begin..];
        let end = rest.iter().position(blank).unwrap_or(rest.len());
        self.0 = &rest[end..];
        Some(&rest[..end])
    }
}

/// Converts `value` units of `unit_bytes` to bytes.
#[inline]
pub(crate) fn bytes_of(value: u64, unit_bytes: u64) -> Result<u64, Reason> {
    value.checked_mul(unit_bytes).ok_or("address too large")
}
