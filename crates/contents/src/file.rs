//! Pages in a sparse file: the file system tracks which ranges hold data.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

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
        let options = &mut OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(true).open(path)?;
        file.set_len(capacity.0)?;
        Ok(Self { file, length: capacity.0 })
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
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: this call on an open file takes no pointers.
        let done =
            unsafe { libc::fallocate(self.file.as_raw_fd(), mode, offset as i64, length as i64) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    pub(crate) fn used(&self) -> io::Result<Bytes> {
        Ok(Bytes(self.file.metadata()?.blocks() * STAT_BLOCK_BYTES))
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Returns the position of the next data or hole at or after `from`; `None` if there is none.
    fn seek(&self, from: u64, whence: i32) -> io::Result<Option<u64>> {
        // SAFETY: this call on an open file takes no pointers. Nothing else uses the file position.
        let position = unsafe { libc::lseek(self.file.as_raw_fd(), from as i64, whence) };
        if position >= 0 {
            return Ok(Some(position as u64));
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() == Some(libc::ENXIO) { Ok(None) } else { Err(error) }
    }

    pub(crate) fn each_page<E: From<ContentsError>>(
        &self,
        take: &mut impl FnMut(u64, &PageData) -> Result<(), E>,
    ) -> Result<(), E> {
        let page = PAGE_BYTES as u64;
        let mut next = 0;
        while let Some(start) = self.seek(next, libc::SEEK_DATA).map_err(ContentsError::from)? {
            let end = self.seek(start, libc::SEEK_HOLE).map_err(ContentsError::from)?;
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
