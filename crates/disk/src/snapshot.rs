//! Saves and restores the complete state of a disk between two host commands, including a media
//! access in progress.

use std::io::{Read, Write};

use writecliff_base::Nanos;
use writecliff_base::codec::CodecError;
use writecliff_base::saved_state::{self, RestoreError};
use writecliff_base::words::{WordReader, WordWriter, damaged};

use crate::disk::{Disk, HostCounters};

impl Disk {
    /// Writes the state. The host must have nothing outstanding.
    pub fn save<W: Write>(&self, out: W) -> Result<W, CodecError> {
        assert_eq!(self.outstanding(), 0);
        let mut pending = WordWriter::default();
        self.save_pending(&mut pending);
        let mut out = saved_state::begin(out, &self.config.canonical, &pending)?;
        if let Some(flash) = &self.flash {
            flash.save(&mut out)?;
        }
        out.finish()
    }

    /// Replaces the state of this disk. After an error the disk must not be used.
    pub fn restore<R: Read>(&mut self, input: R) -> Result<(), RestoreError> {
        assert_eq!(self.outstanding(), 0);
        let (mut input, words) = saved_state::open(input, &self.config.canonical)?;
        let mut pending = WordReader::new(&words);
        self.restore_pending(&mut pending)?;
        pending.finish()?;
        if let Some(flash) = &mut self.flash {
            flash.restore(&mut input)?;
        }
        Ok(input.end()?)
    }

    fn save_pending(&self, out: &mut WordWriter) {
        out.put(self.now.0);
        self.frontend.save(out);
        self.mechanics.save(out);
        self.reads.save(out);
        self.dirty.save(out);
        out.put(self.idle_since.0);
        out.put(self.write_cache);
        let host = &self.host;
        for counter in [host.write_bytes, host.read_bytes, host.cache_hits, host.flash_hits] {
            out.put(counter);
        }
        out.list(self.work.iter(), |out, (work, end)| {
            for word in Self::work_words(work) {
                out.put(word);
            }
            out.put(end.0);
        });
    }

    fn restore_pending(&mut self, input: &mut WordReader<'_>) -> Result<(), CodecError> {
        self.now = Nanos(input.get()?);
        self.frontend.restore(input)?;
        self.mechanics.restore(input)?;
        self.reads.restore(input)?;
        self.dirty.restore(input, &self.mechanics)?;
        self.idle_since = Nanos(input.get()?);
        self.write_cache = input.flag()?;
        self.host = HostCounters {
            write_bytes: input.get()?,
            read_bytes: input.get()?,
            cache_hits: input.get()?,
            flash_hits: input.get()?,
        };
        let work =
            input.list(|input| Ok([input.get()?, input.get()?, input.get()?, input.get()?]))?;
        let sectors = self.config.user_capacity.0 / writecliff_base::SECTOR_BYTES;
        if work.iter().any(|w| w[0] > w[1] || w[1] >= sectors) {
            return Err(damaged());
        }
        self.resume(work.first());
        Ok(())
    }
}
