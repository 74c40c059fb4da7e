//! Custom CSV with user-defined columns: `time=ts:us,offset=lba:sectors,...`.

use writecliff_base::words;

use crate::fields::bytes_of;
use crate::number::{
    NS_PER_MS, NS_PER_S, NS_PER_TICK, NS_PER_US, SECTOR_BYTES, response_ns, time_ns, whole,
};
use crate::parser::{Line, LineFormat};
use crate::record::{Operation, Record};
use crate::sink::{Reason, Sink};

words! {
    /// Meaning of a CSV column.
    pub enum Role {
        /// Issue time; required.
        Time = "time",
        /// Name of the volume, drive or file.
        Volume = "volume",
        /// Operation, given by its first letter or its name; required.
        Operation = "operation",
        /// Address of the first byte; required.
        Offset = "offset",
        /// I/O length; required.
        Length = "length",
        /// Time from issue to completion.
        Response = "response",
        /// Name of the process that issued the I/O.
        Process = "process",
        /// Hash of the written or read data.
        Content = "content",
    }
}

impl Role {
    const NEEDED: [Self; 4] = [Self::Time, Self::Operation, Self::Offset, Self::Length];
}

/// Units of times, in nanoseconds.
pub const TIME_UNITS: [(&str, u64); 5] =
    [("s", NS_PER_S), ("ms", NS_PER_MS), ("us", NS_PER_US), ("ns", 1), ("ticks", NS_PER_TICK)];
/// Units of addresses and lengths, in bytes.
pub const SIZE_UNITS: [(&str, u64); 4] =
    [("bytes", 1), ("sectors", SECTOR_BYTES), ("kib", 1 << 10), ("pages", 4 << 10)];

/// Column with a meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Meaning of the column.
    pub role: Role,
    /// Name of the column in the header, or the column number (starting at 1).
    pub name: String,
    /// Unit of the numbers, in nanoseconds or bytes.
    pub unit: u64,
}

/// Parses a mapping. The error describes the invalid element.
pub fn parse_columns(text: &str) -> Result<Vec<Column>, String> {
    let mut columns: Vec<Column> = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let Some((role, rest)) = part.split_once('=') else {
            return Err(format!("'{part}' is not MEANING=COLUMN or MEANING=COLUMN:UNIT"));
        };
        let Some(role) = Role::named(role.trim()) else {
            let roles = Role::ALL.map(Role::name).join(", ");
            return Err(format!("unknown meaning '{role}'; known: {roles}"));
        };
        if columns.iter().any(|column| column.role == role) {
            return Err(format!("'{part}': another column already has this meaning"));
        }
        let (name, unit) = match rest.rsplit_once(':') {
            Some((name, unit)) => (name, Some(unit.trim())),
            None => (rest, None),
        };
        let unit = unit_of(role, unit)?;
        columns.push(Column { role, name: name.trim().to_owned(), unit });
    }
    for role in Role::NEEDED {
        if !columns.iter().any(|column| column.role == role) {
            return Err(format!("no column has the required meaning '{}'", role.name()));
        }
    }
    Ok(columns)
}

fn unit_of(role: Role, unit: Option<&str>) -> Result<u64, String> {
    let units: &[(&str, u64)] = match role {
        Role::Time | Role::Response => &TIME_UNITS,
        Role::Offset | Role::Length => &SIZE_UNITS,
        _ => &[],
    };
    let Some(unit) = unit else {
        return Ok(if matches!(role, Role::Time | Role::Response) { NS_PER_S } else { 1 });
    };
    let names: Vec<_> = units.iter().map(|(name, _)| *name).collect();
    match units.iter().find(|(name, _)| *name == unit) {
        Some((_, size)) => Ok(*size),
        None if names.is_empty() => Err(format!("'{unit}': this column does not accept a unit")),
        None => Err(format!("unknown unit '{unit}'; known: {}", names.join(", "))),
    }
}

