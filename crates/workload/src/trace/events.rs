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
pub struct TraceEvent {
    pub op: FileOp,
    /// The file object; it keeps its number when it is renamed.
    pub file: u32,
    pub offset: u64,
    pub length: u64,
    /// Stream that the host gives the write.
    pub stream: u16,
    /// Who wrote it: a label for reports, without effect.
    pub origin: u16,
    /// Number of the folder that the file lies in, for an allocator that goes by folders.
    pub folder: u16,
}

/// Columns of equal length, as they come over the seam, and what their numbers mean.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// Numbers of words.
    pub op: &'a [i32],
    pub file: &'a [i32],
    pub offset: &'a [i64],
    pub length: &'a [i64],
    /// Of rows that agree in stream and origin, see [`super::Classes`].
    pub class: &'a [u32],
    /// By word: the number of a [`FileOp`], or [`LEFT_OUT`].
    pub ops: &'a [u8],
    /// By class.
    pub stream: &'a [u16],
    pub origin: &'a [u16],
    /// Empty: all in one folder.
    pub folder: &'a [u16],
}

/// Operations that change nothing on a drive.
pub const LEFT_OUT: u8 = 255;

/// A trace of file operations.
#[derive(Clone, Debug, Default)]
pub struct Events {
    events: Vec<TraceEvent>,
    files: u32,
}

impl Events {
    /// Append the rows of a batch that change a drive; nothing is appended if a row is wrong.
    pub fn push(&mut self, batch: &Batch<'_>) -> Result<(), TraceError> {
        let rows = batch.op.len();
        let lengths = [batch.file.len(), batch.offset.len(), batch.length.len(), batch.class.len()];
        let classes = batch.stream.len();
        let folders = batch.folder.is_empty() || batch.folder.len() == classes;
        if lengths.iter().any(|&length| length != rows) || batch.origin.len() != classes || !folders
        {
            return Err(TraceError::Trace("its columns differ in length".to_owned()));
        }
        let before = (self.events.len(), self.files);
        self.events.reserve(rows);
        for row in 0..rows {
            match row_of(batch, row) {
                Ok(Some(event)) => self.add(event),
                Ok(None) => {}
                Err(message) => {
                    self.events.truncate(before.0);
                    self.files = before.1;
                    return Err(TraceError::Row { row, message });
                }
            }
        }
        Ok(())
    }

    /// Append one operation that is known to be right.
    pub fn add(&mut self, event: TraceEvent) {
        self.files = self.files.max(event.file + 1);
        self.events.push(event);
    }

    pub fn iter(&self) -> impl Iterator<Item = &TraceEvent> {
        self.events.iter()
    }

    pub(super) fn as_slice(&self) -> &[TraceEvent] {
        &self.events
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

    /// One more than the largest folder number.
    pub(super) fn folders(&self) -> u32 {
        self.iter().map(|event| u32::from(event.folder) + 1).max().unwrap_or(1)
    }
}

fn row_of(batch: &Batch<'_>, row: usize) -> Result<Option<TraceEvent>, String> {
    let code = usize::try_from(batch.op[row]).ok().and_then(|word| batch.ops.get(word));
    let Some(&code) = code else {
        return Err(format!("operation {} is unknown", batch.op[row]));
    };
    if code == LEFT_OUT {
        return Ok(None);
    }
    let Some(&op) = OPS.get(usize::from(code)) else {
        return Err(format!("operation {code} is none of 0 to {}", OPS.len() - 1));
    };
    let Some(file) = u32::try_from(batch.file[row]).ok().filter(|&file| file < FILES_MAX) else {
        return Err(format!("file {} is not 0 to {}", batch.file[row], FILES_MAX - 1));
    };
    let length = match op {
        FileOp::Write | FileOp::Punch => batch.length[row],
        _ => 0,
    };
    let range = u64::try_from(batch.offset[row]).ok().zip(u64::try_from(length).ok());
    let fits = |&(offset, length): &(u64, u64)| {
        offset.checked_add(length).is_some_and(|end| end <= OFFSET_MAX)
    };
    let Some((offset, length)) = range.filter(fits) else {
        let offset = batch.offset[row];
        return Err(format!("{length} bytes at {offset} are not within 16 TiB"));
    };
    let class = batch.class[row] as usize;
    let Some((&stream, &origin)) = batch.stream.get(class).zip(batch.origin.get(class)) else {
        return Err(format!("there is no class {class}"));
    };
    let folder = batch.folder.get(class).copied().unwrap_or(0);
    Ok(Some(TraceEvent { op, file, offset, length, stream, origin, folder }))
}
