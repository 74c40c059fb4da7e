//! File operations of a traced program, in time order.

use writecliff_base::words;

use super::TraceError;

words! {
    /// Operations that change the data on a drive, or the time when data are written.
    #[repr(u8)]
    pub enum FileOp {
        /// Writes `length` bytes at `offset`.
        Write = "write",
        /// Truncates the file; `offset` is the new size.
        Truncate = "truncate",
        /// Deletes the file object.
        Unlink = "unlink",
        /// Deallocates a range, like fallocate(2) with `FALLOC_FL_PUNCH_HOLE`.
        Punch = "punch",
        /// Flushes the file's dirty pages, like fsync(2).
        Sync = "fsync",
        /// Creates the file object.
        Create = "create",
    }
}

/// Limit on file numbers, which index a table.
const FILES_MAX: u32 = 1 << 26;
/// Maximum offset: 16 TiB, the largest that 32-bit block numbers can address.
const OFFSET_MAX: u64 = 1 << 44;

/// One operation. `offset` and `length` are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// Operation type.
    pub op: FileOp,
    /// Number of the file object; renaming a file does not change this number.
    pub file: u32,
    /// Offset of the first byte in the file.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// Stream that the host assigns to the write.
    pub stream: u16,
    /// Label of the writer for reports; the label does not affect the simulation.
    pub origin: u16,
    /// Number of the file's folder, for allocators that place files by folder.
    pub folder: u16,
    /// Time in ms since the start of the trace, at most 49 days.
    pub time_ms: u32,
}

/// Trace rows as columns of equal length, from Python, and the tables that the values index.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// Word number of the operation in each row.
    pub op: &'a [i32],
    /// File object number in each row.
    pub file: &'a [i32],
    /// Offset of the first byte in the file, for each row.
    pub offset: &'a [i64],
    /// Length in bytes of each row.
    pub length: &'a [i64],
    /// Time of each row in ns since the start of the trace; empty if nothing depends on time.
    pub time: &'a [i64],
    /// Class of each row, whose rows have equal streams, origins and folders: [`super::Classes`].
    pub class: &'a [u32],
    /// [`FileOp`] number of each operation word, or [`LEFT_OUT`]; indexed by word number.
    pub ops: &'a [u8],
    /// Stream of each class; indexed by class.
    pub stream: &'a [u16],
    /// Label of the writer; indexed by class.
    pub origin: &'a [u16],
    /// Folder number; indexed by class; empty if all files are in one folder.
    pub folder: &'a [u16],
}

/// Marker for words of operations that do not change a drive.
pub const LEFT_OUT: u8 = 255;

/// A trace of file operations.
#[derive(Clone, Debug, Default)]
pub struct Events {
    /// Operations in order.
    pub all: Vec<TraceEvent>,
    /// Largest file number plus one.
    pub files: u32,
}

impl Events {
    /// Appends those rows of a batch that change a drive. Appends no rows if any row is invalid.
    pub fn push(&mut self, batch: &Batch<'_>) -> Result<(), TraceError> {
        let rows = batch.op.len();
        let lengths = [batch.file.len(), batch.offset.len(), batch.length.len(), batch.class.len()];
        let classes = batch.stream.len();
        let folders = batch.folder.is_empty() || batch.folder.len() == classes;
        let times = batch.time.is_empty() || batch.time.len() == rows;
        if lengths.iter().any(|&length| length != rows)
            || batch.origin.len() != classes
            || !folders
            || !times
        {
            return Err(TraceError::Trace("the columns differ in length".to_owned()));
        }
        let before = (self.all.len(), self.files);
        self.all.reserve(rows);
        for row in 0..rows {
            match row_of(batch, row) {
                Ok(Some(event)) => self.add(event),
                Ok(None) => {}
                Err(message) => {
                    self.all.truncate(before.0);
                    self.files = before.1;
                    return Err(TraceError::Row { row, message });
                }
            }
        }
        Ok(())
    }

    /// Appends one operation without checking it.
    pub fn add(&mut self, event: TraceEvent) {
        self.files = self.files.max(event.file + 1);
        self.all.push(event);
    }

    /// Returns the largest folder number plus one.
    pub(super) fn folders(&self) -> u32 {
        self.all.iter().map(|event| u32::from(event.folder) + 1).max().unwrap_or(1)
    }
}

fn row_of(batch: &Batch<'_>, row: usize) -> Result<Option<TraceEvent>, String> {
    let code = usize::try_from(batch.op[row]).ok().and_then(|word| batch.ops.get(word));
    let Some(&code) = code else {
        return Err(format!("unknown operation {}", batch.op[row]));
    };
    if code == LEFT_OUT {
        return Ok(None);
    }
    let Some(&op) = FileOp::ALL.get(usize::from(code)) else {
        return Err(format!("operation {code} is outside 0 to {}", FileOp::ALL.len() - 1));
    };
    let Some(file) = u32::try_from(batch.file[row]).ok().filter(|&file| file < FILES_MAX) else {
        return Err(format!("file {} is outside 0 to {}", batch.file[row], FILES_MAX - 1));
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
        return Err(format!("{length} bytes at offset {offset} are not within 0 to 16 TiB"));
    };
    let class = batch.class[row] as usize;
    let Some((&stream, &origin)) = batch.stream.get(class).zip(batch.origin.get(class)) else {
        return Err(format!("class {class} does not exist"));
    };
    let folder = batch.folder.get(class).copied().unwrap_or(0);
    let time = batch.time.get(row).copied().unwrap_or(0).max(0);
    let time_ms = u32::try_from(time / 1_000_000).unwrap_or(u32::MAX);
    Ok(Some(TraceEvent { op, file, offset, length, stream, origin, folder, time_ms }))
}