/// Returns the operation that a word specifies; 0 is a read and 1 is a write.
pub fn operation_of(word: &[u8]) -> Result<Operation, Reason> {
    Ok(match word.first().map(u8::to_ascii_lowercase) {
        Some(b'r' | b'0') => Operation::Read,
        Some(b'w' | b'1') => Operation::Write,
        Some(b'd' | b't' | b'u' | b'p') => Operation::Discard,
        Some(b'f' | b's') => Operation::Flush,
        _ => return Err("unknown operation"),
    })
}

pub(crate) struct OwnColumns {
    wanted: Vec<Column>,
    /// Position of each column in `wanted`; `None` before the first line has been parsed.
    places: Option<Vec<usize>>,
    separator: u8,
}

impl OwnColumns {
    pub(crate) fn new(wanted: Vec<Column>) -> Self {
        Self { wanted, places: None, separator: b',' }
    }

    /// Locates the columns in the first line.
    fn begin(&mut self, line: &[u8]) -> Result<Line, Reason> {
        let count = |separator: u8| memchr::memchr_iter(separator, line).count();
        let separator = [b',', b';', b'\t'].into_iter().find(|&separator| count(separator) > 0);
        self.separator = separator.unwrap_or(b' ');
        let header: Vec<_> = split(line, self.separator).collect();
        let by_name =
            |column: &Column| header.iter().position(|name| *name == column.name.as_bytes());
        if let Some(places) = self.wanted.iter().map(by_name).collect() {
            self.places = Some(places);
            return Ok(Line::Beside("header"));
        }
        let by_number = |column: &Column| column.name.parse::<usize>().ok()?.checked_sub(1);
        self.places = self.wanted.iter().map(by_number).collect();
        if self.places.is_none() {
            return Err("header does not contain the columns of the mapping");
        }
        Ok(Line::Used)
    }
}

fn split(line: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    line.split(move |&byte| byte == separator)
        .filter(move |field| separator != b' ' || !field.is_empty())
        .map(|field| {
            let field = field.trim_ascii();
            field.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or(field)
        })
}

impl LineFormat for OwnColumns {
    fn line(&mut self, line: &[u8], to: &mut Sink) -> Result<Line, Reason> {
        if self.places.is_none() {
            let header = self.begin(line)?;
            if let Line::Beside(_) = header {
                return Ok(header);
            }
        }
        let places = self.places.as_deref().unwrap_or_default();
        let mut fields: [&[u8]; Role::ALL.len()] = [&[]; Role::ALL.len()];
        let mut left = places.len();
        for (n, field) in split(line, self.separator).enumerate() {
            for (column, _) in places.iter().enumerate().filter(|(_, place)| **place == n) {
                fields[column] = field;
                left -= 1;
            }
        }
        if left > 0 {
            return Err("too few fields");
        }
        let mut record = Record::new(0, Operation::Read, 0, 0);
        let mut time = 0;
        for (column, field) in self.wanted.iter().zip(fields) {
            match column.role {
                Role::Time => time = time_ns(field, column.unit)?,
                Role::Volume => record.volume = to.volumes.number(field),
                Role::Operation => record.operation = operation_of(field)?,
                Role::Offset | Role::Length | Role::Response if field.is_empty() => {}
                Role::Offset => record.offset_bytes = bytes_of(whole(field)?, column.unit)?,
                Role::Length => record.length_bytes = bytes_of(whole(field)?, column.unit)?,
                Role::Response => record.response_ns = response_ns(field, column.unit)?,
                Role::Process => record.process = to.processes.number(field),
                Role::Content => record.content = content_of(field),
            }
        }
        if !self.wanted.iter().any(|column| column.role == Role::Volume) {
            record.volume = to.volumes.number(b"volume");
        }
        if record.operation == Operation::Flush {
            (record.offset_bytes, record.length_bytes) = (0, 0);
        }
        record.time_ns = to.since_begin(time)?;
        to.used(&record)
    }
}

/// Returns the number that represents data with this hash.
pub fn content_of(text: &[u8]) -> u64 {
    if text.is_empty() {
        return 0;
    }
    let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    text.iter().fold(0xcbf2_9ce4_8422_2325, add).max(1)
}
