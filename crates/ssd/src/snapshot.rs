//! The complete state of a drive, to a file and back.
//!
//! A drive is saved between two commands of the host. What it is still doing (programs, GC,
//! transfers) is part of the state, so saving disturbs nothing: a run that saves now and then is
//! the same run. The file carries the canonical device description; a state is never restored into
//! another device.

use std::io::{Read, Write};

use writecliff_base::codec::CodecError;
use writecliff_base::saved_state;

use crate::ssd::Ssd;
use writecliff_base::words::{WordReader, WordWriter};

pub use writecliff_base::saved_state::RestoreError;

impl Ssd {
    /// Write the state. The host has nothing outstanding.
    pub fn save<W: Write>(&self, out: W) -> Result<W, CodecError> {
        let mut pending = WordWriter::default();
        self.save_pending(&mut pending);
        let mut out = saved_state::begin(out, &self.config.canonical, &pending)?;
        self.ftl.save(&mut out)?;
        out.finish()
    }

    /// Replace the state of this drive. On an error the drive must not be used further.
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
