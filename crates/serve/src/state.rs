//! State files of served drives: the drive's state, then the contents, then where these begin.
//!
//! ```text
//! state of the drive              as `writecliff_base::codec`
//! contents                        the same; nothing for contents in a file of their own
//! offset of the contents u64      0 for none
//! "WCSERVE1"                      8 bytes
//! ```
//!
//! The state of a drive alone, as runs keep it, is a state file without contents.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;
use writecliff_base::codec::CodecError;
use writecliff_base::saved_state::RestoreError;
use writecliff_contents::{Contents, SavedError};
use writecliff_runner::AnyDrive;

use crate::served::ServedParts;

const MAGIC: &[u8; 8] = b"WCSERVE1";
const TRAILER_BYTES: u64 = 16;
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
    out.write_all(&begin.to_le_bytes())?;
    out.write_all(MAGIC)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    Ok(parts.contents.sync().map_err(SavedError::from)?)
}

/// Brings a new drive and its contents to a saved state.
pub fn restore(
    drive: &mut AnyDrive,
    contents: &mut Contents,
    path: &Path,
) -> Result<(), StateError> {
    let mut file = File::open(path)?;
    let begin = contents_begin(&mut file)?;
    file.rewind()?;
    drive.restore(BufReader::with_capacity(BUFFER_BYTES, &file))?;
    if begin == 0 {
        return Ok(());
    }
    if !contents.is_in_memory() {
        return Err(StateError::TwoContents);
    }
    file.seek(SeekFrom::Start(begin))?;
    Ok(contents.restore(BufReader::with_capacity(BUFFER_BYTES, &file))?)
}

/// Where the contents begin; 0 for a state without.
fn contents_begin(file: &mut File) -> io::Result<u64> {
    if file.metadata()?.len() < TRAILER_BYTES {
        return Ok(0);
    }
    file.seek(SeekFrom::End(-(TRAILER_BYTES as i64)))?;
    let mut trailer = [0; TRAILER_BYTES as usize];
    file.read_exact(&mut trailer)?;
    let [begin, magic] = [0, 8].map(|at| *trailer[at..].first_chunk::<8>().expect("of 16 bytes"));
    Ok(if &magic == MAGIC { u64::from_le_bytes(begin) } else { 0 })
}
