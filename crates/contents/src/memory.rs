//! Pages in memory: a table of groups, where each group is a table of pages.
//!
//! The two-level table keeps an empty drive small. A group has 64 pages, so a terabyte needs a
//! table of 4 M pointers. A random 4 KiB write takes at most 1 KiB of tables. An access follows two
//! pointers. If compression is enabled, a page that shrinks to three quarters of its size or less
//! is stored compressed. LZ4 takes about 1 µs per page, Zstandard about 10 µs.

use writecliff_base::Bytes;

use crate::{ContentsError, PAGE_BYTES, PageData, ZEROS, pages};

const GROUP_PAGES: usize = 64;
/// Upper bound of the allocator overhead per allocation, in bytes.
const ALLOCATION_BYTES: u64 = 16;
const GROUP_BYTES: u64 = size_of::<Group>() as u64 + ALLOCATION_BYTES;
/// Maximum size of a compressed page in bytes; a page that compresses to a larger size is stored
/// uncompressed.
const PACKED_BYTES_MAX: usize = PAGE_BYTES / 4 * 3;
const _: () = assert!(PACKED_BYTES_MAX < PAGE_BYTES, "the length distinguishes compressed pages");

/// Options for data in memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryOptions {
    /// `true` to compress pages.
    pub compress: bool,
    /// Memory limit beyond which writes fail; `None` for no limit.
    pub limit: Option<Bytes>,
}

/// A page: uncompressed if its size is `PAGE_BYTES`, otherwise compressed.
type Page = Option<Box<[u8]>>;

struct Group {
    pages: [Page; GROUP_PAGES],
    /// Pages that hold data.
    filled: u32,
}

pub(crate) struct Memory {
    groups: Vec<Option<Box<Group>>>,
    options: MemoryOptions,
    used: u64,
}

fn size_of_page(page: &Page) -> u64 {
    page.as_ref().map_or(0, |data| data.len() as u64 + ALLOCATION_BYTES)
}

fn unpacked(packed: &[u8], into: &mut PageData) {
    let length = lz4_flex::block::decompress_into(packed, into).expect("a page that we packed");
    assert_eq!(length, PAGE_BYTES, "a page that we packed");
}

impl Memory {
    pub(crate) fn new(capacity: Bytes, options: MemoryOptions) -> Self {
        let groups = capacity.0.div_ceil((PAGE_BYTES * GROUP_PAGES) as u64) as usize;
        let used = groups as u64 * size_of::<Option<Box<Group>>>() as u64;
        Self { groups: std::iter::repeat_with(|| None).take(groups).collect(), options, used }
    }

    pub(crate) fn used(&self) -> Bytes {
        Bytes(self.used)
    }

    fn page(&self, number: u64) -> Option<&[u8]> {
        let group = self.groups[number as usize / GROUP_PAGES].as_deref()?;
        group.pages[number as usize % GROUP_PAGES].as_deref()
    }

    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) {
        for (number, within, range) in pages(offset, into.len()) {
            let into = &mut into[range];
            match self.page(number) {
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
            && let Some(group) = &mut self.groups[number as usize / GROUP_PAGES]
            && let Some(page) = &mut group.pages[number as usize % GROUP_PAGES]
            && (data.len() < PAGE_BYTES || data != &ZEROS[..])
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

    /// Replaces a page.
    fn put(&mut self, number: u64, data: &[u8]) -> Result<(), ContentsError> {
        debug_assert_eq!(data.len(), PAGE_BYTES, "a page is replaced as a whole");
        if data == &ZEROS[..] {
            self.drop_page(number);
            return Ok(());
        }
        let page = self.packed(data);
        let slot = &mut self.groups[number as usize / GROUP_PAGES];
        let index = number as usize % GROUP_PAGES;
        let (before, tables) = match slot {
            Some(group) => (size_of_page(&group.pages[index]), 0),
            None => (0, GROUP_BYTES),
        };
        debug_assert!(self.used >= before, "the replaced page was not counted");
        let used = self.used - before + page.len() as u64 + ALLOCATION_BYTES + tables;
        if let Some(limit) = self.options.limit
            && used > limit.0
            && used > self.used
        {
            return Err(ContentsError::Full(limit));
        }
        self.used = used;
        let group = slot.get_or_insert_with(|| {
            Box::new(Group { pages: [const { None }; GROUP_PAGES], filled: 0 })
        });
        group.filled += u32::from(before == 0);
        debug_assert!(group.filled as usize <= GROUP_PAGES, "a page is counted twice");
        group.pages[index] = Some(page);
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
        let slot = &mut self.groups[number as usize / GROUP_PAGES];
        let Some(group) = slot else { return };
        let Some(page) = group.pages[number as usize % GROUP_PAGES].take() else { return };
        debug_assert!(self.used >= page.len() as u64 + ALLOCATION_BYTES + GROUP_BYTES);
        debug_assert!(group.filled > 0, "the dropped page was not counted");
        self.used -= page.len() as u64 + ALLOCATION_BYTES;
        group.filled -= 1;
        if group.filled == 0 {
            *slot = None;
            self.used -= GROUP_BYTES;
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
        let mut number = first;
        while number < last {
            let group = number as usize / GROUP_PAGES;
            // Most groups are empty when a whole drive is trimmed.
            if self.groups[group].is_none() {
                number = ((group + 1) * GROUP_PAGES) as u64;
                continue;
            }
            self.drop_page(number);
            number += 1;
        }
        Ok(())
    }

    /// Zeroes a portion of one page.
    fn clear(&mut self, from: u64, to: u64) -> Result<(), ContentsError> {
        let number = from / PAGE_BYTES as u64;
        if from == to || self.page(number).is_none() {
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
        for (index, group) in self.groups.iter().enumerate() {
            let Some(group) = group else { continue };
            for (within, page) in group.pages.iter().enumerate() {
                let Some(page) = page else { continue };
                match <&PageData>::try_from(&page[..]) {
                    Ok(data) => whole = *data,
                    Err(_) => unpacked(page, &mut whole),
                }
                if whole != ZEROS {
                    take((index * GROUP_PAGES + within) as u64, &whole)?;
                }
            }
        }
        Ok(())
    }
}
