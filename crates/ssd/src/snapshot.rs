//! The complete state of a drive, to a file and back.
//!
//! A drive is saved when it is quiet: nothing on its way, only state. The file carries the canonical
//! device description; a state is never restored into another device.

use std::io::{Read, Write};

use thiserror::Error;
use writecliff_base::Nanos;
use writecliff_base::codec::{CodecError, StateReader, StateWriter};

use crate::ssd::Ssd;

/// Why a state cannot be restored.
#[derive(Debug, Error)]
pub enum RestoreError {
    #[error(transparent)]
    Codec(#[from] CodecError),
    #[error("the state is of another device: {0}")]
    OtherDevice(String),
}

impl Ssd {
    /// Write the state. Quiesces the drive first.
    pub fn save<W: Write>(&mut self, out: W) -> Result<W, CodecError> {
        self.quiesce();
        let mut out = StateWriter::new(out)?;
        out.bytes("device", self.config.canonical().as_bytes())?;
        let clock = [self.backend.now.0, self.host_read_bytes, u64::from(self.write_cache)];
        out.u64s("drive", &clock)?;
        self.ftl.save(&mut out)?;
        out.finish()
    }

    /// Replace the state of this drive. On an error the drive must not be used further.
    pub fn restore<R: Read>(&mut self, input: R) -> Result<(), RestoreError> {
        self.quiesce();
        let mut input = StateReader::new(input)?;
        let device = input.bytes("device")?;
        let (ours, theirs) = (self.config.canonical(), String::from_utf8_lossy(&device));
        if ours != theirs {
            return Err(RestoreError::OtherDevice(first_difference(&ours, &theirs)));
        }
        let drive = input.u64s("drive", 3)?;
        self.ftl.restore(&mut input)?;
        self.restart_at(Nanos(drive[0]));
        self.host_read_bytes = drive[1];
        self.write_cache = drive[2] == 1;
        self.resynchronise_buffer();
        Ok(())
    }
}

fn first_difference(ours: &str, theirs: &str) -> String {
    let pair = ours.lines().zip(theirs.lines()).find(|(a, b)| a != b);
    pair.map_or("it has other keys".to_owned(), |(a, b)| format!("'{b}' there, '{a}' here"))
}
