//! State files of served drives: the drive's state, then the contents, then where these begin.
//!
//! ```text
//! state of the drive              as `writecliff_base::codec`
//! contents                        the same; nothing for contents in a file of their own
//! error log                       64 entries of 64 bytes, newest first; zeros where there is none
//! errors u64                      in the controller's life
//! life                            five u64, see `Life`
//! power-ups u64                   with those of them that no shutdown came before: SMART's
//! unsafe shutdowns u64            power cycles and unsafe shutdowns
//! size of a logical block u64     in bytes
//! offset of the contents u64      0 for none
//! "WCSERVE4"                      8 bytes
//! ```
//!
//! A state that a run saved contains only the state of the drive. A server reads it as a state file
//! without contents: the size of a logical block and the power-ups are those of a new drive, and
//! the life follows from the drive's counters.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;
use writecliff_base::Bytes;
use writecliff_base::codec::CodecError;
use writecliff_base::saved_state::RestoreError;
use writecliff_contents::SavedError;
use writecliff_nvme::ErrorLog;
use writecliff_nvme::error_log::{ENTRIES_MAX, ENTRY_BYTES};

mod sessions;

pub use sessions::{close, open};

use crate::life::Life;
use crate::served::{LOGICAL_BLOCKS, PowerHistory, ServedParts};

const MAGIC: &[u8; 7] = b"WCSERVE";
const VERSION: u8 = b'4';
/// Size of the trailer: size of a logical block, offset of the contents, magic and version.
const TRAILER_BYTES: usize = 24;
/// Size of the fields before the trailer: error log, number of errors, life, power-ups and unsafe
/// shutdowns.
const HISTORY_BYTES: usize = ENTRY_BYTES * ENTRIES_MAX + 8 * (1 + Life::WORDS + 2);
const BUFFER_BYTES: usize = 1 << 20;

/// Why a state file cannot be written or read.
#[derive(Debug, Error)]
pub enum StateError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Saving(#[from] CodecError),
    #[error(transparent)]
    Drive(#[from] RestoreError),
    #[error(transparent)]
    Contents(#[from] SavedError),
    #[error("the state has contents, but those of the drive are in a file of their own")]
    TwoContents,
    #[error("the state is of version {0:?}, which this version of writecliff does not know")]
    Version(char),
    #[error("the state says blocks of {0} bytes, which no drive has: the file is damaged")]
    LogicalBlock(u64),
    #[error("another server uses the state, with {0}")]
    InUse(String),
    #[error("{0} is damaged: remove it to go on with the state as it was saved last")]
    Journal(String),
}

/// Writes a state file; a file that is there is replaced when the new one is complete.
pub fn save(parts: &ServedParts, path: &Path) -> Result<(), StateError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    let part = PathBuf::from(name);
    let written = write(parts, &part).and_then(|()| Ok(fs::rename(&part, path)?));
    if written.is_err() {
        let _ = fs::remove_file(&part); // the first error is the one to report
    }
    written
}

fn write(parts: &ServedParts, path: &Path) -> Result<(), StateError> {
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, File::create(path)?);
    out = parts.drive.save(out)?;
    let mut begin = 0;
    if parts.contents.is_in_memory() {
        begin = out.stream_position()?;
        out = parts.contents.save(out)?;
    }
    write_errors(&parts.errors, &mut out)?;
    for word in parts.life.to_words() {
        out.write_all(&word.to_le_bytes())?;
    }
    out.write_all(&parts.power.cycles.to_le_bytes())?;
    out.write_all(&parts.power.unsafe_shutdowns.to_le_bytes())?;
    out.write_all(&parts.logical_block.0.to_le_bytes())?;
    out.write_all(&begin.to_le_bytes())?;
    out.write_all(MAGIC)?;
    out.write_all(&[VERSION])?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    Ok(parts.contents.sync().map_err(SavedError::from)?)
}

