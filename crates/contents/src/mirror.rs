//! A copy of contents in memory, in a sparse file that every change is written to as well.
//!
//! The kernel has what was written to a file, so the copy survives the end of the process, however
//! that ends. It does not survive a crash of the machine.

use std::path::Path;

use crate::file::SparseFile;
use crate::{Contents, ContentsError, PAGE_BYTES, PageData};

impl Contents {
    /// Copies all data to the file at `path`, and every change from now on. A file that exists is
    /// replaced.
    pub fn mirror_to(&mut self, path: &Path) -> Result<(), ContentsError> {
        let mirror = SparseFile::create(self.capacity, path)?;
        let capacity = self.capacity.0;
        self.each_page(|number, page| -> Result<(), ContentsError> {
            let offset = number * PAGE_BYTES as u64;
            Ok(mirror.write(offset, of_page(page, offset, capacity))?)
        })?;
        self.mirror = Some(mirror);
        Ok(())
    }

    /// Replaces all data by those of the file at `path`, and copies every change to it from now on.
    pub fn restore_mirror(&mut self, path: &Path) -> Result<(), ContentsError> {
        self.mirror = None;
        self.deallocate(0, self.capacity.0)?;
        let (mirror, capacity) = (SparseFile::open(self.capacity, path)?, self.capacity.0);
        mirror.each_page(&mut |number, page: &PageData| -> Result<(), ContentsError> {
            let offset = number * PAGE_BYTES as u64;
            self.write(offset, of_page(page, offset, capacity))
        })?;
        self.mirror = Some(mirror);
        Ok(())
    }
}

/// The bytes of a page that are within the contents.
fn of_page(page: &PageData, offset: u64, capacity: u64) -> &[u8] {
    &page[..(capacity - offset).min(PAGE_BYTES as u64) as usize]
}
