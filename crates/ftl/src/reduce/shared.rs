//! Data that several logical pages hold: stored once, with a count of references. The map entries
//! of their holders name the data instead of an address, so that moving them changes one entry.

use writecliff_base::Ppa;

/// The bit of a map entry that marks a number of shared data instead of an address.
const SHARED: u32 = 1 << 31;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SharedData {
    pub ppa: Ppa,
    /// Logical pages that hold them; 0: the number is free.
    pub references: u32,
    pub sectors: u8,
}

/// All shared data, by number; numbers are reused, the last freed first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shared {
    pub(super) all: Vec<SharedData>,
    pub(super) free: Vec<u32>,
}

/// The number of the shared data that a map entry names.
#[inline]
pub(super) fn number(entry: Ppa) -> Option<usize> {
    (entry.0 & SHARED != 0 && !entry.is_none()).then_some((entry.0 & !SHARED) as usize)
}

/// The map entry of shared data.
pub(super) fn entry(number: u32) -> Ppa {
    // Never all ones: there are fewer than 2^31 - 1 logical pages to share anything.
    Ppa(SHARED | number)
}

/// Is a map entry, forward or reverse, one of shared data?
pub(crate) fn is_shared(entry: u32) -> bool {
    number(Ppa(entry)).is_some()
}

impl Shared {
    /// Is `ppa` where the shared data are that a reverse entry names? The entry may be older than
    /// what goes by its number now.
    #[inline]
    pub(super) fn is_at(&self, entry: u32, ppa: Ppa) -> bool {
        number(Ppa(entry)).and_then(|n| self.all.get(n)).is_some_and(|data| data.ppa == ppa)
    }

    /// The shared data that a map entry names, if it does not name an address.
    #[inline]
    pub(crate) fn get(&self, entry: Ppa) -> Option<&SharedData> {
        number(entry).map(|n| &self.all[n])
    }

    /// The physical address that a map entry leads to.
    #[inline]
    pub(crate) fn resolve(&self, entry: Ppa) -> Ppa {
        self.get(entry).map_or(entry, |data| data.ppa)
    }

    /// Make what one logical page holds at `ppa` shared; returns its map entry.
    pub(super) fn share(&mut self, ppa: Ppa, sectors: u8) -> Ppa {
        let data = SharedData { ppa, references: 1, sectors };
        let number = self.free.pop().unwrap_or_else(|| {
            self.all.push(data);
            (self.all.len() - 1) as u32
        });
        self.all[number as usize] = data;
        entry(number)
    }

    pub(super) fn add_reference(&mut self, of: Ppa) {
        let n = number(of).expect("an entry of shared data");
        self.all[n].references += 1;
    }

    /// Returns whether that was the last one: nobody holds the data any more.
    pub(super) fn drop_reference(&mut self, entry: Ppa) -> bool {
        let n = number(entry).expect("an entry of shared data");
        let data = &mut self.all[n];
        debug_assert!(data.references > 0);
        data.references -= 1;
        if data.references > 0 {
            return false;
        }
        data.ppa = Ppa::NONE;
        self.free.push(n as u32);
        true
    }

    pub(super) fn moved(&mut self, entry: Ppa, to: Ppa) {
        let n = number(entry).expect("an entry of shared data");
        self.all[n].ppa = to;
    }
}
