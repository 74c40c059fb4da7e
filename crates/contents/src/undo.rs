//! What a power cut may undo: the data from before each change that is not durable yet.
//!
//! A change of a page is an entry with a number. Entries end when the drive has made their data
//! durable: all up to a number, by a flush, or those of a range, by the end of a write to a drive
//! that keeps what it has acknowledged. A cut keeps the first few changes of each page that has
//! entries; how many, a seed chooses. So any subset of the writes may be lost, in any order, and a
//! write may be torn between pages. NVMe orders commands by flushes alone (NVM Command Set 1.0,
//! 2.1.4), and a page is what drives write atomically.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use writecliff_base::{Bytes, Prng};

use crate::{Contents, ContentsError, PAGE_BYTES, PageData, ZEROS};

/// What a power cut has done to the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Pages with changes that were not durable.
    pub pages_open: u64,
    /// Those that are without some or all of these changes now.
    pub pages_lost: u64,
}

struct Entry {
    number: u64,
    page: u64,
    /// `None`: zeros.
    before: Option<Box<PageData>>,
}

pub(crate) struct Undo {
    entries: VecDeque<Entry>,
    /// The oldest entries beyond so many end: the cache had to write them.
    pages_max: usize,
    next: Arc<AtomicU64>,
}

impl Contents {
    /// From now on, keeps what a power cut may undo, of the last `limit` of changes: no cache holds
    /// more. Returns the number that the next change will have.
    pub fn keep_undo(&mut self, limit: Bytes) -> Arc<AtomicU64> {
        let pages_max = (limit.0 as usize / PAGE_BYTES).max(1);
        let next = Arc::new(AtomicU64::new(0));
        self.undo = Some(Undo { entries: VecDeque::new(), pages_max, next: Arc::clone(&next) });
        next
    }

    /// Notes that all changes below a number are durable.
    pub fn durable_until(&mut self, number: u64) {
        if let Some(undo) = &mut self.undo {
            while undo.entries.front().is_some_and(|entry| entry.number < number) {
                undo.entries.pop_front();
            }
        }
    }

    /// Notes that the changes of a range below a number are durable.
    pub fn durable_range(&mut self, offset: u64, length: u64, number: u64) {
        if let Some(undo) = &mut self.undo {
            let pages = pages_of(offset, length);
            undo.entries.retain(|one| one.number >= number || !pages.contains(&one.page));
        }
    }

    /// Loses changes that are not durable, as `seed` chooses.
    pub fn power_cut(&mut self, seed: u64) -> Result<Lost, ContentsError> {
        let Some(mut undo) = self.undo.take() else { return Ok(Lost::default()) };
        let mut changes_of: BTreeMap<u64, Vec<Option<Box<PageData>>>> = BTreeMap::new();
        for Entry { page, before, .. } in undo.entries.drain(..) {
            changes_of.entry(page).or_default().push(before);
        }
        let mut lost = Lost { pages_open: changes_of.len() as u64, pages_lost: 0 };
        let mut random = Prng::new(seed);
        // Some cuts lose nearly all, others nearly nothing.
        let share = random.unit();
        for (page, mut changes) in changes_of {
            if random.unit() >= share {
                continue;
            }
            let kept = random.below(changes.len() as u64) as usize;
            let before = changes.swap_remove(kept);
            self.put_page(page, before.as_deref())?;
            lost.pages_lost += 1;
        }
        self.undo = Some(undo);
        Ok(lost)
    }

    fn put_page(&mut self, page: u64, data: Option<&PageData>) -> Result<(), ContentsError> {
        let offset = page * PAGE_BYTES as u64;
        let length = (self.capacity.0 - offset).min(PAGE_BYTES as u64);
        match data {
            Some(data) => self.write(offset, &data[..length as usize]),
            None => self.deallocate(offset, length),
        }
    }

    /// Keeps what a range holds before it changes.
    pub(crate) fn before_change(&mut self, offset: u64, length: u64) -> Result<(), ContentsError> {
        let Some(mut undo) = self.undo.take() else { return Ok(()) };
        let kept = self.keep_range(&mut undo, offset, length);
        self.undo = Some(undo);
        kept
    }

    fn keep_range(&self, undo: &mut Undo, offset: u64, length: u64) -> Result<(), ContentsError> {
        let pages = pages_of(offset, length);
        if pages.end - pages.start > undo.pages_max as u64 {
            // More than the cache holds (a trim of the whole drive) is durable at once.
            undo.entries.retain(|entry| !pages.contains(&entry.page));
            return Ok(());
        }
        for page in pages {
            let mut data = Box::new(ZEROS);
            let start = page * PAGE_BYTES as u64;
            let length = (self.capacity.0 - start).min(PAGE_BYTES as u64) as usize;
            self.read(start, &mut data[..length])?;
            let before = (*data != ZEROS).then_some(data);
            let number = undo.next.fetch_add(1, Ordering::Relaxed);
            undo.entries.push_back(Entry { number, page, before });
        }
        let over = undo.entries.len().saturating_sub(undo.pages_max);
        undo.entries.drain(..over);
        Ok(())
    }
}

fn pages_of(offset: u64, length: u64) -> std::ops::Range<u64> {
    offset / PAGE_BYTES as u64..(offset + length).div_ceil(PAGE_BYTES as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::MemoryOptions;

    const PAGES: u64 = 8;
    const BYTES: u64 = PAGES * PAGE_BYTES as u64 - 512; // the last page is short

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

    /// What each page may hold after a cut: its states from the last durable one on.
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

        /// Of every page, a cut leaves a state that it had since it was last durable.
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
            contents.power_cut(seed).unwrap();
            let mut data = vec![0; BYTES as usize];
            contents.read(0, &mut data).unwrap();
            for (page, allowed) in data.chunks(PAGE_BYTES).zip(&model.allowed) {
                prop_assert!(allowed.iter().any(|state| state == page));
            }
            let again = contents.power_cut(seed).unwrap();
            prop_assert_eq!(again, Lost::default(), "all is durable now");
        }
    }

    #[test]
    fn some_cuts_lose_all_and_some_nothing_and_writes_are_torn() {
        let (mut all, mut nothing, mut torn) = (0, 0, 0);
        for seed in 0..200 {
            let (mut contents, _) = contents(1 << 30);
            contents.write(0, &[1; 4 * PAGE_BYTES]).unwrap();
            let lost = contents.power_cut(seed).unwrap();
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
    fn a_cache_holds_no_more_than_it_has() {
        let (mut contents, _) = contents(2 * PAGE_BYTES as u64);
        for page in 0..4 {
            contents.write(page * PAGE_BYTES as u64, &[1; PAGE_BYTES]).unwrap();
        }
        assert_eq!(contents.power_cut(1).unwrap().pages_open, 2, "the last two");
        contents.write(0, &[2; PAGE_BYTES]).unwrap();
        contents.deallocate(0, BYTES).unwrap();
        assert_eq!(contents.power_cut(1).unwrap().pages_open, 0, "too much to be held");
    }
}
