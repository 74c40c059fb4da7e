//! Saves and restores the complete state of a drive.
//!
//! A drive is saved between two host commands. Work in progress (programs, GC, transfers) is part
//! of the state, so saving does not change the run. The file contains the canonical device
//! description, and a state cannot be restored into a different device.

use std::io::{Read, Write};

use writecliff_base::codec::CodecError;
use writecliff_base::saved_state;

use crate::ssd::Ssd;
use writecliff_base::words::{WordReader, WordWriter};

pub use writecliff_base::saved_state::RestoreError;

impl Ssd {
    /// Writes the state. The host must have nothing outstanding.
    pub fn save<W: Write>(&self, out: W) -> Result<W, CodecError> {
        let mut pending = WordWriter::default();
        self.save_pending(&mut pending);
        let mut out = saved_state::begin(out, &self.config.canonical, &pending)?;
        self.ftl.save(&mut out)?;
        out.finish()
    }

    /// Replaces the state of this drive. After an error the drive must not be used.
    pub fn restore<R: Read>(&mut self, input: R) -> Result<(), RestoreError> {
        let (mut input, words) = saved_state::open(input, &self.config.canonical)?;
        let mut pending = WordReader::new(&words);
        self.restore_pending(&mut pending)?;
        pending.finish()?;
        self.ftl.restore(&mut input)?;
        if let Some(ecc) = &mut self.backend.ecc {
            ecc.take_wear(self.ftl.wear());
        }
        Ok(())
    }
}
