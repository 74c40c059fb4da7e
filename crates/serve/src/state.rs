//! State files of served drives, and the sessions of a drive with a state file. Each session
//! continues where the previous session ended, even if the server was killed.
//!
//! ```text
//! state of the drive      in the format of `writecliff_base::codec`
//! "WCSERVE5"              8 bytes
//! blocks, power, life,    in the same format: logical block size, power-ups, SMART counters that
//! errors                  the drive does not keep, and the error log
//! contents                in the same format; absent if the contents have a file of their own
//! ```
//!
//! A state file saved by a run contains only the drive state. A server reads such a file as a state
//! file without contents: the logical block size and power-up count are those of a new drive, and
//! the lifetime counters are derived from the drive's counters.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

use thiserror::Error;
use writecliff_base::SECTOR_BYTES;
use writecliff_base::codec::{CodecError, StateReader, StateWriter};
use writecliff_base::saved_state::RestoreError;
use writecliff_contents::SavedError;
use writecliff_host_interface::Operation;
use writecliff_nvme::ErrorLog;

use crate::journal::{Header, Journal, Record, beside};
use crate::request::{Request, Tag};
use crate::served::{LOGICAL_BLOCKS, PowerHistory, ServedParts};
use crate::statistics::Life;

const MAGIC: &[u8; 7] = b"WCSERVE";
const VERSION: u8 = b'5';
/// Last version that stored its digit at the end of the file.
const VERSION_BEFORE: u8 = b'4';
const BUFFER_BYTES: usize = 1 << 20;

/// Error while writing or reading a state file.
#[derive(Debug, Error)]
pub enum StateError {
    /// The state file could not be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The drive state could not be written.
    #[error(transparent)]
    Saving(#[from] CodecError),
    /// The drive state could not be restored.
    #[error(transparent)]
    Drive(#[from] RestoreError),
    /// The contents could not be saved or restored.
    #[error(transparent)]
    Contents(#[from] SavedError),
    /// Contents exist both in the state and in a file.
    #[error(
        "the state contains data, but the drive stores its data in a file: use only one of them"
    )]
    TwoContents,
    /// Version digit of the state.
    #[error(
        "the state has version {0:?}, which this program does not support: create the state again"
    )]
    Version(char),
    /// Logical block size in bytes that is not in [`crate::LOGICAL_BLOCKS`].
    #[error("the state is damaged: {0} is not a valid logical block size (512 or 4096 bytes)")]
    LogicalBlock(u64),
    /// Path of the journal that another server has locked.
    #[error("another server uses the state: {0}")]
    InUse(String),
    /// Path of a journal with invalid checksums.
    #[error("{0} is damaged: remove it to continue with the last saved state")]
    Journal(String),
}

/// Writes a state file; an existing file is replaced once the new file is complete.
pub fn save(parts: &ServedParts, path: &Path) -> Result<(), StateError> {
    let part = beside(path, ".part");
    let written = write(parts, &part).and_then(|()| Ok(fs::rename(&part, path)?));
    if written.is_err() {
        let _ = fs::remove_file(&part); // This function reports only the first error.
    }
    written
}

fn write(parts: &ServedParts, path: &Path) -> Result<(), StateError> {
    let out = BufWriter::with_capacity(BUFFER_BYTES, File::create(path)?);
    let mut out = parts.drive.save(out)?;
    out.write_all(MAGIC)?;
    out.write_all(&[VERSION])?;
    let mut history = StateWriter::new(out)?;
    history.fields("blocks", &parts.logical_block)?;
    history.fields("power", &parts.power)?;
    history.fields("life", &parts.life)?;
    history.fields("errors", &parts.errors)?;
    let mut out = history.finish()?;
    if parts.contents.is_in_memory() {
        out = parts.contents.save(out)?;
    }
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    Ok(parts.contents.sync().map_err(SavedError::from)?)
}

/// Restores a saved state into a new drive and its contents.
pub fn restore(parts: &mut ServedParts, path: &Path) -> Result<(), StateError> {
    let mut input = restore_drive(parts, path)?;
    restore_contents(parts, &mut input)
}

/// Restores all data except the contents, and returns the remainder of the file.
fn restore_drive(parts: &mut ServedParts, path: &Path) -> Result<BufReader<File>, StateError> {
    let mut input = BufReader::with_capacity(BUFFER_BYTES, File::open(path)?);
    parts.drive.restore(&mut input)?;
    (parts.logical_block, parts.power) = (LOGICAL_BLOCKS[0], PowerHistory::default());
    (parts.life, parts.errors) = (Life::before(&parts.drive), ErrorLog::default());
    if input.fill_buf()?.is_empty() {
        return Ok(input);
    }
    let mut magic = [0; MAGIC.len() + 1];
    input.read_exact(&mut magic)?;
    let version = magic.strip_prefix(MAGIC).map_or(VERSION_BEFORE, |version| version[0]);
    if version != VERSION {
        return Err(StateError::Version(char::from(version)));
    }
    let mut history = StateReader::new(&mut input)?;
    history.fields("blocks", &mut parts.logical_block)?;
    history.fields("power", &mut parts.power)?;
    history.fields("life", &mut parts.life)?;
    history.fields("errors", &mut parts.errors)?;
    history.end()?;
    if !LOGICAL_BLOCKS.contains(&parts.logical_block) {
        return Err(StateError::LogicalBlock(parts.logical_block.0));
    }
    Ok(input)
}

