//! The complete state of a drive, to a file and back.
//!
//! A drive is saved between two commands of the host. What it is still doing (programs, collection,
//! transfers) is part of the state, so saving disturbs nothing: a run that saves now and then is
//! the same run. The file carries the canonical device description; a state is never restored into
//! another device.

use std::io::{Read, Write};

use thiserror::Error;
use writecliff_base::codec::{CodecError, StateReader, StateWriter};

use crate::ssd::Ssd;
use crate::words::{WordReader, WordWriter};

/// Why a state cannot be restored.
#[derive(Debug, Error)]
pub enum RestoreError {
    #[error(transparent)]
    Codec(#[from] CodecError),
    #[error("the state is of another device: {0}")]
    OtherDevice(String),
}

impl Ssd {
    /// Write the state. The host has nothing outstanding.
    pub fn save<W: Write>(&self, out: W) -> Result<W, CodecError> {
        let mut out = StateWriter::new(out)?;
        out.bytes("device", self.config.canonical().as_bytes())?;
        let mut pending = WordWriter::default();
        self.save_pending(&mut pending);
        out.u64s("pending_count", &[pending.words.len() as u64])?;
        out.u64s("pending", &pending.words)?;
        self.ftl.save(&mut out)?;
        out.finish()
    }

    /// Replace the state of this drive. On an error the drive must not be used further.
    pub fn restore<R: Read>(&mut self, input: R) -> Result<(), RestoreError> {
        let mut input = StateReader::new(input)?;
        let device = input.bytes("device")?;
        let (ours, theirs) = (self.config.canonical(), String::from_utf8_lossy(&device));
        if ours != theirs {
            return Err(RestoreError::OtherDevice(first_difference(&ours, &theirs)));
        }
        let count = input.u64s("pending_count", 1)?[0];
        let words = input.u64s("pending", count as usize)?;
        let mut pending = WordReader::new(&words);
        self.restore_pending(&mut pending)?;
        pending.finish()?;
        self.ftl.restore(&mut input)?;
        Ok(())
    }
}

fn first_difference(ours: &str, theirs: &str) -> String {
    let pair = ours.lines().zip(theirs.lines()).find(|(a, b)| a != b);
    pair.map_or("it has other keys".to_owned(), |(a, b)| format!("'{b}' there, '{a}' here"))
}
