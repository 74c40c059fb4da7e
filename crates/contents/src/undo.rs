//! Changes that a power cut may undo: the previous data of each change that is not yet durable.
//!
//! Each page change is a numbered entry. Entries are dropped once the drive has made their data
//! durable. A flush drops all entries up to a number, and a durability report drops the entries of
//! a range. A power cut undoes all remaining entries, or retains the first few changes of each
//! page; a seed determines how many. With a seed, any subset of the writes may be lost, in any
//! order, and a write may be torn at page boundaries. NVMe orders commands only by flushes (NVM
//! Command Set 1.0, 2.1.4), and drives write a page atomically.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use writecliff_base::{Bytes, Prng};

use crate::{Contents, ContentsError, PAGE_BYTES, PageData, ZEROS};

/// Entries in numerical order; up to half of them may be dropped already.
const ENDED_MAX: usize = 1024;

/// Selects the non-durable changes that a power cut undoes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loses {
    /// Undoes all non-durable changes.
    All,
    /// Undoes a random selection of the changes, determined by this seed.
    Some(u64),
}

/// Effect of a power cut on the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Pages with changes that were not durable.
    pub pages_open: u64,
    /// Pages that lost some or all of their non-durable changes.
    pub pages_lost: u64,
}

/// A page that a power cut changed, and the number of its first undone change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostPage {
    /// Page number.
    pub page: u64,
    /// Number of the first undone change.
    pub first: u64,
}

/// `None`: zeros.
type Before = Option<Box<PageData>>;

pub(crate) struct Undo {
    /// Entries by page and change number.
    before: BTreeMap<(u64, u64), Before>,
    /// Change numbers and pages, oldest first; the list may contain dropped entries.
    order: VecDeque<(u64, u64)>,
    /// Limit on open entries; the cache must have written older changes already.
    pages_max: usize,
    next: Arc<AtomicU64>,
}

impl Undo {
    fn end_below(&mut self, number: u64) {
        while let Some(&(oldest, page)) = self.order.front()
            && oldest < number
        {
            self.order.pop_front();
            self.before.remove(&(page, oldest));
        }
    }

    fn end_range(&mut self, pages: &Range<u64>, below: u64) {
        debug_assert!(pages.start <= pages.end);
        let keys = self.before.range((pages.start, 0)..(pages.end, 0)).map(|(&key, _)| key);
        let ended: Vec<_> = keys.filter(|&(_, number)| number < below).collect();
        for key in ended {
            self.before.remove(&key);
        }
        if self.order.len() > 2 * self.before.len() + ENDED_MAX {
            self.order.retain(|&(number, page)| self.before.contains_key(&(page, number)));
        }
    }

    fn add(&mut self, page: u64, data: Before) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        debug_assert!(
            self.order.back().is_none_or(|&(newest, _)| newest < number),
            "changes are numbered in order"
        );
        self.before.insert((page, number), data);
        self.order.push_back((number, page));
        while self.before.len() > self.pages_max
            && let Some((oldest, page)) = self.order.pop_front()
        {
            self.before.remove(&(page, oldest));
        }
        debug_assert!(self.before.len() <= self.pages_max, "more pages than the cache holds");
        debug_assert!(
            self.before.len() <= self.order.len(),
            "a changed page is missing from the order"
        );
    }
}

impl Contents {
    /// Starts storing the data that a power cut may undo, for the last `limit` bytes of changes. No
    /// cache holds more dirty data than this limit. Returns the number of the next change.
    pub fn keep_undo(&mut self, limit: Bytes) -> Arc<AtomicU64> {
        let pages_max = (limit.0 as usize / PAGE_BYTES).max(1);
        let next = Arc::new(AtomicU64::new(0));
        let (before, order) = (BTreeMap::new(), VecDeque::new());
        self.undo = Some(Undo { before, order, pages_max, next: Arc::clone(&next) });
        next
    }

    /// Marks all changes below a number as durable.
    pub fn durable_until(&mut self, number: u64) {
        if let Some(undo) = &mut self.undo {
            undo.end_below(number);
        }
    }

    /// Marks the changes of a range below a number as durable.
    pub fn durable_range(&mut self, offset: u64, length: u64, number: u64) {
        if let Some(undo) = &mut self.undo {
            undo.end_range(&pages_of(offset, length), number);
        }
    }

