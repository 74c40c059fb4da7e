//! Event `format` file, which describes the field positions on this kernel.

use thiserror::Error;

/// Error in a `format` file that does not describe an event.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FormatError {
    /// The file has no `ID:` line.
    #[error("the 'ID:' line is missing")]
    NoId,
    /// Line that does not define a field.
    #[error("line {line} is not a field definition: {text:?}")]
    #[allow(missing_docs, reason = "number and text of the line")]
    Field { line: usize, text: String },
    /// Field that the event lacks on this kernel.
    #[error("event {event} has no field '{field}' on this kernel")]
    #[allow(missing_docs, reason = "names of the event and the field")]
    Missing { event: String, field: String },
}

/// Position of a field in an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Field offset from the start of the record, in bytes.
    pub offset: usize,
    /// Field size in bytes.
    pub size: usize,
    /// `true` if a number is sign-extended.
    pub signed: bool,
}

impl Field {
    /// Returns the value of a number of up to eight bytes; 0 if the event ends before the field.
    pub fn number(self, event: &[u8]) -> u64 {
        let Some(bytes) = self.bytes(event) else { return 0 };
        let mut wide = [0; 8];
        let size = bytes.len().min(8);
        wide[..size].copy_from_slice(&bytes[..size]);
        let value = u64::from_le_bytes(wide);
        let unused = 64 - 8 * size as u32;
        if self.signed && size > 0 && unused > 0 {
            return ((value << unused) as i64 >> unused) as u64;
        }
        value
    }

    /// Returns the text of a character array, up to the first zero byte.
    pub fn text(self, event: &[u8]) -> &[u8] {
        let bytes = self.bytes(event).unwrap_or_default();
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        &bytes[..end]
    }

    fn bytes(self, event: &[u8]) -> Option<&[u8]> {
        event.get(self.offset..self.offset.checked_add(self.size)?)
    }
}

/// Number and fields of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFormat {
    /// Name of the event.
    pub name: String,
    /// Event number at the start of the event's records.
    pub id: u16,
    pub(crate) fields: Vec<(String, Field)>,
}

impl EventFormat {
    /// Reads a `format` file. Lines that do not define fields are skipped.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        let tail =
            |word: &str| text.lines().find_map(|line| line.strip_prefix(word)).map(str::trim);
        let id = tail("ID:").and_then(|number| number.parse().ok()).ok_or(FormatError::NoId)?;
        let name = tail("name:").unwrap_or_default().to_owned();
        Ok(Self { name, id, fields: parse_fields(text)? })
    }

    /// Returns a field that exists on every kernel; the error names a missing field.
    pub fn field(&self, name: &str) -> Result<Field, FormatError> {
        self.optional(name).ok_or_else(|| FormatError::Missing {
            event: self.name.clone(),
            field: name.to_owned(),
        })
    }

    /// Returns a field that exists only on some kernels.
    pub fn optional(&self, name: &str) -> Option<Field> {
        self.fields.iter().find(|(other, _)| other == name).map(|&(_, field)| field)
    }
}

/// Parses all lines `field:TYPE NAME; offset:N; size:N; signed:N;`.
pub(crate) fn parse_fields(text: &str) -> Result<Vec<(String, Field)>, FormatError> {
    text.lines()
        .enumerate()
        .filter_map(|(at, line)| {
            let body = line.trim().strip_prefix("field:")?;
            Some(parse_field(body).ok_or_else(|| FormatError::Field {
                line: at + 1,
                text: line.trim().chars().take(80).collect(),
            }))
        })
        .collect()
}

fn parse_field(body: &str) -> Option<(String, Field)> {
    let mut parts = body.split(';').map(str::trim);
    let declaration = parts.next()?;
    let (mut offset, mut size, mut signed) = (None, None, false);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", number)) => offset = number.trim().parse().ok(),
            Some(("size", number)) => size = number.trim().parse().ok(),
            Some(("signed", number)) => signed = number.trim() == "1",
            _ => {}
        }
    }
    let word = declaration.split_whitespace().next_back()?;
    let name = word.split('[').next()?.trim_start_matches('*');
    if name.is_empty() {
        return None;
    }
    Some((name.to_owned(), Field { offset: offset?, size: size?, signed }))
}
