//! Saves and restores the complete state of a disk between two host commands, including a media
//! access in progress.

use std::io::{Read, Write};

use writecliff_base::codec::CodecError;
use writecliff_base::saved;
use writecliff_base::saved_state::{self, RestoreError};

use crate::disk::Disk;

saved! {
    Disk { core, mechanics, reads, dirty, idle_since, write_cache, host, work } check resume
}

impl Disk {
    /// Writes the state. The host must have nothing outstanding.
    pub fn save<W: Write>(&self, out: W) -> Result<W, CodecError> {
        assert_eq!(self.core.outstanding(), 0);
        let mut out = saved_state::begin(out, &self.config.canonical, self)?;
        if let Some(flash) = &self.flash {
            flash.save(&mut out)?;
        }
        out.finish()
    }

    /// Replaces the state of this disk. After an error the disk must not be used.
    pub fn restore<R: Read>(&mut self, input: R) -> Result<(), RestoreError> {
        assert_eq!(self.core.outstanding(), 0);
        let canonical = self.config.canonical.clone();
        let mut input = saved_state::open(input, &canonical, self)?;
        if let Some(flash) = &mut self.flash {
            flash.restore(&mut input)?;
        }
        Ok(input.end()?)
    }
}
