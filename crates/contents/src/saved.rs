//! Saved contents: the pages with data, in batches that are sections of the state codec. A copy of
//! in-memory contents in a sparse file receives every change.
//!
//! Data written to the file are in the kernel's page cache, so the copy survives a crash of the
//! process but not of the machine.
//!
//! The saved form does not depend on the storage type: memory can be restored to a file, or back.

use std::io::{Read, Write};
use std::path::Path;

use thiserror::Error;
use writecliff_base::codec::{CodecError, StateReader, StateWriter};

use crate::file::SparseFile;
use crate::{Contents, ContentsError, PAGE_BYTES, PageData};

/// Pages per batch; a batch is held in memory while it is packed.
const BATCH_PAGES: usize = 1024;

/// Error while saving or restoring contents.
#[derive(Debug, Error)]
pub enum SavedError {
    /// The file is not an undamaged saved state.
    #[error("saved contents: {0}")]
    Codec(#[from] CodecError),
    /// The contents have a different size.
    #[error("saved contents have {actual} bytes, but the drive has {expected}")]
    #[allow(missing_docs, reason = "capacities in bytes")]
    Capacity { actual: u64, expected: u64 },
    /// The contents could not be read or written.
    #[error(transparent)]
    Contents(#[from] ContentsError),
}

struct Batch<W: Write> {
    out: StateWriter<W>,
    numbers: Vec<u8>,
    data: Vec<u8>,
}

impl<W: Write> Batch<W> {
    fn write(&mut self) -> Result<(), CodecError> {
        assert_eq!(
            self.numbers.len() / size_of::<u64>() * PAGE_BYTES,
            self.data.len(),
            "`restore` expects a number for each page"
        );
        self.out.bytes("pages", &self.numbers)?;
        self.out.bytes("data", &self.data)?;
        self.numbers.clear();
        self.data.clear();
        Ok(())
    }
}

fn damaged() -> SavedError {
    SavedError::Codec(CodecError::Damaged("pages".to_owned()))
}

impl Contents {
    /// Writes all data.
    pub fn save<W: Write>(&self, out: W) -> Result<W, SavedError> {
        let mut out = StateWriter::new(out)?;
        out.u64s("contents", &[self.capacity.0])?;
        let mut batch = Batch { out, numbers: Vec::new(), data: Vec::new() };
        self.each_page(|number, page| -> Result<(), SavedError> {
            batch.numbers.extend(number.to_le_bytes());
            batch.data.extend(page);
            if batch.numbers.len() == BATCH_PAGES * size_of::<u64>() {
                batch.write()?;
            }
            Ok(())
        })?;
        if !batch.numbers.is_empty() {
            batch.write()?;
        }
        batch.write()?; // A batch without pages marks the end.
        Ok(batch.out.finish()?)
    }

    /// Replaces all data with the saved data. After an error, the contents are incomplete.
    pub fn restore<R: Read>(&mut self, input: R) -> Result<(), SavedError> {
        let mut input = StateReader::new(input)?;
        let actual = input.u64s("contents", 1)?[0];
        if actual != self.capacity.0 {
            return Err(SavedError::Capacity { actual, expected: self.capacity.0 });
        }
        self.deallocate(0, self.capacity.0)?;
        loop {
            let (numbers, data) = (input.bytes("pages")?, input.bytes("data")?);
            if numbers.is_empty() {
                return Ok(input.end()?);
            }
            let (numbers, []) = numbers.as_chunks::<8>() else { return Err(damaged()) };
            let (pages, []) = data.as_chunks::<PAGE_BYTES>() else { return Err(damaged()) };
            if numbers.len() != pages.len() {
                return Err(damaged());
            }
            for (&number, page) in numbers.iter().zip(pages) {
                let number = u64::from_le_bytes(number);
                if number >= self.capacity.0.div_ceil(PAGE_BYTES as u64) {
                    return Err(damaged());
                }
                self.put_page(number, Some(page))?;
            }
        }
    }

    /// Copies all data to the file at `path`, which is replaced, and mirrors every later change.
    pub fn mirror_to(&mut self, path: &Path) -> Result<(), ContentsError> {
        let mirror = SparseFile::create(self.capacity, path)?;
        self.each_page(|number, page| -> Result<(), ContentsError> {
            let (offset, length) = self.range_of(number);
            Ok(mirror.write(offset, &page[..length])?)
        })?;
        self.mirror = Some(mirror);
        Ok(())
    }

    /// Replaces all data with those in the file at `path`, and mirrors every later change to it.
    pub fn restore_mirror(&mut self, path: &Path) -> Result<(), ContentsError> {
        self.mirror = None;
        self.deallocate(0, self.capacity.0)?;
        let mirror = SparseFile::open(self.capacity, path)?;
        mirror.each_page(&mut |number, page: &PageData| self.put_page(number, Some(page)))?;
        self.mirror = Some(mirror);
        Ok(())
    }
}
