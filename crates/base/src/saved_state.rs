//! The common start of all saved states: the description of the device, and the work in progress.

use std::io::{Read, Write};

use crate::codec::{CodecError, StateReader, StateWriter};
use thiserror::Error;

use crate::words::WordWriter;

/// Why a state cannot be restored.
#[derive(Debug, Error)]
pub enum RestoreError {
    #[error(transparent)]
    Codec(#[from] CodecError),
    #[error("the state was saved by a different device: {0}")]
    OtherDevice(String),
}

/// Begins a saved state of the drive with the canonical description `device`; the caller appends
/// further sections.
pub fn begin<W: Write>(
    out: W,
    device: &str,
    pending: &WordWriter,
) -> Result<StateWriter<W>, CodecError> {
    let mut out = StateWriter::new(out)?;
    out.bytes("device", device.as_bytes())?;
    out.u64s("pending_count", &[pending.words.len() as u64])?;
    out.u64s("pending", &pending.words)?;
    Ok(out)
}

/// Opens a saved state of the drive with the canonical description `device`; also returns the work
/// in progress as words.
pub fn open<R: Read>(input: R, device: &str) -> Result<(StateReader<R>, Vec<u64>), RestoreError> {
    let mut input = StateReader::new(input)?;
    let found = input.bytes("device")?;
    let theirs = String::from_utf8_lossy(&found);
    if device != theirs {
        return Err(RestoreError::OtherDevice(first_difference(device, &theirs)));
    }
    let count = input.u64s("pending_count", 1)?[0];
    let words = input.u64s("pending", count as usize)?;
    Ok((input, words))
}

/// The first line in which two canonical descriptions differ.
pub fn first_difference(ours: &str, theirs: &str) -> String {
    let pair = ours.lines().zip(theirs.lines()).find(|(a, b)| a != b);
    pair.map_or("its keys differ".to_owned(), |(a, b)| {
        format!("'{b}' in the state, '{a}' in this device")
    })
}
