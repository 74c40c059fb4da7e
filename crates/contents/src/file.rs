//! Pages in a sparse file: the file system tracks which ranges hold data.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::Errno;
use writecliff_base::Bytes;

use crate::{ContentsError, PAGE_BYTES, PageData, ZEROS};

/// Unit of `st_blocks` in bytes (stat(3type)).
const STAT_BLOCK_BYTES: u64 = 512;

pub(crate) struct SparseFile {
    file: File,
    length: u64,
}

impl SparseFile {
    pub(crate) fn open(capacity: Bytes, path: &Path) -> io::Result<Self> {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let length = file.metadata()?.len();
        if length == 0 {
            file.set_len(capacity.0)?;
        } else if length != capacity.0 {
            let message = format!(
                "{} has {length} bytes, but the drive has {}; use a new file",
                path.display(),
                capacity.0
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        Ok(Self { file, length: capacity.0 })
    }

    /// Creates an empty file, replacing an existing file.
    pub(crate) fn create(capacity: Bytes, path: &Path) -> io::Result<Self> {
        File::create(path)?;
        Self::open(capacity, path)
    }

    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        debug_assert!(offset + into.len() as u64 <= self.length, "see `Contents::check`");
        self.file.read_exact_at(into, offset)
    }

    pub(crate) fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        debug_assert!(offset + data.len() as u64 <= self.length, "see `Contents::check`");
        self.file.write_all_at(data, offset)
    }

    pub(crate) fn deallocate(&self, offset: u64, length: u64) -> io::Result<()> {
        if length == 0 {
            return Ok(());
        }
        debug_assert!(offset + length <= self.length, "see `Contents::check`");
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(fallocate(&self.file, hole, offset, length)?)
    }

    pub(crate) fn used(&self) -> io::Result<Bytes> {
        Ok(Bytes(self.file.metadata()?.blocks() * STAT_BLOCK_BYTES))
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Returns the next position of data or a hole, if any; nothing else uses the file's position.
    fn seek(&self, to: SeekFrom) -> io::Result<Option<u64>> {
        match seek(&self.file, to) {
            Err(Errno::NXIO) => Ok(None),
            position => Ok(Some(position?)),
        }
    }

    pub(crate) fn each_page<E: From<ContentsError>>(
        &self,
        take: &mut impl FnMut(u64, &PageData) -> Result<(), E>,
    ) -> Result<(), E> {
        let page = PAGE_BYTES as u64;
        let mut next = 0;
        while let Some(start) = self.seek(SeekFrom::Data(next)).map_err(ContentsError::from)? {
            let end = self.seek(SeekFrom::Hole(start)).map_err(ContentsError::from)?;
            let end = end.unwrap_or(self.length).min(self.length);
            for number in start.max(next) / page..end.div_ceil(page) {
                let mut whole = ZEROS;
                let length = (self.length - number * page).min(page) as usize;
                self.read(number * page, &mut whole[..length]).map_err(ContentsError::from)?;
                if whole != ZEROS {
                    take(number, &whole)?;
                }
            }
            debug_assert!(start < end || end == self.length, "an empty range of data");
            next = end.div_ceil(page) * page;
            if next >= self.length {
                break;
            }
        }
        Ok(())
    }
}