    /// Discards changes that are not durable. Also returns the changed pages in ascending order.
    pub fn power_cut(&mut self, loses: Loses) -> Result<(Lost, Vec<LostPage>), ContentsError> {
        let Some(mut undo) = self.undo.take() else { return Ok(Default::default()) };
        let mut changes_of: BTreeMap<u64, Vec<(u64, Before)>> = BTreeMap::new();
        for ((page, number), before) in std::mem::take(&mut undo.before) {
            changes_of.entry(page).or_default().push((number, before));
        }
        undo.order.clear();
        let pages_open = changes_of.len() as u64;
        let mut kept_of = chooser(loses);
        let mut undone = Vec::new();
        for (page, mut changes) in changes_of {
            let remaining = kept_of(changes.len());
            if remaining < changes.len() {
                let (first, before) = changes.swap_remove(remaining);
                self.put_page(page, before.as_deref())?;
                undone.push(LostPage { page, first });
            }
        }
        assert!(undone.len() as u64 <= pages_open, "a page that was durable is undone");
        self.undo = Some(undo);
        Ok((Lost { pages_open, pages_lost: undone.len() as u64 }, undone))
    }

    /// Records the contents of a range before it changes.
    pub(crate) fn before_change(&mut self, offset: u64, length: u64) -> Result<(), ContentsError> {
        let Some(mut undo) = self.undo.take() else { return Ok(()) };
        let outcome = self.keep_range(&mut undo, offset, length);
        self.undo = Some(undo);
        outcome
    }

    fn keep_range(&self, undo: &mut Undo, offset: u64, length: u64) -> Result<(), ContentsError> {
        let pages = pages_of(offset, length);
        debug_assert!(pages.end <= self.capacity.0.div_ceil(PAGE_BYTES as u64), "see `check`");
        if pages.end - pages.start > undo.pages_max as u64 {
            // A change larger than the cache (a trim of the whole drive) is durable at once.
            undo.end_range(&pages, u64::MAX);
            return Ok(());
        }
        for page in pages {
            let mut data = Box::new(ZEROS);
            let (start, length) = self.range_of(page);
            self.read(start, &mut data[..length])?;
            undo.add(page, (*data != ZEROS).then_some(data));
        }
        Ok(())
    }
}

/// Returns a function that maps the change count of a page to the number of changes that survive a
/// power cut. The function is called for each page in order.
fn chooser(loses: Loses) -> impl FnMut(usize) -> usize {
    let mut random = match loses {
        Loses::All => None,
        Loses::Some(seed) => Some(Prng::new(seed)),
    };
    // Some power cuts lose nearly all changes, others almost none.
    let share = random.as_mut().map_or(1.0, Prng::unit);
    move |changes| {
        debug_assert!(changes > 0, "a page without changes is open");
        let Some(random) = &mut random else { return 0 };
        if random.unit() < share { random.below(changes as u64) as usize } else { changes }
    }
}

