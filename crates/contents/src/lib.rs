//! Data of a served drive: a byte address space that is mostly empty.
//!
//! Ranges that were never written or were deallocated read as zeros and occupy no space. Pages of
//! zeros are not stored. The data are stored in memory ([`Contents::in_memory`]) or in a sparse
//! file ([`Contents::in_file`]). Both types share one portable saved form.
//!
//! This crate handles addresses and bytes, independent of the drive that uses the data.

mod file;
mod memory;
mod saved;
mod undo;

use std::io;
use std::path::Path;

use thiserror::Error;
use writecliff_base::{Bytes, SLOT_BYTES};

pub use memory::MemoryOptions;
pub use saved::SavedError;
pub use undo::{Loses, Lost, LostPage};

/// Page size in bytes; a page is the allocation unit.
const PAGE_BYTES: usize = SLOT_BYTES as usize;
type PageData = [u8; PAGE_BYTES];
const ZEROS: PageData = [0; PAGE_BYTES];

/// Error while reading or writing data.
#[derive(Debug, Error)]
pub enum ContentsError {
    /// Offset and length of a range that extends beyond the capacity.
    #[error("the range of {length} bytes at {offset} exceeds the capacity of {capacity} bytes")]
    #[allow(missing_docs, reason = "offset, length and capacity in bytes")]
    OutOfRange { offset: u64, length: u64, capacity: u64 },
    /// Memory limit that the write would exceed.
    #[error(
        "the data exceed the memory limit of {0}: raise the limit, or store the data in a file"
    )]
    Full(Bytes),
    /// The contents do not accept writes.
    #[error("the drive is read-only")]
    WriteProtected,
    /// Error of the file that stores the contents.
    #[error("contents file: {0}")]
    Io(#[from] io::Error),
}

/// Address space of bytes.
pub struct Contents {
    capacity: Bytes,
    store: Store,
    /// Copy that survives the process; see [`Contents::mirror_to`].
    mirror: Option<file::SparseFile>,
    undo: Option<undo::Undo>,
}

enum Store {
    Memory(memory::Memory),
    File(file::SparseFile),
}

impl Contents {
    /// Creates empty contents in memory.
    pub fn in_memory(capacity: Bytes, options: MemoryOptions) -> Self {
        let store = Store::Memory(memory::Memory::new(options));
        Self { capacity, store, mirror: None, undo: None }
    }

    /// Opens contents in a sparse file, which is created if it does not exist. An existing file
    /// retains its data; its size must equal the size of the contents.
    pub fn in_file(capacity: Bytes, path: &Path) -> Result<Self, ContentsError> {
        let store = Store::File(file::SparseFile::open(capacity, path)?);
        Ok(Self { capacity, store, mirror: None, undo: None })
    }

    /// Returns `true` if the data are in memory, `false` if they are in a file.
    pub fn is_in_memory(&self) -> bool {
        matches!(self.store, Store::Memory(_))
    }

    /// Returns the address space size in bytes.
    pub fn capacity(&self) -> Bytes {
        self.capacity
    }

    /// Reads `into.len()` bytes at `offset`.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), ContentsError> {
        self.check(offset, into.len() as u64)?;
        match &self.store {
            Store::Memory(memory) => memory.read(offset, into),
            Store::File(file) => file.read(offset, into)?,
        }
        Ok(())
    }

    /// Writes `data` at `offset`. After an error, any portion of the range may have been written.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), ContentsError> {
        self.check(offset, data.len() as u64)?;
        self.before_change(offset, data.len() as u64)?;
        match &mut self.store {
            Store::Memory(memory) => memory.write(offset, data)?,
            Store::File(file) => file.write(offset, data)?,
        }
        self.mirror.as_ref().map_or(Ok(()), |mirror| mirror.write(offset, data))?;
        Ok(())
    }

    /// Deallocates a range: it reads as zeros afterwards, and pages inside it are freed.
    pub fn deallocate(&mut self, offset: u64, length: u64) -> Result<(), ContentsError> {
        self.check(offset, length)?;
        self.before_change(offset, length)?;
        match &mut self.store {
            Store::Memory(memory) => memory.deallocate(offset, length)?,
            Store::File(file) => file.deallocate(offset, length)?,
        }
        self.mirror.as_ref().map_or(Ok(()), |mirror| mirror.deallocate(offset, length))?;
        Ok(())
    }

    /// Returns the memory or file space that the data and tables occupy, in bytes.
    pub fn used(&self) -> Result<Bytes, ContentsError> {
        match &self.store {
            Store::Memory(memory) => Ok(memory.used()),
            Store::File(file) => Ok(file.used()?),
        }
    }

    /// Writes data in a file to stable storage, so that they survive a crash of the machine.
    /// Contents in memory are not made durable.
    pub fn sync(&self) -> Result<(), ContentsError> {
        match &self.store {
            Store::Memory(_) => Ok(()),
            Store::File(file) => Ok(file.sync()?),
        }
    }

    fn check(&self, offset: u64, length: u64) -> Result<(), ContentsError> {
        if offset.checked_add(length).is_some_and(|end| end <= self.capacity.0) {
            return Ok(());
        }
        Err(ContentsError::OutOfRange { offset, length, capacity: self.capacity.0 })
    }

    /// Returns the offset of a page and its length, which is shorter at the end of the contents.
    fn range_of(&self, page: u64) -> (u64, usize) {
        let offset = page * PAGE_BYTES as u64;
        debug_assert!(offset < self.capacity.0, "a page beyond the contents");
        (offset, (self.capacity.0 - offset).min(PAGE_BYTES as u64) as usize)
    }

    /// Writes a page; `None` is a page of zeros.
    fn put_page(&mut self, page: u64, data: Option<&PageData>) -> Result<(), ContentsError> {
        let (offset, length) = self.range_of(page);
        match data {
            Some(data) => self.write(offset, &data[..length]),
            None => self.deallocate(offset, length as u64),
        }
    }

    /// Passes every page that is not all zeros, in address order; the last page may be shorter.
    fn each_page<E: From<ContentsError>>(
        &self,
        mut take: impl FnMut(u64, &PageData) -> Result<(), E>,
    ) -> Result<(), E> {
        match &self.store {
            Store::Memory(memory) => memory.each_page(&mut take),
            Store::File(file) => file.each_page(&mut take),
        }
    }
}

/// Splits the range at page boundaries and returns, for each piece, the page number, the offset in
/// the page and the position in the range.
fn pages(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at == length {
            return None;
        }
        let address = offset + at as u64;
        let within = (address % PAGE_BYTES as u64) as usize;
        let end = length.min(at + PAGE_BYTES - within);
        debug_assert!(at < end && within + (end - at) <= PAGE_BYTES, "a part of one page");
        let part = (address / PAGE_BYTES as u64, within, at..end);
        at = end;
        Some(part)
    })
}

#[cfg(test)]
mod tests;
