//! State files of served drives.
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
use std::path::{Path, PathBuf};

use thiserror::Error;
use writecliff_base::codec::{CodecError, StateReader, StateWriter};
use writecliff_base::saved_state::RestoreError;
use writecliff_contents::SavedError;
use writecliff_nvme::ErrorLog;

mod sessions;

pub use sessions::{close, open};

use crate::life::Life;
use crate::served::{LOGICAL_BLOCKS, PowerHistory, ServedParts};

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
        "the state has version {0:?}, which this program does not support: create the state \
        again"
    )]
    Version(char),
    /// Logical block size in bytes that is not in [`crate::LOGICAL_BLOCKS`].
    #[error(
        "the state is damaged: it has {0}-byte logical blocks, but drives have 512 or 4096 bytes"
    )]
    LogicalBlock(u64),
    /// Address of the server that has locked the state.
    #[error("another server uses the state; its address is {0}")]
    InUse(String),
    /// Path of a journal with invalid checksums.
    #[error("{0} is damaged: remove it to continue with the last saved state")]
    Journal(String),
}

/// Writes a state file; an existing file is replaced once the new file is complete.
pub fn save(parts: &ServedParts, path: &Path) -> Result<(), StateError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    let part = PathBuf::from(name);
    let written = write(parts, &part).and_then(|()| Ok(fs::rename(&part, path)?));
    if written.is_err() {
        let _ = fs::remove_file(&part); // the first error is reported
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
