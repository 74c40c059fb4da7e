//! What a program did to its files, in columns, in the order of time.

use super::TraceError;

/// Operations that change what lies on a drive, or when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FileOp {
    Write = 0,
    /// `offset` is the new size.
    Truncate = 1,
    Unlink = 2,
    /// Deallocate a range, as fallocate(2) punches holes.
    Punch = 3,
    Sync = 4,
    /// The file object begins to exist.
    Create = 5,
}

const OPS: [FileOp; 6] =
    [FileOp::Write, FileOp::Truncate, FileOp::Unlink, FileOp::Punch, FileOp::Sync, FileOp::Create];

/// File numbers are indices of a table.
const FILES_MAX: u32 = 1 << 26;
/// 16 TiB: what 32-bit numbers of blocks reach.
const OFFSET_MAX: u64 = 1 << 44;

/// One operation. `offset` and `length` are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub op: FileOp,
    /// The file object; it keeps its number when it is renamed.
    pub file: u32,
    pub offset: u64,
    pub length: u64,
    /// Stream that the host gives the write.
    pub stream: u16,
    /// Who wrote it: a label for reports, without effect.
    pub origin: u16,
}

/// Columns of equal length, as they come over the seam.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// Numbers of [`FileOp`].
    pub op: &'a [u8],
    pub file: &'a [u32],
    pub offset: &'a [u64],
    pub length: &'a [u64],
    pub stream: &'a [u16],
    pub origin: &'a [u16],
}

/// A trace of file operations.
#[derive(Clone, Debug, Default)]
pub struct Events {
    events: Vec<Event>,
    files: u32,
}

impl Events {
    /// Append a batch; nothing is appended if a row is wrong.
    pub fn push(&mut self, batch: &Batch<'_>) -> Result<(), TraceError> {
        let rows = batch.op.len();
        let lengths = [
            batch.file.len(),
            batch.offset.len(),
            batch.length.len(),
            batch.stream.len(),
            batch.origin.len(),
        ];
        if lengths.iter().any(|&length| length != rows) {
            return Err(TraceError::Trace("its columns differ in length".to_owned()));
        }
        let before = self.events.len();
        self.events.reserve(rows);
        for row in 0..rows {
            match row_of(batch, row) {
                Ok(event) => self.add(event),
                Err(message) => {
                    self.events.truncate(before);
                    return Err(TraceError::Row { row: before + row, message });
                }
            }
        }
        Ok(())
    }

    /// Append one operation that is known to be right.
    pub fn add(&mut self, event: Event) {
        self.files = self.files.max(event.file + 1);
        self.events.push(event);
    }

    pub fn iter(&self) -> impl Iterator<Item = &Event> {
        self.events.iter()
    }

    pub fn len(&self) -> usize {
        self.events.len()
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// One more than the largest file number.
    pub fn files(&self) -> u32 {
        self.files
    }
}

fn row_of(batch: &Batch<'_>, row: usize) -> Result<Event, String> {
    let code = batch.op[row];
    let Some(&op) = OPS.get(usize::from(code)) else {
        return Err(format!("operation {code} is none of 0 to {}", OPS.len() - 1));
    };
    let (file, offset, length) = (batch.file[row], batch.offset[row], batch.length[row]);
    if file >= FILES_MAX {
        return Err(format!("file {file} is above {}", FILES_MAX - 1));
    }
    if offset.checked_add(length).is_none_or(|end| end > OFFSET_MAX) {
        return Err(format!("{length} bytes at {offset} end beyond 16 TiB"));
    }
    Ok(Event { op, file, offset, length, stream: batch.stream[row], origin: batch.origin[row] })
}