fn pages_of(offset: u64, length: u64) -> Range<u64> {
    offset / PAGE_BYTES as u64..(offset + length).div_ceil(PAGE_BYTES as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::MemoryOptions;

    const PAGES: u64 = 8;
    const BYTES: u64 = PAGES * PAGE_BYTES as u64 - 512; // The last page is partial.

    #[derive(Clone, Debug)]
    enum Action {
        Write { offset: u64, length: u64, fill: u8 },
        Deallocate { offset: u64, length: u64 },
        Flush,
        Durable { offset: u64, length: u64 },
    }

    fn actions() -> impl Strategy<Value = Vec<Action>> {
        let range = || {
            (0..BYTES / 512, 1..30_u64)
                .prop_map(|(at, length)| (at * 512, (length * 512).min(BYTES - at * 512)))
        };
        let action = prop_oneof![
            4 => (range(), 0..9_u8)
                .prop_map(|((offset, length), fill)| Action::Write { offset, length, fill }),
            1 => range().prop_map(|(offset, length)| Action::Deallocate { offset, length }),
            1 => Just(Action::Flush),
            1 => range().prop_map(|(offset, length)| Action::Durable { offset, length }),
        ];
        prop::collection::vec(action, 1..40)
    }

    fn contents(limit: u64) -> (Contents, Arc<AtomicU64>) {
        let mut made = Contents::in_memory(Bytes(BYTES), MemoryOptions::default());
        let next = made.keep_undo(Bytes(limit));
        (made, next)
    }

    /// Possible states of each page after a power cut, starting with the last durable state.
    struct Model {
        now: Vec<u8>,
        allowed: Vec<Vec<Vec<u8>>>,
    }

    impl Model {
        fn new() -> Self {
            let now = vec![0; BYTES as usize];
            let allowed = now.chunks(PAGE_BYTES).map(|page| vec![page.to_vec()]).collect();
            Self { now, allowed }
        }

        fn change(&mut self, offset: u64, length: u64, fill: u8) {
            self.now[offset as usize..(offset + length) as usize].fill(fill);
            for page in pages_of(offset, length) {
                let state = self.page(page).to_vec();
                self.allowed[page as usize].push(state);
            }
        }

        fn durable(&mut self, offset: u64, length: u64) {
            for page in pages_of(offset, length) {
                self.allowed[page as usize] = vec![self.page(page).to_vec()];
            }
        }

        fn page(&self, page: u64) -> &[u8] {
            self.now.chunks(PAGE_BYTES).nth(page as usize).unwrap()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// A power cut leaves every page in its last durable state or in a later state.
        #[test]
        fn a_cut_loses_what_it_may(actions in actions(), seed: u64) {
            let (mut contents, next) = contents(1 << 30);
            let mut model = Model::new();
            for action in actions {
                match action {
                    Action::Write { offset, length, fill } => {
                        contents.write(offset, &vec![fill; length as usize]).unwrap();
                        model.change(offset, length, fill);
                    }
                    Action::Deallocate { offset, length } => {
                        contents.deallocate(offset, length).unwrap();
                        model.change(offset, length, 0);
                    }
                    Action::Flush => {
                        contents.durable_until(next.load(Ordering::Relaxed));
                        model.durable(0, BYTES);
                    }
                    Action::Durable { offset, length } => {
                        contents.durable_range(offset, length, next.load(Ordering::Relaxed));
                        model.durable(offset, length);
                    }
                }
            }
            contents.power_cut(Loses::Some(seed)).unwrap();
            let mut data = vec![0; BYTES as usize];
            contents.read(0, &mut data).unwrap();
            for (page, allowed) in data.chunks(PAGE_BYTES).zip(&model.allowed) {
                prop_assert!(allowed.iter().any(|state| state == page));
            }
            let again = contents.power_cut(Loses::All).unwrap();
            prop_assert_eq!(again, Default::default(), "all is durable now");
        }
    }

    #[test]
    fn some_cuts_lose_all_and_some_nothing_and_writes_are_torn() {
        let (mut all, mut nothing, mut torn) = (0, 0, 0);
        for seed in 0..200 {
            let (mut contents, _) = contents(1 << 30);
            contents.write(0, &[1; 4 * PAGE_BYTES]).unwrap();
            let (lost, pages) = contents.power_cut(Loses::Some(seed)).unwrap();
            assert_eq!(pages.len() as u64, lost.pages_lost);
            assert_eq!(lost.pages_open, 4);
            match lost.pages_lost {
                0 => nothing += 1,
                4 => all += 1,
                _ => torn += 1,
            }
        }
        assert!(all > 10 && nothing > 10 && torn > 10, "{all} {nothing} {torn}");
    }

    #[test]
    fn a_cut_that_loses_all_leaves_the_last_durable_state() {
        let (mut contents, next) = contents(1 << 30);
        let page = PAGE_BYTES as u64;
        contents.write(0, &[1; 3 * PAGE_BYTES]).unwrap();
        contents.durable_range(page, page, next.load(Ordering::Relaxed));
        contents.write(page, &[2; PAGE_BYTES]).unwrap();
        contents.write(page, &[3; PAGE_BYTES]).unwrap();
        let (lost, pages) = contents.power_cut(Loses::All).unwrap();
        assert_eq!((lost.pages_open, lost.pages_lost), (3, 3));
        let first = |page, first| LostPage { page, first };
        assert_eq!(pages, [first(0, 0), first(1, 3), first(2, 2)]);
        let mut data = [9; 3 * PAGE_BYTES];
        contents.read(0, &mut data).unwrap();
        let of_page = |page: usize| data[page * PAGE_BYTES];
        assert_eq!([0, 1, 2].map(of_page), [0, 1, 0]);
    }

    #[test]
    fn ranges_that_become_durable_leave_no_trace() {
        let (mut contents, next) = contents(1 << 30);
        // This write holds back the oldest state.
        contents.write(7 * PAGE_BYTES as u64, &[1; 512]).unwrap();
        for n in 0..3 * ENDED_MAX {
            contents.write(0, &[n as u8; PAGE_BYTES]).unwrap();
            contents.durable_range(0, 1, next.load(Ordering::Relaxed));
        }
        let undo = contents.undo.as_ref().unwrap();
        assert_eq!(undo.before.len(), 1);
        assert!(undo.order.len() <= ENDED_MAX + 3, "{}", undo.order.len());
    }

    #[test]
    fn a_cache_holds_no_more_than_it_has() {
        let (mut contents, _) = contents(2 * PAGE_BYTES as u64);
        for page in 0..4 {
            contents.write(page * PAGE_BYTES as u64, &[1; PAGE_BYTES]).unwrap();
        }
        assert_eq!(contents.power_cut(Loses::Some(1)).unwrap().0.pages_open, 2, "the last two");
        contents.write(0, &[2; PAGE_BYTES]).unwrap();
        contents.deallocate(0, BYTES).unwrap();
        assert_eq!(
            contents.power_cut(Loses::Some(1)).unwrap().0.pages_open,
            0,
            "too much to be held"
        );
    }
}
