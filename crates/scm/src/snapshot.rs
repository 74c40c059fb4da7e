//! Saves and restores the complete state of a drive between two host commands: clocks and counters.

use std::io::{Read, Write};

use writecliff_base::Nanos;
use writecliff_base::codec::CodecError;
use writecliff_base::saved_state::{self, RestoreError};
use writecliff_base::words::{WordReader, WordWriter, damaged};

use crate::media::MediaCounters;
use crate::scm::{HostCounters, Scm};

impl Scm {
    /// Writes the state. The host must have nothing outstanding.
    pub fn save<W: Write>(&self, out: W) -> Result<W, CodecError> {
        assert_eq!(self.outstanding(), 0);
        let mut pending = WordWriter::default();
        pending.put(self.now.0);
        self.frontend.save(&mut pending);
        let media = &self.media.counters;
        pending.counts([self.host.write_bytes, self.host.read_bytes]);
        pending.counts([media.write_bytes, media.read_bytes, media.partial_units]);
        saved_state::begin(out, &self.config.canonical, &pending)?.finish()
    }

    /// Replaces the state of this drive. After an error the drive must not be used.
    pub fn restore<R: Read>(&mut self, input: R) -> Result<(), RestoreError> {
        assert_eq!(self.outstanding(), 0);
        let (input, words) = saved_state::open(input, &self.config.canonical)?;
        let mut pending = WordReader::new(&words);
        let now = Nanos(pending.get()?);
        self.frontend.restore(&mut pending)?;
        let [write_bytes, read_bytes] = pending.counts()?;
        let [media_write_bytes, media_read_bytes, partial_units] = pending.counts()?;
        pending.finish()?;
        if media_write_bytes < write_bytes {
            return Err(damaged().into());
        }
        self.now = now;
        self.host = HostCounters { write_bytes, read_bytes };
        self.media.reset(MediaCounters {
            write_bytes: media_write_bytes,
            read_bytes: media_read_bytes,
            partial_units,
        });
        Ok(input.end()?)
    }
}