fn write_errors(errors: &ErrorLog, out: &mut impl Write) -> io::Result<()> {
    let mut page = [[0; ENTRY_BYTES]; ENTRIES_MAX];
    for (slot, entry) in page.iter_mut().zip(errors.entries()) {
        *slot = *entry;
    }
    out.write_all(page.as_flattened())?;
    out.write_all(&errors.count().to_le_bytes())
}

/// Brings a new drive and its contents to a saved state.
pub fn restore(parts: &mut ServedParts, path: &Path) -> Result<(), StateError> {
    let begin = restore_drive(parts, path)?;
    restore_contents(parts, path, begin)
}

/// Brings all but the contents to a saved state; returns where these begin, or 0.
fn restore_drive(parts: &mut ServedParts, path: &Path) -> Result<u64, StateError> {
    let mut file = File::open(path)?;
    let trailer = trailer(&mut file)?;
    file.rewind()?;
    parts.drive.restore(BufReader::with_capacity(BUFFER_BYTES, &file))?;
    parts.logical_block = trailer.logical_block;
    parts.power = trailer.power;
    let lived = trailer.lived;
    (parts.life, parts.errors) =
        lived.unwrap_or_else(|| (Life::before(&parts.drive), ErrorLog::default()));
    Ok(trailer.contents_begin)
}

fn restore_contents(parts: &mut ServedParts, path: &Path, begin: u64) -> Result<(), StateError> {
    if begin == 0 {
        return Ok(());
    }
    if !parts.contents.is_in_memory() {
        return Err(StateError::TwoContents);
    }
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(begin))?;
    Ok(parts.contents.restore(BufReader::with_capacity(BUFFER_BYTES, &file))?)
}

/// What the end of a state file says.
struct Trailer {
    logical_block: Bytes,
    /// Where the contents begin; 0 for a state without.
    contents_begin: u64,
    power: PowerHistory,
    /// Life and error log; `None` if the file contains only the state of the drive.
    lived: Option<(Life, ErrorLog)>,
}

fn trailer(file: &mut File) -> Result<Trailer, StateError> {
    let power = PowerHistory::default();
    let logical_block = LOGICAL_BLOCKS[0];
    let alone = Trailer { logical_block, contents_begin: 0, power, lived: None };
    if file.metadata()?.len() < TRAILER_BYTES as u64 {
        return Ok(alone);
    }
    file.seek(SeekFrom::End(-(TRAILER_BYTES as i64)))?;
    let mut bytes = [0; TRAILER_BYTES];
    file.read_exact(&mut bytes)?;
    let number = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("of 24 bytes"));
    let [magic @ .., version] = bytes[16..].first_chunk::<8>().expect("the last of 24 bytes");
    if magic != MAGIC {
        return Ok(alone);
    }
    if *version != VERSION {
        return Err(StateError::Version(char::from(*version)));
    }
    let logical_block = Bytes(number(0));
    if !LOGICAL_BLOCKS.contains(&logical_block) {
        return Err(StateError::LogicalBlock(logical_block.0));
    }
    let (lived, power) = history(file)?;
    Ok(Trailer { logical_block, contents_begin: number(8), power, lived: Some(lived) })
}

fn history(file: &mut File) -> Result<((Life, ErrorLog), PowerHistory), StateError> {
    file.seek(SeekFrom::End(-((TRAILER_BYTES + HISTORY_BYTES) as i64)))?;
    let mut page = [[0; ENTRY_BYTES]; ENTRIES_MAX];
    file.read_exact(page.as_flattened_mut())?;
    let mut bytes = [[0; 8]; 1 + Life::WORDS + 2];
    file.read_exact(bytes.as_flattened_mut())?;
    let [count, life @ .., cycles, unsafe_shutdowns] = bytes.map(u64::from_le_bytes);
    let entries = page.into_iter().filter(|entry| entry[..8] != [0; 8]);
    let lived = (Life::from_words(life), ErrorLog::saved(count, entries));
    Ok((lived, PowerHistory { cycles, unsafe_shutdowns }))
}
