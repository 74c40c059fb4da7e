//! The translation pages of a drive in the order of their last use.
//!
//! The most recently used pages are in the controller, the next ones in the host memory buffer.
//! The buffer also holds the pages of the controller, so both together are one list in two parts.

use writecliff_base::codec::CodecError;
use writecliff_base::words::{WordReader, WordWriter, damaged};

/// Location of a copy of a page that is not on flash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tier {
    Controller = 0,
    HostMemory = 1,
}

const NONE: u32 = u32::MAX;

const IN_CONTROLLER: u8 = 1;
const IN_HOST_MEMORY: u8 = 2;
const HELD: u8 = IN_CONTROLLER | IN_HOST_MEMORY;
/// Differs from the copy on flash.
const DIRTY: u8 = 4;
/// Differs from the copy in the host memory buffer.
const CHANGED: u8 = 8;
/// Its addresses have been written.
const EXISTS: u8 = 16;
const LOADING: u8 = 32;

/// A part of the list.
#[derive(Clone, Copy, Debug)]
struct Part {
    first: u32,
    last: u32,
    len: u32,
    most: u32,
}

impl Part {
    const fn new(most: u32) -> Self {
        Self { first: NONE, last: NONE, len: 0, most }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Pages {
    /// The pages used after and before each page in a part of the list.
    links: Vec<[u32; 2]>,
    flags: Vec<u8>,
    parts: [Part; 2],
}

impl Pages {
    /// `held`: pages that the controller holds, and further pages of the host memory buffer.
    pub(crate) fn new(count: u32, held: [u32; 2]) -> Self {
        Self {
            links: vec![[NONE; 2]; count as usize],
            flags: vec![0; count as usize],
            parts: held.map(Part::new),
        }
    }

    fn has(&self, page: u32, flag: u8) -> bool {
        self.flags[page as usize] & flag != 0
    }

    pub(crate) fn tier(&self, page: u32) -> Option<Tier> {
        match self.flags[page as usize] & HELD {
            IN_CONTROLLER => Some(Tier::Controller),
            IN_HOST_MEMORY => Some(Tier::HostMemory),
            _ => None,
        }
    }

    pub(crate) fn is_absent(&self, page: u32) -> bool {
        !self.has(page, EXISTS)
    }

    pub(crate) fn is_dirty(&self, page: u32) -> bool {
        self.has(page, DIRTY)
    }

    pub(crate) fn is_loading(&self, page: u32) -> bool {
        self.has(page, LOADING)
    }

    pub(crate) fn set_loading(&mut self, page: u32, is_loading: bool) {
        let flags = &mut self.flags[page as usize];
        *flags = if is_loading { *flags | LOADING } else { *flags & !LOADING };
    }

    pub(crate) fn change(&mut self, page: u32) {
        self.flags[page as usize] |= EXISTS | DIRTY | CHANGED;
    }

    /// Records that the copy on flash is the newest.
    pub(crate) fn written_back(&mut self, page: u32) {
        self.flags[page as usize] &= !(DIRTY | CHANGED);
    }

    /// Makes a page the most recently used; returns the page that leaves the list for it.
    /// `demoted` receives `true` if a page that leaves the controller has changed in the meantime.
    pub(crate) fn use_now(&mut self, page: u32, demoted: impl FnOnce(bool)) -> Option<u32> {
        if let Some(tier) = self.tier(page) {
            self.unlink(page, tier);
        }
        self.push(page, Tier::Controller);
        let last = self.overflow(Tier::Controller)?;
        if self.parts[Tier::HostMemory as usize].most == 0 {
            return Some(last);
        }
        demoted(self.has(last, CHANGED));
        self.flags[last as usize] &= !CHANGED;
        self.push(last, Tier::HostMemory);
        self.overflow(Tier::HostMemory)
    }

    fn push(&mut self, page: u32, tier: Tier) {
        let part = &mut self.parts[tier as usize];
        self.links[page as usize] = [NONE, part.first];
        match part.first {
            NONE => part.last = page,
            first => self.links[first as usize][0] = page,
        }
        part.first = page;
        part.len += 1;
        self.flags[page as usize] |= 1 << tier as u8;
    }

    fn unlink(&mut self, page: u32, tier: Tier) {
        let part = &mut self.parts[tier as usize];
        let [after, before] = self.links[page as usize];
        match after {
            NONE => part.first = before,
            after => self.links[after as usize][1] = before,
        }
        match before {
            NONE => part.last = after,
            before => self.links[before as usize][0] = after,
        }
        part.len -= 1;
        self.flags[page as usize] &= !HELD;
    }

    /// Takes the least recently used page from a part that has one page too many.
    fn overflow(&mut self, tier: Tier) -> Option<u32> {
        let part = self.parts[tier as usize];
        if part.len <= part.most {
            return None;
        }
        self.unlink(part.last, tier);
        Some(part.last)
    }

    pub(crate) fn purged(&mut self) {
        *self = Self::new(self.flags.len() as u32, self.parts.map(|part| part.most));
    }

    /// Empties the list; all pages that exist are on flash.
    pub(crate) fn power_up(&mut self) {
        let flags: Vec<u8> = self.flags.iter().map(|flags| flags & EXISTS).collect();
        self.purged();
        self.flags = flags;
    }

    /// Pages of a part, most recently used first.
    fn in_order(&self, tier: Tier) -> impl Iterator<Item = u32> + '_ {
        let page_at = |link: u32| (link != NONE).then_some(link);
        let first = page_at(self.parts[tier as usize].first);
        std::iter::successors(first, move |&page| page_at(self.links[page as usize][1]))
    }

    pub(crate) fn save(&self, out: &mut WordWriter) {
        out.list(self.flags.chunks(8), |out, flags| {
            out.put(flags.iter().fold(0, |word, &flags| word << 8 | u64::from(flags)));
        });
        for tier in [Tier::Controller, Tier::HostMemory] {
            let pages: Vec<u32> = self.in_order(tier).collect();
            out.list(pages.iter(), |out, &page| out.put(page));
        }
    }

    pub(crate) fn restore(&mut self, input: &mut WordReader<'_>) -> Result<(), CodecError> {
        let count = self.flags.len();
        self.purged();
        let words: Vec<u64> = input.list(WordReader::get)?;
        if words.len() != count.div_ceil(8) {
            return Err(damaged());
        }
        for (flags, &word) in self.flags.chunks_mut(8).zip(&words) {
            let bytes = word.to_be_bytes();
            flags.copy_from_slice(&bytes[8 - flags.len()..]);
        }
        let held: Vec<u8> = self.flags.iter().map(|flags| flags & HELD).collect();
        self.flags.iter_mut().for_each(|flags| *flags &= !HELD);
        for tier in [Tier::Controller, Tier::HostMemory] {
            let bit = 1 << tier as u8;
            let pages: Vec<u32> = input.list(WordReader::narrow)?;
            let count: u32 = held.iter().map(|&held| u32::from(held == bit)).sum();
            if pages.len() != count as usize || count > self.parts[tier as usize].most {
                return Err(damaged());
            }
            for &page in pages.iter().rev() {
                // Each page is in one part, and once.
                let is_right = held.get(page as usize) == Some(&bit) && !self.has(page, HELD);
                if !is_right {
                    return Err(damaged());
                }
                self.push(page, tier);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares the held pages with a list that is searched for the most recently used pages.
        #[test]
        fn holds_what_was_used_last(
            uses in prop::collection::vec(0..40_u32, 0..300),
            controller in 1..12_u32,
            host in 0..12_u32,
        ) {
            let mut pages = Pages::new(40, [controller, host]);
            let mut used: Vec<u32> = Vec::new();
            for page in uses {
                used.retain(|&other| other != page);
                used.insert(0, page);
                let all = (controller + host) as usize;
                let leaves = used.get(all).copied();
                used.truncate(all);
                prop_assert_eq!(pages.use_now(page, |_| {}), leaves);
                let held: Vec<u32> = pages
                    .in_order(Tier::Controller)
                    .chain(pages.in_order(Tier::HostMemory))
                    .collect();
                prop_assert_eq!(&held, &used);
                for (place, &page) in used.iter().enumerate() {
                    let tier = if place < controller as usize {
                        Tier::Controller
                    } else {
                        Tier::HostMemory
                    };
                    prop_assert_eq!(pages.tier(page), Some(tier));
                }
            }
            let mut words = WordWriter::default();
            pages.save(&mut words);
            let mut restored = Pages::new(40, [controller, host]);
            restored.restore(&mut WordReader::new(words.words())).unwrap();
            let mut again = WordWriter::default();
            restored.save(&mut again);
            prop_assert_eq!(words.words(), again.words());
        }
    }
}
