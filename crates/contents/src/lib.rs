//! The data of a served drive: an address space of bytes that is mostly empty.
//!
//! Ranges that were never written or were deallocated read as zeros and take no space. Pages of
//! zeros are not stored either. Data live in memory ([`Contents::in_memory`]) or in a sparse file
//! ([`Contents::in_file`]); either can be saved to and restored from one portable form.
//!
//! | file | content |
//! |---|---|
//! | `memory.rs` | pages in memory, optionally compressed, up to a limit |
//! | `file.rs` | the same in a sparse file |
//! | `saved.rs` | saving and restoring; a copy of contents in memory that outlives the process |
//! | `undo.rs` | changes that a power cut may undo |
//!
//! This crate handles addresses and bytes, independent of their owner.

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

/// Size of a page, the allocation unit.
const PAGE_BYTES: usize = SLOT_BYTES as usize;
type PageData = [u8; PAGE_BYTES];
const ZEROS: PageData = [0; PAGE_BYTES];

/// Error of reading or writing data.
#[derive(Debug, Error)]
pub enum ContentsError {
    /// Offset and length of a range that ends beyond the capacity.
    #[error("{length} bytes at {offset} are not within the {capacity} bytes of the contents")]
    #[allow(missing_docs, reason = "all in bytes")]
    OutOfRange { offset: u64, length: u64, capacity: u64 },
    /// Memory limit that the write would exceed.
    #[error("the data exceed the memory limit of {0}: raise it, or keep the data in a file")]
    Full(Bytes),
    /// The contents accept no writes.
    #[error("the drive is read-only")]
    WriteProtected,
    /// Error of the file that holds the contents.
    #[error("contents file: {0}")]
    Io(#[from] io::Error),
}

/// An address space of bytes.
pub struct Contents {
    capacity: Bytes,
    store: Store,
    /// A copy that survives the process; see [`Contents::mirror_to`].
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
        let store = Store::Memory(memory::Memory::new(capacity, options));
        Self { capacity, store, mirror: None, undo: None }
    }

    /// Opens contents in a sparse file, which is created if it does not exist. An existing file
    /// keeps its data; it must have the size of the contents.
    pub fn in_file(capacity: Bytes, path: &Path) -> Result<Self, ContentsError> {
        let store = Store::File(file::SparseFile::open(capacity, path)?);
        Ok(Self { capacity, store, mirror: None, undo: None })
    }

    /// Returns `true` if the data are in memory, `false` if in a file.
    pub fn is_in_memory(&self) -> bool {
        matches!(self.store, Store::Memory(_))
    }

    /// Returns the size of the address space.
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

    /// Writes `data` at `offset`. After an error any part of it may have been written.
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

    /// Makes a range read as zeros and frees the pages that it covers.
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

    /// Returns the memory that data and tables occupy, or the space that the file occupies.
    pub fn used(&self) -> Result<Bytes, ContentsError> {
        match &self.store {
            Store::Memory(memory) => Ok(memory.used()),
            Store::File(file) => Ok(file.used()?),
        }
    }

    /// Makes written data survive a crash of this machine. Contents in memory do not.
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

    /// Passes every page that is not all zeros, in order of address; the last one may be short.
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

/// Returns the parts of a range by page: page number, offset in the page, and position in the
/// range.
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
