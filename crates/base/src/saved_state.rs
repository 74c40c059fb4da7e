//! Common header of all saved states: the device description and the work in progress.

use std::io::{Read, Write};

use crate::codec::{CodecError, StateReader, StateWriter};
use thiserror::Error;

use crate::fields::{Impossible, Saved};

/// Error while restoring a state.
#[derive(Debug, Error)]
pub enum RestoreError {
    /// The input is not an undamaged state of this version.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// First difference between the two device descriptions.
    #[error("the state was saved by a different device: {0}")]
    OtherDevice(String),
}

impl From<Impossible> for RestoreError {
    fn from(_: Impossible) -> Self {
        CodecError::Impossible("pending".to_owned()).into()
    }
}

/// Starts a saved state of the drive that `device` describes; the caller appends more sections.
pub fn begin<W: Write>(
    out: W,
    device: &str,
    pending: &impl Saved,
) -> Result<StateWriter<W>, CodecError> {
    let mut out = StateWriter::new(out)?;
    out.bytes("device", device.as_bytes())?;
    out.fields("pending", pending)?;
    Ok(out)
}

/// Opens a saved state of the drive that `device` describes and restores the work in progress.
pub fn open<R: Read>(
    input: R,
    device: &str,
    pending: &mut impl Saved,
) -> Result<StateReader<R>, RestoreError> {
    let mut input = StateReader::new(input)?;
    let description = input.bytes("device")?;
    let theirs = String::from_utf8_lossy(&description);
    if device != theirs {
        return Err(RestoreError::OtherDevice(first_difference(device, &theirs)));
    }
    input.fields("pending", pending)?;
    Ok(input)
}

/// Returns the first line where two canonical descriptions differ.
pub fn first_difference(ours: &str, theirs: &str) -> String {
    let pair = ours.lines().zip(theirs.lines()).find(|(a, b)| a != b);
    pair.map_or("its keys differ".to_owned(), |(a, b)| {
        format!("'{b}' in the state, '{a}' in this device")
    })
}