fn restore_contents(
    parts: &mut ServedParts,
    input: &mut BufReader<File>,
) -> Result<(), StateError> {
    if input.fill_buf()?.is_empty() {
        return Ok(());
    }
    if !parts.contents.is_in_memory() {
        return Err(StateError::TwoContents);
    }
    Ok(parts.contents.restore(input)?)
}

/// Starts a session of the drive in a state file; creates the file from the new drive if the file
/// does not exist. After a killed session, the drive has all acknowledged requests with their data
/// and counters, and counts an unsafe shutdown. The read counters are complete up to the last
/// second. From this point on, no acknowledged request is lost if this process is killed. Returns
/// `true` if the previous session was killed.
pub fn open(parts: &mut ServedParts, path: &Path) -> Result<bool, StateError> {
    let mut journal = Journal::open(path).map_err(|error| journal_error(error, path))?;
    let was_there = path.exists();
    let mut saved = if was_there { Some(restore_drive(parts, path)?) } else { None };
    let power_ups = parts.power.cycles;
    // A server killed after saving the state leaves the journal of an earlier state file.
    let killed = journal.header()?.filter(|of| was_there && of.power_ups == power_ups);
    let is_mirrored = killed.is_some_and(|of| of.has_data);
    if is_mirrored && !parts.contents.is_in_memory() {
        return Err(StateError::TwoContents);
    }
    if is_mirrored {
        parts.contents.restore_mirror(&journal.data).map_err(SavedError::from)?;
    } else if let Some(saved) = &mut saved {
        restore_contents(parts, saved)?;
    }
    if !was_there {
        save(parts, path)?;
    }
    if !is_mirrored && parts.contents.is_in_memory() {
        parts.contents.mirror_to(&journal.data).map_err(SavedError::from)?;
    }
    let header = Header { power_ups, has_data: parts.contents.is_in_memory() };
    if killed.is_some() {
        let replayed = journal.replay(|record| is_of(parts, &record) && apply(parts, record));
        replayed.map_err(|error| journal_error(error, path))?;
        parts.drive.end_fast_forward();
        apply(parts, Record::PowerUp);
        journal.set_header(header)?;
        journal.add(Record::PowerUp);
    } else {
        journal.begin(header)?;
    }
    parts.journal = Some(journal);
    Ok(killed.is_some())
}

/// Ends a session and saves the state. If `path` is `None`, the state file is not changed.
pub fn close(mut parts: ServedParts, path: Option<&Path>) -> Result<(), StateError> {
    if let Some(path) = path {
        save(&parts, path)?;
    }
    Ok(parts.journal.take().map_or(Ok(()), Journal::remove)?)
}

fn journal_error(error: io::Error, path: &Path) -> StateError {
    let journal = format!("{}.journal", path.display());
    match error.kind() {
        io::ErrorKind::ResourceBusy => StateError::InUse(journal),
        io::ErrorKind::InvalidData => StateError::Journal(journal),
        _ => error.into(),
    }
}

/// Returns `true` if the record is valid for this drive.
fn is_of(parts: &mut ServedParts, record: &Record) -> bool {
    let drive = &parts.drive;
    let fits = |offset: u64, length: u64| {
        let is_aligned = (offset | length).is_multiple_of(SECTOR_BYTES);
        is_aligned && offset.checked_add(length).is_some_and(|end| end <= drive.capacity().0)
    };
    match *record {
        Record::Change { operation, offset, length, stream, .. } => {
            let can = match operation {
                Operation::Write => true,
                Operation::Trim => drive.refuses_trim().is_none(),
                Operation::Read | Operation::Flush => false,
            };
            can && fits(offset, length) && stream.0 < drive.streams()
        }
        Record::Format(block) => LOGICAL_BLOCKS.contains(&block),
        Record::Header(_) => false,
        Record::Purge | Record::PowerUp | Record::Life(_) | Record::Error(_) => true,
    }
}

/// Repeats the recorded action on a drive without timing; returns `true`.
fn apply(parts: &mut ServedParts, record: Record) -> bool {
    match record {
        Record::Header(_) => {}
        Record::Change { operation, offset, length, stream, is_zeros } => {
            debug_assert!(offset + length <= parts.drive.capacity().0, "it was not checked");
            let request = Request::new(Tag::NONE, operation, offset, length);
            let request = Request { stream, is_zeros, ..request };
            request.commands().for_each(|command| parts.drive.fast_forward(&command));
            parts.life.count(&request);
        }
        Record::Purge => {
            parts.drive.end_fast_forward();
            parts.drive.purge();
        }
        Record::Format(block) => parts.logical_block = block,
        Record::PowerUp => {
            parts.power.cycles += 1;
            parts.power.unsafe_shutdowns += 1;
        }
        Record::Life(life) => parts.life = life,
        Record::Error(entry) => parts.errors.add(entry),
    }
    true
}
