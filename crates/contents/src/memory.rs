//! Pages in memory, by number. Pages of zeros are not stored.
//!
//! If compression is enabled, a page that compresses to at most three quarters of its size is
//! stored compressed with LZ4, which takes about a microsecond per page.

use std::collections::BTreeMap;

use writecliff_base::Bytes;

use crate::{ContentsError, PAGE_BYTES, PageData, ZEROS, pages};

/// Upper bound of the memory that a page takes in addition to its data: the allocator's overhead,
/// and an entry of the map, whose nodes are at least half full.
const OVERHEAD_BYTES: u64 = 16 + 48;
/// Maximum size of a compressed page; larger pages are stored uncompressed.
const PACKED_BYTES_MAX: usize = PAGE_BYTES / 4 * 3;
const _: () = assert!(PACKED_BYTES_MAX < PAGE_BYTES, "the length distinguishes compressed pages");

/// Options for data in memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryOptions {
    /// `true` to compress pages.
    pub compress: bool,
    /// Limit beyond which writes fail; `None` for no limit.
    pub limit: Option<Bytes>,
}

pub(crate) struct Memory {
    /// Pages with data: uncompressed if they have `PAGE_BYTES`, otherwise compressed.
    pages: BTreeMap<u64, Box<[u8]>>,
    options: MemoryOptions,
    used: u64,
}

fn size_of_page(page: &[u8]) -> u64 {
    page.len() as u64 + OVERHEAD_BYTES
}

fn unpacked(packed: &[u8], into: &mut PageData) {
    let length = lz4_flex::block::decompress_into(packed, into).expect("a page that we packed");
    assert_eq!(length, PAGE_BYTES, "a page that we packed");
}

impl Memory {
    pub(crate) fn new(options: MemoryOptions) -> Self {
        Self { pages: BTreeMap::new(), options, used: 0 }
    }

    pub(crate) fn used(&self) -> Bytes {
        Bytes(self.used)
    }

    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) {
        for (number, within, range) in pages(offset, into.len()) {
            let into = &mut into[range];
            match self.pages.get(&number) {
                None => into.fill(0),
                Some(data) if data.len() == PAGE_BYTES => {
                    into.copy_from_slice(&data[within..within + into.len()]);
                }
                Some(packed) => {
                    let mut page = ZEROS;
                    unpacked(packed, &mut page);
                    into.copy_from_slice(&page[within..within + into.len()]);
                }
            }
        }
    }

    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), ContentsError> {
        for (number, within, range) in pages(offset, data.len()) {
            self.write_page(number, within, &data[range])?;
        }
        Ok(())
    }

    fn write_page(&mut self, number: u64, within: usize, data: &[u8]) -> Result<(), ContentsError> {
        debug_assert!(within + data.len() <= PAGE_BYTES, "a part of one page");
        if !self.options.compress
            && (data.len() < PAGE_BYTES || data != &ZEROS[..])
            && let Some(page) = self.pages.get_mut(&number)
        {
            page[within..within + data.len()].copy_from_slice(data);
            return Ok(());
        }
        if data.len() == PAGE_BYTES {
            return self.put(number, data);
        }
        let mut whole = ZEROS;
        self.read(number * PAGE_BYTES as u64, &mut whole);
        whole[within..within + data.len()].copy_from_slice(data);
        self.put(number, &whole)
    }

    fn put(&mut self, number: u64, data: &[u8]) -> Result<(), ContentsError> {
        debug_assert_eq!(data.len(), PAGE_BYTES, "a page is replaced as a whole");
        if data == &ZEROS[..] {
            self.drop_page(number);
            return Ok(());
        }
        let page = self.packed(data);
        let before = self.pages.get(&number).map_or(0, |page| size_of_page(page));
        debug_assert!(self.used >= before, "the replaced page was not counted");
        let used = self.used - before + size_of_page(&page);
        if let Some(limit) = self.options.limit
            && used > limit.0
            && used > self.used
        {
            return Err(ContentsError::Full(limit));
        }
        self.used = used;
        self.pages.insert(number, page);
        Ok(())
    }

    fn packed(&self, data: &[u8]) -> Box<[u8]> {
        if self.options.compress {
            let packed = lz4_flex::block::compress(data);
            if packed.len() <= PACKED_BYTES_MAX {
                return packed.into_boxed_slice();
            }
        }
        data.into()
    }

    fn drop_page(&mut self, number: u64) {
        if let Some(page) = self.pages.remove(&number) {
            debug_assert!(self.used >= size_of_page(&page), "the dropped page was not counted");
            self.used -= size_of_page(&page);
        }
    }

    pub(crate) fn deallocate(&mut self, offset: u64, length: u64) -> Result<(), ContentsError> {
        let page = PAGE_BYTES as u64;
        let end = offset + length;
        let (first, last) = (offset.div_ceil(page), end / page);
        if first > last {
            return self.clear(offset, end);
        }
        self.clear(offset, first * page)?;
        self.clear(last * page, end)?;
        while let Some((&number, _)) = self.pages.range(first..last).next() {
            self.drop_page(number);
        }
        Ok(())
    }

    /// Zeroes a part of one page.
    fn clear(&mut self, from: u64, to: u64) -> Result<(), ContentsError> {
        let number = from / PAGE_BYTES as u64;
        if from == to || !self.pages.contains_key(&number) {
            return Ok(());
        }
        debug_assert!(from < to && (to - 1) / PAGE_BYTES as u64 == number, "a part of one page");
        let mut whole = ZEROS;
        self.read(number * PAGE_BYTES as u64, &mut whole);
        let within = (from % PAGE_BYTES as u64) as usize;
        whole[within..within + (to - from) as usize].fill(0);
        self.put(number, &whole)
    }

    pub(crate) fn each_page<E>(
        &self,
        take: &mut impl FnMut(u64, &PageData) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut whole = ZEROS;
        for (&number, page) in &self.pages {
            match <&PageData>::try_from(&page[..]) {
                Ok(data) => whole = *data,
                Err(_) => unpacked(page, &mut whole),
            }
            if whole != ZEROS {
                take(number, &whole)?;
            }
        }
        Ok(())
    }
}
