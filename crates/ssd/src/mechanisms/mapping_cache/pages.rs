//! Translation pages of a drive, in the order of their last use.
//!
//! The most recently used pages are in the controller, and the next pages in the host memory
//! buffer, which also holds the controller's pages: the tiers form one list in two segments.

use writecliff_base::saved;

/// Location of a page copy that is not on flash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tier {
    Controller = 0,
    HostMemory = 1,
}

const NONE: u32 = u32::MAX;

const IN_CONTROLLER: u8 = 1;
const IN_HOST_MEMORY: u8 = 2;
const HELD: u8 = IN_CONTROLLER | IN_HOST_MEMORY;
/// Flag of a page that differs from its copy on flash.
pub(crate) const DIRTY: u8 = 4;
/// Flag of a page that differs from its copy in the host memory buffer.
const CHANGED: u8 = 8;
/// Flag of a page whose addresses have been written.
pub(crate) const EXISTS: u8 = 16;
pub(crate) const LOADING: u8 = 32;

#[derive(Clone, Copy, Debug)]
struct Part {
    first: u32,
    last: u32,
    len: u32,
    most: u32,
}

saved! { Part { first, last, len } }

impl Part {
    const fn new(most: u32) -> Self {
        Self { first: NONE, last: NONE, len: 0, most }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Pages {
    /// Neighbours of each page in its segment of the list: the pages used after and before it.
    links: Vec<[u32; 2]>,
    flags: Vec<u8>,
    parts: [Part; 2],
}

saved! { Pages { [links], [flags], [parts] } check is_possible }

impl Pages {
    /// Returns `true` if the list of each tier contains exactly the pages in that tier.
    fn is_possible(&mut self) -> bool {
        let is_page = |link: u32| link == NONE || (link as usize) < self.flags.len();
        let mut links = self.links.iter().flatten().chain(self.parts.iter().map(|p| &p.first));
        links.all(|&link| is_page(link))
            && [Tier::Controller, Tier::HostMemory].into_iter().all(|tier| {
                let (part, bit) = (self.parts[tier as usize], 1 << tier as u8);
                let held = self.flags.iter().filter(|&&flags| flags & HELD == bit).count();
                let (mut before, mut count) = (NONE, 0);
                let mut pages = self.in_order(tier);
                let is_list = pages.all(|page| {
                    let is_next = self.links[page as usize][0] == before;
                    (before, count) = (page, count + 1);
                    is_next && self.flags[page as usize] & HELD == bit
                });
                is_list
                    && before == part.last
                    && count == held
                    && part.len as usize == held
                    && part.len <= part.most
            })
            && self.flags.iter().all(|flags| flags & HELD != HELD)
    }

    /// Creates the list of `count` pages on flash. `held` contains the number of pages in the
    /// controller, and the number of further pages in the host memory buffer.
    pub(crate) fn new(count: u32, held: [u32; 2]) -> Self {
        Self {
            links: vec![[NONE; 2]; count as usize],
            flags: vec![0; count as usize],
            parts: held.map(Part::new),
        }
    }

    pub(crate) fn has(&self, page: u32, flag: u8) -> bool {
        self.flags[page as usize] & flag != 0
    }

    pub(crate) fn tier(&self, page: u32) -> Option<Tier> {
        match self.flags[page as usize] & HELD {
            IN_CONTROLLER => Some(Tier::Controller),
            IN_HOST_MEMORY => Some(Tier::HostMemory),
            _ => None,
        }
    }

    pub(crate) fn set_loading(&mut self, page: u32, is_loading: bool) {
        let flags = &mut self.flags[page as usize];
        *flags = if is_loading { *flags | LOADING } else { *flags & !LOADING };
    }

    pub(crate) fn change(&mut self, page: u32) {
        debug_assert_eq!(self.tier(page), Some(Tier::Controller), "it changes pages it holds");
        self.flags[page as usize] |= EXISTS | DIRTY | CHANGED;
    }

    pub(crate) fn written_back(&mut self, page: u32) {
        self.flags[page as usize] &= !(DIRTY | CHANGED);
    }

    /// Makes a page the most recently used page, and returns the page that leaves the list to make
    /// room. `demoted` receives `true` if a page that leaves the controller has changed.
    pub(crate) fn use_now(&mut self, page: u32, demoted: impl FnOnce(bool)) -> Option<u32> {
        if let Some(tier) = self.tier(page) {
            self.unlink(page, tier);
        }
        self.push(page, Tier::Controller);
        let last = self.overflow(Tier::Controller)?;
        debug_assert!(last != page, "the controller holds a page");
        if self.parts[Tier::HostMemory as usize].most == 0 {
            return Some(last);
        }
        demoted(self.has(last, CHANGED));
        self.flags[last as usize] &= !CHANGED;
        self.push(last, Tier::HostMemory);
        self.overflow(Tier::HostMemory)
    }

    fn push(&mut self, page: u32, tier: Tier) {
        debug_assert!(self.tier(page).is_none(), "a page is held in one memory");
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
        debug_assert_eq!(self.tier(page), Some(tier), "the page is held elsewhere");
        debug_assert!(self.parts[tier as usize].len > 0, "the list lost its length");
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

    /// Removes and returns the least recently used page of a segment that has one page too many.
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

    /// Empties the list; all existing pages are then on flash.
    pub(crate) fn power_up(&mut self) {
        let flags: Vec<u8> = self.flags.iter().map(|flags| flags & EXISTS).collect();
        self.purged();
        self.flags = flags;
    }

    /// Returns the pages of a segment, most recently used first.
    fn in_order(&self, tier: Tier) -> impl Iterator<Item = u32> + '_ {
        let page_at = |link: u32| (link != NONE).then_some(link);
        let first = page_at(self.parts[tier as usize].first);
        std::iter::successors(first, move |&page| page_at(self.links[page as usize][1]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use writecliff_base::fields::{from_bytes, to_bytes};

    proptest! {
        /// Compares the stored pages with a plain list ordered by last use.
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
            let bytes = to_bytes(&pages);
            let mut restored = Pages::new(40, [controller, host]);
            from_bytes(&bytes, &mut restored).unwrap();
            prop_assert_eq!(to_bytes(&restored), bytes);
        }
    }
}
