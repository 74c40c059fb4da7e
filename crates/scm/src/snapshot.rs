//! Saves and restores the complete state of a drive between two host commands: clocks and counters.

use std::io::{Read, Write};

use writecliff_base::codec::CodecError;
use writecliff_base::saved;
use writecliff_base::saved_state::{self, RestoreError};

use crate::scm::Scm;

saved! { Scm { core, host, media } check is_possible }

impl Scm {
    /// Writes the state. The host must have nothing outstanding.
    pub fn save<W: Write>(&self, out: W) -> Result<W, CodecError> {
        assert_eq!(self.core.outstanding(), 0);
        saved_state::begin(out, &self.config.canonical, self)?.finish()
    }

    /// Replaces the state of this drive. After an error the drive must not be used.
    pub fn restore<R: Read>(&mut self, input: R) -> Result<(), RestoreError> {
        assert_eq!(self.core.outstanding(), 0);
        let canonical = self.config.canonical.clone();
        Ok(saved_state::open(input, &canonical, self)?.end()?)
    }

    fn is_possible(&mut self) -> bool {
        self.media.counters.write_bytes >= self.host.write_bytes
    }
}
